"""Moves a centre to another cluster, to which all of its topics are mirrored: jobs, readers and mirrors go on there.

The jobs' places come in a savepoint that was taken when they had stopped, those of readers and of the sites' mirrors
are asked for at the former cluster. Nothing is changed before the mirror has brought everything.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from connectors.kafka.access import reach
from connectors.kafka.offsets import Log
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.settings import Settings, query_name
from jobs.table import JOBS
from ops.replay.registry import Registry
from ops.savepoints import chain
from ops.savepoints.saved import ChainSavepoint
from ops.site import mirror_positions, readers
from ops.site.drain import Drain
from ops.site.mirror import everything


@dataclass(frozen=True)
class Failover:
    """What goes on at another cluster.

    Attributes:
        jobs: the jobs that the savepoint holds.
        readers: the consumer groups of others.
        mirrors: the sites whose mirrors have positions there now.
    """

    jobs: tuple[str, ...]
    readers: tuple[str, ...]
    mirrors: tuple[str, ...]


def failover(
    saved: ChainSavepoint,
    source: str,
    back: str,
    settings: Settings,
    *,
    without: Collection[str] = (),
    patience: float,
    tell: Callable[[int], None],
) -> Failover:
    """Go on from a savepoint at the settings' cluster; `source` are the brokers of the former one.

    `back` names the mirror that may lead from here to there afterwards: it begins after what came from there.
    `tell` gets the number of partitions that have not come in full.

    Raises UserError, before anything is changed, if the mirror has not brought everything within `patience` seconds,
    somebody still writes or reads there, or the savepoint doesn't fit.
    """
    there, here = _reached(source), Log(settings.kafka_bootstrap)
    registry = Registry.read(source)
    topics = registry.topics(saved.generation, load_topics(settings.topics_file))
    moved = everything(topics)
    names = [topic.name for topic in moved]
    others = {query_name(saved.generation, job.name) for job in JOBS if job.name not in saved.jobs}

    def idle_readers() -> list[readers.Reader]:
        found = [one for one in readers.readers_of(there, names, others) if one.group not in without]
        readers.check_idle(found, there, here)
        return found

    _check_clusters(saved, names, there, here)
    idle_readers()
    mirrors = {topic: site for topic, site in mirror_positions.sites_of(there).items() if site != back}
    Drain(there, here, moved, [*mirrors]).wait(patience, tell)
    ends = here.ends(names)
    places = {reader.group: readers.places_at(here, reader, there) for reader in idle_readers()}
    chain.restore(saved, settings.model_copy(update={"generation": saved.generation}), registry, topics)
    for group, offsets in places.items():
        readers.go_on_at(here, group, offsets)
    mirror_positions.carry_over(there, here, mirrors)
    mirror_positions.begin_at(here, there, back, ends)
    return Failover(saved.jobs, tuple(places), tuple(sorted(mirrors.values())))


def _check_clusters(saved: ChainSavepoint, names: Sequence[str], there: Log, here: Log) -> None:
    present = there.identities(names)
    if present.items() & here.identities(names).items():
        raise UserError(f"--from {there.bootstrap}: is this cluster itself; KAPPA_KAFKA_BOOTSTRAP names the other one")
    if not saved.identities.items() <= present.items():
        raise UserError(
            f"savepoint {saved.name!r}: was taken on another cluster than {there.bootstrap}; take one there"
        )


def _reached(source: str) -> Log:
    try:
        reach(source)
    except UserError as error:
        raise UserError(
            f"--from {source}: {error}. Where a centre was lost, start another one by a replay of the telemetry: "
            "docs/how-to/sites.md"
        ) from error
    return Log(source)

"""What is noted of the chain before an upgrade, so that the new image's copies of the jobs are told from the others.

It is kept where the jobs' own progress is, as metadata of consumer groups: of each query in `<query>.upgrade`, of
all in `kappa.<generation>.upgrade`. So it is there for whoever reaches Kafka, whatever storage the pods share.
"""

from collections.abc import Sequence
from typing import Literal

from confluent_kafka import TopicPartition
from pydantic import BaseModel, ConfigDict, ValidationError

from connectors.kafka.client import fetch_committed, open_consumer
from connectors.kafka.retries import retrying
from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.savepoints.saved import commit, tasks_of
from ops.upgrade.looks import Look

PATIENCE_SECONDS = 60.0  # for the coordinator of a broker that was started again

Mode = Literal["checkpoint", "savepoint"]


class Before(BaseModel):
    """A query before the upgrade: the token of the copy that wrote, if it has one, and its largest lag of a minute."""

    model_config = ConfigDict(frozen=True)

    owner: str = ""
    lag: int = 0


class Mark(BaseModel):
    """The chain before an upgrade."""

    model_config = ConfigDict(frozen=True)

    mode: Mode
    taken: str  # when; also tells this mark's notes from those of one before it
    savepoint: str | None = None
    queries: dict[str, Before]


class _Head(BaseModel):
    mode: Mode
    taken: str
    savepoint: str | None
    queries: tuple[str, ...]


class _Note(BaseModel):
    taken: str
    before: Before


def before_of(looks: Sequence[Look]) -> dict[str, Before]:
    """What these looks say of each query that is at work; one that has never committed anything can't be guarded."""
    return {
        query: Before(owner=stand.owner, lag=max(look.stands[query].lag for look in looks))
        for query, stand in looks[-1].stands.items()
        if stand.owner or stand.has_committed
    }


def write(mark: Mark, settings: Settings) -> None:
    """Note it, in place of the mark of the upgrade before."""
    for query, before in mark.queries.items():
        _commit(query, _Note(taken=mark.taken, before=before), settings)
    head = _Head(mode=mark.mode, taken=mark.taken, savepoint=mark.savepoint, queries=tuple(mark.queries))
    _commit("", head, settings)


def read(settings: Settings) -> Mark:
    """The mark of the present upgrade. Raises UserError if there is none, or its writing was cut."""
    anew = f"generation={settings.generation}: no upgrade has begun; `kappa upgrade begin` notes what it begins from"
    try:
        head = _Head.model_validate_json(_committed("", settings))
        notes = {query: _Note.model_validate_json(_committed(query, settings)) for query in head.queries}
    except ValidationError:
        raise UserError(anew) from None
    if any(note.taken != head.taken for note in notes.values()):
        raise UserError(anew)
    queries = {query: note.before for query, note in notes.items()}
    return Mark(mode=head.mode, taken=head.taken, savepoint=head.savepoint, queries=queries)


def _group(query: str, settings: Settings) -> str:
    return f"{settings.query_of(query)}.upgrade" if query else settings.query_of("upgrade")


def _commit(query: str, note: BaseModel, settings: Settings) -> None:
    group = _group(query, settings)
    progress = tasks_of(settings, group, "")
    commit(progress, group, [TopicPartition(progress.progress_topic, 0, 0, metadata=note.model_dump_json())])


def _committed(query: str, settings: Settings) -> str:
    group = _group(query, settings)
    progress = tasks_of(settings, group, "")
    with open_consumer(progress.connection, group) as consumer:
        wanted = [TopicPartition(progress.progress_topic, 0)]
        (found,) = retrying(PATIENCE_SECONDS)(lambda: fetch_committed(consumer, wanted))
    return found.metadata or ""

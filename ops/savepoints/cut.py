"""A consistent cut of a generation's jobs while they run: each as of one batch, no job ahead of one that it reads from.

Jobs are taken from the end of the chain to its beginning. When a job is taken, those that read what it writes have been
taken already: so what they had read was written by batches that this job's savepoint holds. What it had written and
they had not read yet stands in the topic in between.

Each job is taken between two of its batches, where the markers of its tasks and of its driver agree. If they are the
same before and after the ends of its topics were read, nothing was written meanwhile: a task's marker is the first
thing in its transaction, and a reader of committed markers waits for it. So this batch's records end there.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from connectors.kafka.markers import list_slots, read_markers
from connectors.kafka.offsets import Log
from infra.contract.offsets import Offsets
from infra.contract.topics import TopicMap
from infra.errors import UserError
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.savepoints.saved import driver_of, tasks_of
from ops.savepoints.store import Store

PATIENCE_SECONDS = 120.0  # in which a job is between two batches for a moment, and Spark notes that one as done
PAUSE_SECONDS = 0.05

Slots = Mapping[int, int]  # batches done by slot


@dataclass(frozen=True)
class Stand:
    """A query between two batches: the last that is done, and where the topics that it alone writes end after it."""

    batch: int
    ends: Offsets


def last_first(jobs: Iterable[str], topics: TopicMap) -> list[str]:
    """These jobs, each after all that read what it writes. Raises UserError if some read each other's topics."""
    left, order = list(jobs), list[str]()
    while left:
        ready = [name for name in left if not _read_by_others(name, left, topics)]
        if not ready:
            raise UserError(f"jobs {', '.join(left)}: read each other's topics; no cut of them is consistent")
        order += ready
        left = [name for name in left if name not in ready]
    return order


def _read_by_others(name: str, among: Sequence[str], topics: TopicMap) -> bool:
    written = {topics[key].name for key in JOBS[name].writes}
    return any(written & {topic.name for topic in JOBS[other].inputs(topics)} for other in among if other != name)


def exclusive_topics(job: str, topics: TopicMap) -> list[str]:
    """The names of the topics of the generation that this job alone writes."""
    return [topics[key].name for key in JOBS[job].writes if JOBS.writers(key) == (job,)]


def settle(query: str, job: str, settings: Settings, topics: TopicMap, log: Log) -> Stand | None:
    """Wait until a query is between two batches, and has noted the last one as done; None if it has done none.

    Raises UserError if it isn't between two within PATIENCE_SECONDS.
    """
    written = exclusive_topics(job, topics)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        before = _done(query, settings)
        ends = log.ends(written)
        after = _done(query, settings)
        if before == after == 0:
            return None
        if before is not None and before == after:
            _wait_for_note(query, before - 1, settings, deadline)
            return Stand(before - 1, ends)
        if time.monotonic() > deadline:
            raise UserError(f"{query}: its last batch is written in part for {PATIENCE_SECONDS:.0f} s; does it run?")
        time.sleep(PAUSE_SECONDS)


def _done(query: str, settings: Settings) -> int | None:
    """How many batches a query has done; None if it is just writing one."""
    name = settings.query_of(query)
    tasks, driver = tasks_of(settings, name, ""), driver_of(settings, name, "")
    slots = {marker.done for marker in read_markers(tasks, list_slots(tasks), "read_committed").values()}
    (done,) = {marker.done for marker in read_markers(driver, [0], "read_committed").values()} or {0}
    return done if max(slots, default=done) == done else None


def _wait_for_note(query: str, batch: int, settings: Settings, deadline: float) -> None:
    """Wait until Spark has noted a batch as done in the checkpoint, which it does after the driver's commit."""
    commits = Store.of(settings.checkpoint_of(query))
    while batch not in commits.batches("commits"):
        if time.monotonic() > deadline:
            raise UserError(f"{commits.path}: doesn't note batch {batch} as done, which is written; start the job once")
        time.sleep(PAUSE_SECONDS)


def check_consistent(positions: Mapping[str, Offsets], ends: Offsets) -> None:
    """Raises UserError if a query has read more of a topic than its writer's savepoint has written."""
    for query, offsets in positions.items():
        for place, offset in offsets.items():
            if offset > ends.get(place, offset):
                raise UserError(
                    f"{query}: has read {place[0]}/{place[1]} until {offset}, but its writer is kept as of "
                    f"{ends[place]}: was a job put back meanwhile? Try again"
                )

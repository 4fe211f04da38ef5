"""Puts a query of a generation back to an older state of its own, and nothing is written twice.

What the query has written since the savepoint stands in the log, and so does what it had read for that. So it starts
from the older state and reads on from there, but what follows from records that it had read before goes into the state
alone: a fold's results depend on the log's order, not on how it is cut into batches, so they are the ones that are
written already (docs/explanation/decisions/0054-savepoints-of-the-chain.md). A query without state starts where it was.

Up to where that is, the consumer group of the query says, and while it reads on, the group `<query>.written`, whose
metadata names the checkpoint that this is true of.
"""

import re
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import orjson
from confluent_kafka import TopicPartition

from connectors.kafka.client import CALL_SECONDS, fetch_committed, open_consumer, topic_partitions
from connectors.kafka.markers import MarkedWriter, ProgressSettings, list_slots, read_markers
from connectors.kafka.offsets import Log
from connectors.kafka.retries import retrying
from infra.contract.offsets import Offsets, Partition, to_nested
from infra.errors import UserError
from jobs.runtime.checkpoint import WRITTEN
from jobs.runtime.commits import BatchCommitter
from jobs.runtime.job import Fold
from jobs.runtime.offset_log import OffsetLogEntry
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.savepoints.saved import Savepoint, commit, driver_of, marker_to_commit, tasks_of
from ops.savepoints.store import Store
from ops.state.state import OPERATOR, moved

PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class Written:
    """How far a query has come: batches, for which checkpoint, in which slots, up to which offsets of its input."""

    done: int
    run: str
    slots: Mapping[int, int]  # slot -> tasks of the last batch
    offsets: Offsets  # of the input, up to which all that follows from it is written


def written_by(query: str, topics: Iterable[str], settings: Settings, log: Log, patience: float = 0) -> Written | None:
    """How far a query of the settings' generation has come with these topics; None if it has no markers.

    Raises UserError if its last batch is still written in part after so many seconds.
    """
    name, deadline = settings.query_of(query), time.monotonic() + patience
    tasks, driver = tasks_of(settings, name, ""), driver_of(settings, name, "")
    while True:
        slots = read_markers(tasks, list_slots(tasks), "read_committed")
        last = read_markers(driver, [0], "read_committed").get(0)
        if last is None and not slots:
            return None
        done = max((marker.done for marker in slots.values()), default=last.done if last else 0)
        if last and last.done == done:
            break
        if time.monotonic() > deadline:
            raise UserError(
                f"{query}: its batch {done - 1} is written in part; start the job once, so that it completes it, and "
                "stop it; or start a new generation: kappa replay start"
            )
        time.sleep(PAUSE_SECONDS)
    committed = log.committed(name, log.partitions(topics))
    noted = _bound(tasks, last.run, committed)
    offsets = {place: max(offset, noted.get(place, 0)) for place, offset in committed.items()}
    return Written(done, last.run, {slot: marker.tasks for slot, marker in slots.items()}, offsets)


def unwritten(query: str, saved: Savepoint, settings: Settings) -> Written:
    """Of a query that has written nothing since its savepoint, in the slots that any of its tasks has a marker in.

    Where a chain is moved back to a cluster, the markers of its former stay are still there.
    """
    tasks = tasks_of(settings, settings.query_of(query), "")
    left = {slot: marker.tasks for slot, marker in read_markers(tasks, list_slots(tasks), "read_committed").items()}
    return Written(0, "", left | {marker.slot: marker.tasks for marker in saved.markers}, saved.offsets)


def _bound(tasks: ProgressSettings, run: str, places: Iterable[Partition]) -> Offsets:
    """The offsets that were noted when the checkpoint `run` was put in place."""
    wanted = [TopicPartition(*place) for place in places]
    with open_consumer(tasks.connection, f"{tasks.query}.written") as consumer:
        found = retrying(CALL_SECONDS)(lambda: fetch_committed(consumer, wanted))
    return {(at.topic, at.partition): at.offset for at in found if at.metadata == run}


def note_again(query: str, saved: Savepoint, settings: Settings) -> None:
    """Note in a checkpoint that was put in place anew, of the same identity, what was noted in the one before it."""
    tasks = tasks_of(settings, settings.query_of(query), saved.run)
    if noted := _bound(tasks, saved.run, saved.offsets):
        _note(query, noted, settings)


def _note(query: str, offsets: Offsets, settings: Settings) -> None:
    content = orjson.dumps(to_nested(offsets), option=orjson.OPT_NON_STR_KEYS)
    Store.of(settings.checkpoint_of(query)).write(WRITTEN, content)


def keeps_state(saved: Savepoint) -> bool:
    """Whether it is of a fold; what other jobs do depends on nothing that they have read before."""
    return isinstance(JOBS[saved.job].implementation(), Fold)


def check(query: str, saved: Savepoint, written: Written) -> None:
    """Raises UserError if what the query has written since the savepoint can't be left as it is."""
    for place, offset in saved.offsets.items():
        if written.offsets.get(place, 0) < offset:
            raise UserError(
                f"savepoint {saved.name!r}: stands at offset {offset} of {place[0]}/{place[1]}, but {query} has only "
                f"written what follows from those before {written.offsets.get(place, 0)}: was it begun anew since?"
            )
    if not keeps_state(saved):
        _sources(saved, written.offsets, {})


def take_over(query: str, written: Written, settings: Settings) -> None:
    """Fence a copy of the job that still runs, and have it end; what it left open is settled then."""
    name = settings.query_of(query)
    BatchCommitter(tasks_of(settings, name, written.run), lambda: written.done, yields=False)
    for slot in written.slots:
        MarkedWriter(tasks_of(settings, name, written.run), slot)


def put_back(query: str, saved: Savepoint, copy: Store, written: Written, settings: Settings) -> None:
    """Put the copy of a checkpoint in place, under an identity of its own, with the markers and bounds that it needs.

    If it is cut, it can be repeated: nothing of this moves how far the query says that it has come.
    """
    name, identity = settings.query_of(query), str(uuid.uuid4())
    tasks, driver = tasks_of(settings, name, identity), driver_of(settings, name, identity)
    if keeps_state(saved):
        commit(tasks, f"{name}.written", _with_metadata(written.offsets, identity))
    slots = written.slots or {marker.slot: marker.tasks for marker in saved.markers}
    done = saved.batch + 1
    commit(tasks, tasks.group, [marker_to_commit(tasks, slot, done, count) for slot, count in slots.items()])
    commit(driver, driver.group, [marker_to_commit(driver, 0, done, 1)])
    _put_checkpoint(query, saved, copy, written.offsets, settings, identity=identity)


def _put_checkpoint(
    query: str, saved: Savepoint, copy: Store, offsets: Offsets, settings: Settings, *, identity: str
) -> None:
    target = Store.of(settings.checkpoint_of(query))
    target.remove()
    last = f"offsets/{saved.batch}"
    for name in copy.names():
        content = copy.read(name)
        if name.startswith("offsets/") and int(name.partition("/")[2]) > saved.batch:
            continue  # the next batch is planned anew
        if name == last:  # a fold reads on from the savepoint, which may have been moved to another log
            content = _moved_on(content, saved, saved.offsets if keeps_state(saved) else offsets)
        elif name.startswith(OPERATOR):
            content = moved(content, settings.checkpoint_of(query))
        target.write(name, content)
    if keeps_state(saved):
        _note(query, offsets, settings)
    target.write("metadata", orjson.dumps({"id": identity}))


def _moved_on(entry: bytes, saved: Savepoint, offsets: Offsets) -> bytes:
    """An entry of the offset log that ends at these offsets."""
    plan = OffsetLogEntry.parse(entry.decode())
    return replace(plan, sources=_sources(saved, offsets, plan.sources)).format().encode()


def _sources(saved: Savepoint, offsets: Offsets, sources: Mapping[str, Offsets]) -> dict[str, Offsets]:
    """The offsets of each source of a job without state, moved on to where the job was.

    Raises UserError if one topic is read by several sources, as retried dead letters are, and has moved on since: the
    group's offset is that of one of them.
    """
    for (topic, number), offset in offsets.items():
        if topic in saved.shared and offset != saved.offsets.get((topic, number), 0):
            raise UserError(
                f"savepoint {saved.name!r}: dead letters were sent again since ({topic}/{number}, {offset} instead of "
                f"{saved.offsets.get((topic, number), 0)}); start a new generation: kappa replay start"
            )
    return {
        name: found | {place: offset for place, offset in offsets.items() if place[0] in {topic for topic, _ in found}}
        for name, found in sources.items()
    }


def check_table(query: str, table: str, written: Written, settings: Settings) -> None:
    """Raises UserError if a Delta table has the rows of a batch that its query has not committed."""
    log = Store.of(f"{settings.delta_of(table)}/_delta_log")
    application = f"{settings.query_of(query)}.{written.run}"
    for name in reversed([name for name in log.names() if re.fullmatch(r"\d{20}\.json", name)]):
        for line in log.read(name).splitlines():
            transaction = orjson.loads(line).get("txn", {})
            if transaction.get("appId") == application:
                if transaction["version"] >= written.done:
                    raise UserError(
                        f"{query}: its batch {written.done} is written in part; start the job once, so that it "
                        "completes it, and stop it"
                    )
                return


def _with_metadata(offsets: Offsets, metadata: str) -> list[TopicPartition]:
    return [TopicPartition(*place, offset, metadata=metadata) for place, offset in offsets.items()]


def commit_group(settings: Settings, job: str, offsets: Offsets) -> None:
    """Commit the offsets of a job that keeps nothing but its group's."""
    commit(tasks_of(settings, settings.query_of(job), ""), settings.query_of(job), topic_partitions(offsets))

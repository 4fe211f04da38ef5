"""A savepoint of all jobs of a generation at once: of each query its checkpoint as of a batch of one consistent cut.

It is a folder as a single job's is; `checkpoint/<query>/` is the copy of each. It is taken while the jobs run, and they
don't notice (cut.py). Restored, each job goes on as if it had never been gone (rewind.py).
"""

from collections.abc import Iterator, Mapping

import structlog
from pyspark.sql import SparkSession

from connectors.kafka.offsets import Log
from infra.contract.offsets import StoredOffsets
from infra.contract.topics import TopicMap, load_topics
from infra.errors import UserError
from jobs.runtime.job import job_of
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.launcher import jobs_of
from ops.replay.registry import Registry
from ops.savepoints import archive, cut, landmarks, rewind, savepoints
from ops.savepoints.archive import MANIFEST, Contents
from ops.savepoints.landmarks import Landmark
from ops.savepoints.saved import ChainSavepoint, Savepoint
from ops.savepoints.store import Store, copy_checkpoint

NO_BATCH = "has done no batch yet"
PATIENCE_SECONDS = 60.0  # in which a job that runs is between two batches for a moment

log = structlog.get_logger()


def create_of_running(name: str, settings: Settings, spark: SparkSession) -> ChainSavepoint:
    """Take a savepoint of all jobs that the settings' generation runs, but those for people; else as `create`."""
    registry = Registry.read(settings.kafka_bootstrap)
    jobs = tuple(one for one in jobs_of(settings, registry) if JOBS[one].follows_replays)
    return create(name, settings, jobs, registry.topics(settings.generation, load_topics(settings.topics_file)), spark)


def create(
    name: str, settings: Settings, jobs: tuple[str, ...], topics: TopicMap, spark: SparkSession
) -> ChainSavepoint:
    """Take a savepoint of these jobs of the settings' generation; it has been read back when this returns.

    Raises UserError if the name is taken, or the jobs can't be taken consistently.
    """
    store = savepoints.store_of(name, settings)
    if (store / "").names():
        raise UserError(f"savepoint {name!r}: there is one already; choose another name")
    taken = savepoints.now()
    try:
        stands, groups, ends = _cut(store, settings, jobs, topics)
        queries = {
            query: savepoints.described(name, query, stand.batch, settings, spark, folder=folder_of(query))
            for query, stand in stands.items()
        }
        cut.check_consistent({query: saved.offsets for query, saved in queries.items()} | groups, ends)
        kafka = Log(settings.kafka_bootstrap)
        saved = ChainSavepoint(
            name=name,
            generation=settings.generation,
            taken=taken,
            jobs=jobs,
            queries=queries,
            groups=groups,
            ends=ends,
            landmarks=landmarks.take(kafka, [*groups.values(), ends]),
            identities=kafka.identities(topic for one in queries.values() for topic in one.topics),
            files=archive.listed(store).files,
        )
    except BaseException:
        store.remove()
        raise
    store.write(MANIFEST, saved.model_dump_json(indent=1).encode())
    return saved


def folder_of(query: str) -> str:
    """Where in a savepoint the copy of a query's checkpoint is."""
    return f"{savepoints.FOLDER}/{query}"


Cut = tuple[dict[str, cut.Stand], dict[str, StoredOffsets], StoredOffsets]


def _cut(store: Store, settings: Settings, jobs: tuple[str, ...], topics: TopicMap) -> Cut:
    """Copy the checkpoint of each query, those of the chain's end first."""
    kafka = Log(settings.kafka_bootstrap)
    stands: dict[str, cut.Stand] = {}
    groups: dict[str, StoredOffsets] = {}
    ends: StoredOffsets = {}
    for job in cut.last_first(jobs, topics):
        if not JOBS[job].uses_spark:
            read = kafka.partitions(topic.name for topic in JOBS[job].inputs(topics))
            groups[job] = kafka.committed(settings.query_of(job), read)
            continue
        for query in JOBS[job].reads_of(topics):
            if (stand := cut.settle(query, job, settings, topics, kafka)) is None:
                log.warning("not in the savepoint", query=query, reason=NO_BATCH)
                continue
            copy_checkpoint(Store.of(settings.checkpoint_of(query)), store / folder_of(query), stand.batch)
            stands[query] = stand
            ends |= stand.ends
    if not stands:
        raise UserError(f"generation={settings.generation}: no job has done a batch; there is nothing to keep")
    return stands, groups, ends


def verify(saved: ChainSavepoint | Savepoint, settings: Settings) -> int:
    """Read every file of a savepoint and compare it with its sum; returns how many there are.

    Raises UserError if one differs, or an earlier version has taken it, without sums.
    """
    if not saved.files:
        raise UserError(f"savepoint {saved.name!r}: was taken by an earlier version, without sums; take another one")
    archive.verify(savepoints.store_of(saved.name, settings), Contents(files=saved.files))
    return len(saved.files)


def restore(saved: ChainSavepoint, settings: Settings, registry: Registry, topics: TopicMap) -> None:
    """Put all jobs of a generation back to its savepoint; they read on from there and write nothing twice.

    Everything is checked first: files, settings, layouts of the state, and whether the log still holds what is to be
    read again, on another cluster wherever it stands there. Then copies of the jobs that still run are made to end.

    Raises UserError if anything doesn't fit, before anything is changed or stopped.
    """
    if settings.generation != saved.generation:
        raise UserError(
            f"--generation {settings.generation}: savepoint {saved.name!r} is of all jobs of {saved.generation!r}, and "
            "goes back into that one; start a new generation from one job's: kappa savepoint create NAME --job JOB"
        )
    verify(saved, settings)
    kafka = Log(settings.kafka_bootstrap)
    is_moved = _is_of_another_log(saved, topics, kafka)
    if is_moved:
        saved = _in_this_log(saved, kafka)
    # What the jobs wrote here before they were moved away is in the savepoint.
    written = {} if is_moved else dict(_written(saved, settings, kafka, PATIENCE_SECONDS))
    for query, one in saved.queries.items():
        changes = registry.find(settings.generation).changes(one.job)
        unmarked = one.model_copy(update={"landmarks": ()})  # they were looked at, all together
        _check(query, unmarked, written.get(query), settings=settings, topics=topics, kafka=kafka, changes=changes)
    if not written:
        _check_nothing_is_written(saved, kafka)
    for query, found in written.items():
        rewind.take_over(query, found, settings)
    # What a copy of a job had begun is decided only now.
    written = {} if is_moved else dict(_written(saved, settings, kafka))
    for query, one in saved.queries.items():
        copy = savepoints.store_of(saved.name, settings) / folder_of(query)
        rewind.put_back(query, one, copy, written.get(query) or rewind.unwritten(query, one, settings), settings)
    for job, offsets in saved.groups.items():
        if is_moved or not any(kafka.committed(settings.query_of(job), offsets).values()):
            rewind.commit_group(settings, job, offsets)


def _landmarks(saved: ChainSavepoint) -> list[Landmark]:
    return [*saved.landmarks, *(mark for one in saved.queries.values() for mark in one.landmarks)]


def _is_of_another_log(saved: ChainSavepoint, topics: TopicMap, kafka: Log) -> bool:
    """Whether it was taken on another cluster, or before topics were made anew.

    In a mirror the offsets, too, may be the same by chance.
    """
    marks = _landmarks(saved)
    savepoints.check_there(saved.name, {mark.place for mark in marks}, kafka)
    is_same = kafka.identities(saved.identities) == saved.identities
    return not is_same or bool(landmarks.displaced(kafka, marks, topics))


def _in_this_log(saved: ChainSavepoint, kafka: Log) -> ChainSavepoint:
    """The savepoint with the offsets that it has in this log, which is a mirror's on another cluster."""
    whose = f"savepoint {saved.name!r}"
    for query, one in saved.queries.items():
        if one.shared:  # its sources stand at offsets of their own, and the savepoint has one of them
            raise UserError(f"{whose}: {query} reads {one.shared[0]} twice, and can't go to another log")
    found = landmarks.relocated(kafka, _landmarks(saved), whose)
    log.info("another log, in which the savepoint's records were found", savepoint=saved.name, places=len(found))

    def moved(offsets: StoredOffsets) -> StoredOffsets:
        return landmarks.moved(offsets, found, whose)

    queries = {
        query: one.model_copy(update={"offsets": moved(one.offsets), "landmarks": ()})
        for query, one in saved.queries.items()
    }
    groups = {job: moved(offsets) for job, offsets in saved.groups.items()}
    return saved.model_copy(update={"queries": queries, "groups": groups, "ends": moved(saved.ends), "landmarks": ()})


def _written(
    saved: ChainSavepoint, settings: Settings, kafka: Log, patience: float = 0
) -> Iterator[tuple[str, rewind.Written]]:
    for query, one in saved.queries.items():
        found = rewind.written_by(query, one.topics, settings, kafka, patience)
        if found:
            if JOBS[one.job].sink == "delta":
                rewind.check_table(query, query.removeprefix(f"{job_of(query)}."), found, settings)
            yield query, found


def _check(
    query: str,
    saved: Savepoint,
    written: rewind.Written | None,
    *,
    settings: Settings,
    topics: TopicMap,
    kafka: Log,
    changes: Mapping[str, str],
) -> None:
    if written:
        rewind.check(query, saved, written)
        if not rewind.keeps_state(saved):  # it starts where it was
            saved = saved.model_copy(update={"offsets": written.offsets})
    savepoints.check_fits(saved, settings, load_job_settings(JOBS[saved.job], changes), topics, kafka)


def _check_nothing_is_written(saved: ChainSavepoint, kafka: Log) -> None:
    """Raises UserError if the markers are gone and the topics hold more than the savepoint says: nobody knows whose."""
    ends = kafka.ends({topic for topic, _ in saved.ends})
    for place, end in saved.ends.items():
        if ends[place] > end:
            raise UserError(
                f"savepoint {saved.name!r}: {place[0]}/{place[1]} ends at {ends[place]}, it at {end}, and the broker "
                "keeps no markers that say what was written since; start a new generation: kappa replay start"
            )

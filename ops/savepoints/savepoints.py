"""Savepoints: a job's checkpoint, offsets and progress markers as of one batch, to be started from again.

A savepoint is a folder beside the checkpoints: `checkpoint/` is the copy; `savepoint.json`, written last, says where it
fits. It may be taken from a job that runs; the job doesn't notice.
"""

import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic_settings import BaseSettings
from pyspark.sql import SparkSession

from connectors.kafka.client import topic_partitions
from connectors.kafka.offsets import Log
from infra.contract.offsets import Partition
from infra.contract.topics import LIVE, TopicMap
from infra.errors import UserError
from infra.settings import describe
from jobs.runtime.fold import KEY
from jobs.runtime.job import Fold, job_of
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.offset_log import OffsetLogEntry
from jobs.runtime.packed_state import Parts, unpack
from jobs.runtime.settings import Settings
from jobs.statistics.state import PLACE
from jobs.table import JOBS
from ops.replay.registry import Generation
from ops.savepoints import archive, landmarks, rewind
from ops.savepoints.archive import MANIFEST
from ops.savepoints.saved import (
    ChainSavepoint,
    Savepoint,
    commit,
    driver_of,
    marker_to_commit,
    markers_of,
    tasks_of,
)
from ops.savepoints.store import Store, copy_checkpoint
from ops.state.state import OPERATOR, moved, partitions, shards

_EITHER: TypeAdapter[Savepoint | ChainSavepoint] = TypeAdapter(Savepoint | ChainSavepoint)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # a folder's, in any store
FOLDER = "checkpoint"  # of the copy
SAVEABLE = ", ".join(one.name for one in JOBS if one.is_replayable)


def store_of(name: str, settings: Settings) -> Store:
    """Where a savepoint is. Raises UserError if the name could be that of another folder."""
    if not NAME.fullmatch(name):
        raise UserError(f"savepoint {name!r}: use up to 100 letters, digits, dots, hyphens, underscores, e.g. monday")
    return Store.of(settings.savepoint_of(name))


def create(name: str, job: str, settings: Settings, spark: SparkSession) -> Savepoint:
    """Take a savepoint of a job of the settings' generation; it has been read back when this returns.

    Raises UserError if the name is taken, or the job has not done a batch.
    """
    check_saveable(job)
    store = store_of(name, settings)
    if (store / "").names():
        raise UserError(f"savepoint {name!r}: there is one already; choose another name")
    try:
        batch = copy_checkpoint(Store.of(settings.checkpoint_of(job)), store / FOLDER)
        saved = described(name, job, batch, settings, spark, folder=FOLDER)
        saved = saved.model_copy(update={"files": archive.listed(store).files, "taken": now()})
    except BaseException:
        store.remove()
        raise
    store.write(MANIFEST, saved.model_dump_json(indent=1).encode())
    return saved


def now() -> str:
    """The time that a savepoint says it was taken at."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def check_saveable(job: str) -> None:
    """Raises UserError unless savepoints can be taken of the job."""
    if job not in (one.name for one in JOBS if one.is_replayable):
        raise UserError(f"--job {job}: savepoints are taken of {SAVEABLE}")


def delete(name: str, settings: Settings) -> None:
    """Delete a savepoint, also one whose creation was cut. Raises UserError if there is none of the name."""
    store = store_of(name, settings)
    if not (store / "").names():
        manifest_of(name, settings)  # which names those that there are
    store.remove()


def described(name: str, query: str, batch: int, settings: Settings, spark: SparkSession, *, folder: str) -> Savepoint:
    """What a copy of a query's checkpoint holds, in a folder of the savepoint; its state is read back for that."""
    copy, job = store_of(name, settings) / folder, job_of(query)
    group, run = settings.query_of(query), str(orjson.loads(copy.read("metadata"))["id"])
    is_fold = isinstance(JOBS[job].implementation(), Fold)
    states = shards(spark, f"{settings.savepoint_of(name)}/{folder}") if is_fold else {}
    plan = OffsetLogEntry.parse(copy.read(f"offsets/{batch}").decode())
    read = Counter(topic for offsets in plan.sources.values() for topic in {topic for topic, _ in offsets})
    return Savepoint(
        name=name,
        job=job,
        generation=settings.generation,
        batch=batch,
        planned=batch + 1 in copy.batches("offsets"),
        run=run,
        offsets=plan.offsets(),
        landmarks=landmarks.take(Log(settings.kafka_bootstrap), [plan.offsets()]),
        sources=tuple(sorted(plan.sources)),
        shared=tuple(sorted(topic for topic, count in read.items() if count > 1)),
        markers=markers_of(tasks_of(settings, group, run)),
        driver=max((m.done for m in markers_of(driver_of(settings, group, run))), default=0),
        shuffle_partitions=partitions(copy) if states else settings.shuffle_partitions,
        settings=_as_saved(load_job_settings(JOBS[job])),
        layout=layout(next(iter(states.values()))) if states else {},
        shards=len(states),
    )


def layout(state: Parts) -> dict[str, list[str]]:
    """The names in a packed state and its key: a version of the code that has others can't go on from it."""
    header, columns = unpack(state)
    names = sorted({name.partition(PLACE)[0] for name in columns})
    return {"key": list(KEY), "header": sorted(header), "columns": names}


def expected_layout(job: str, own: BaseSettings | None, topics: TopicMap) -> dict[str, list[str]]:
    """The layout of the state that the present code writes; empty of a job without state."""
    code = JOBS[job].implementation()
    return layout(code.opener(own, topics)(None).dump()) if isinstance(code, Fold) else {}


def _as_saved(own: BaseSettings | None) -> dict[str, Any]:
    return own.model_dump(mode="json") if own else {}


def find(name: str, settings: Settings) -> Savepoint:
    """Raises UserError if there is no such savepoint of a job, or its creation was cut."""
    found = read(name, settings)
    if isinstance(found, ChainSavepoint):
        raise UserError(
            f"savepoint {name!r}: is of all jobs, and goes back into its own generation: kappa savepoint restore {name}"
        )
    return found


def read(name: str, settings: Settings) -> Savepoint | ChainSavepoint:
    """A savepoint of a job or of all. Raises UserError if there is none, or its creation was cut."""
    return parse(manifest_of(name, settings))


def parse(manifest: bytes) -> Savepoint | ChainSavepoint:
    """What a manifest says. Raises ValidationError."""
    return _EITHER.validate_json(manifest)


def every(settings: Settings) -> list[Savepoint | ChainSavepoint]:
    """All savepoints, by name."""
    return [parse(one) for one in manifests(settings)]


def manifest_of(name: str, settings: Settings) -> bytes:
    """What a savepoint says of itself. Raises UserError if there is none, or its creation was cut."""
    try:
        return store_of(name, settings).read(MANIFEST)
    except FileNotFoundError:
        known = ", ".join(orjson.loads(one)["name"] for one in manifests(settings)) or "none"
        raise UserError(f"savepoint {name!r}: there is none; there are {known}") from None


def manifests(settings: Settings) -> list[bytes]:
    """What all savepoints say of themselves, by name."""
    root = Store.of(settings.savepoint_of(""))
    return [root.read(f"{name}/{MANIFEST}") for name in whole(root.names())]


def whole(files: Iterable[str]) -> list[str]:
    """The names of the savepoints, among the files of all, that are whole: a manifest is written last."""
    return [name.partition("/")[0] for name in files if name.endswith(f"/{MANIFEST}") and name.count("/") == 1]


def check_starts(saved: Savepoint, generation: Generation) -> None:
    """Raises UserError if a generation doesn't begin with the job that a savepoint was taken of."""
    if saved.job != generation.jobs[0]:
        raise UserError(
            f"--job {generation.jobs[0]}: savepoint {saved.name!r} is of {saved.job}; use --job {saved.job}"
        )


def check_fits(saved: Savepoint, settings: Settings, own: BaseSettings | None, topics: TopicMap, log: Log) -> None:
    """Raises UserError, naming what differs and what to do, if the present code and log can't go on from a savepoint.

    `settings` and `own` are those under which the job will run.
    """
    anew = f"; start a new generation from the log: kappa replay start --job {saved.job} --from earliest"
    if saved.shuffle_partitions != settings.shuffle_partitions:
        raise UserError(
            f"KAPPA_SHUFFLE_PARTITIONS={settings.shuffle_partitions}: the state of savepoint {saved.name!r} is laid "
            f"out in {saved.shuffle_partitions}; set it to that"
        )
    now = _as_saved(own)
    for field in JOBS[saved.job].state_settings:
        if now.get(field) != saved.settings.get(field):
            raise UserError(
                f"{saved.job}.{field}={now.get(field)!r}: the state of savepoint {saved.name!r} was made with "
                f"{saved.settings.get(field)!r} and can't be converted{anew}"
            )
    if saved.layout and (differs := _differences(saved.layout, expected_layout(saved.job, own, topics))):
        raise UserError(f"savepoint {saved.name!r}: this version of {saved.job} has another state ({differs}){anew}")
    job = JOBS[saved.job]
    reads = job.implementation().sources(job, topics)
    if gone := set(saved.sources) - reads.keys():
        raise UserError(
            f"savepoint {saved.name!r}: reads the sources {', '.join(sorted(gone))}, the job no longer{anew}"
        )
    known = {topic.name for names in reads.values() for topic in names} | _own(saved, topics).keys()
    if gone := set(saved.topics) - known:
        raise UserError(
            f"savepoint {saved.name!r}: reads the topics {', '.join(sorted(gone))}, "
            f"generation {settings.generation!r} doesn't{anew}"
        )
    _check_offsets(saved, topics, log, anew)


def _own(saved: Savepoint, topics: TopicMap) -> dict[str, str]:
    """Topics of the savepoint's generation -> those that this one has of its own instead."""
    suffix = "" if saved.generation == LIVE else f".{saved.generation}"
    names = {key + suffix: topic.name for key, topic in topics.topics.items() if topic.is_derived and topics.owns(key)}
    return {then: now for then, now in names.items() if then in saved.topics and then != now}


def _differences(one: dict[str, list[str]], other: dict[str, list[str]]) -> str:
    changes = [
        f"{sign}{name}"
        for part in one.keys() | other.keys()
        for sign, names in (
            ("-", set(one.get(part, ())) - set(other.get(part, ()))),
            ("+", set(other.get(part, ())) - set(one.get(part, ()))),
        )
        for name in sorted(names)
    ]
    return ", ".join(sorted(changes))


def check_there(name: str, places: Iterable[Partition], log: Log) -> None:
    """Raises UserError if the log lacks a topic, or a partition of one, where a savepoint stands."""
    known = {topic for topic, _ in log.partitions(log.admin.list_topics(timeout=30).topics)}
    places = list(places)
    for topic, _ in places:
        if topic not in known:
            raise UserError(f"savepoint {name!r}: topic {topic!r} is not on {log.bootstrap}; is it another cluster?")
    there = set(log.partitions({topic for topic, _ in places}))
    for topic, number in places:
        if (topic, number) not in there:
            raise UserError(
                f"savepoint {name!r}: {topic} has no partition {number} on {log.bootstrap}, but it stands in it"
            )


def _check_offsets(saved: Savepoint, topics: TopicMap, log: Log, anew: str) -> None:
    check_there(saved.name, saved.offsets, log)
    starts, ends = log.starts(saved.topics), log.ends(saved.topics)
    for at, offset in saved.offsets.items():
        if not starts.get(at, 0) <= offset <= ends.get(at, -1):
            raise UserError(
                f"savepoint {saved.name!r}: stands at offset {offset} of {at[0]}/{at[1]}, which now holds "
                f"{starts.get(at, 0)} to {ends.get(at, 0)}: retention took it, or it is another cluster{anew}"
            )
    for mark in landmarks.displaced(log, saved.landmarks, topics):
        raise UserError(
            f"savepoint {saved.name!r}: {mark.topic}/{mark.partition} has another record at offset {mark.offset} than "
            f"when it was taken: the topic was made anew, or it is another cluster{anew}"
        )


def restore(saved: Savepoint, settings: Settings, own_settings: BaseSettings | None, topics: TopicMap) -> None:
    """Put a savepoint in place as its job's checkpoint in the settings' generation, with the markers that it needs.

    In its own generation the job writes nothing again of what it has written since (rewind.py). Another one must have
    written nothing; it gets the markers under an identity of its own.

    Raises UserError if it doesn't fit.
    """
    check_fits(saved, settings, own_settings, topics, Log(settings.kafka_bootstrap))
    query = settings.query_of(saved.job)
    done = [m.done for m in markers_of(tasks_of(settings, query, saved.run))]
    done += [m.done for m in markers_of(driver_of(settings, query, saved.run))]
    same = settings.generation == saved.generation
    if same and done and not (saved.is_settled and saved.fits(done)):
        _put_back(saved, settings)
        return
    if done and not same:
        raise UserError(
            f"generation={settings.generation}: its {saved.job} has written until batch {max(done) - 1}, which isn't "
            f"what follows on the savepoint {saved.name!r}; kappa replay start --job {saved.job} "
            f"--from savepoint:{saved.name} --as NAME"
        )
    if same and not saved.is_settled:
        raise UserError(
            f"savepoint {saved.name!r}: was taken while its job went on, and the broker keeps no markers that say what "
            "was written since; start a new generation from this one"
        )
    identity = saved.run if same else str(uuid.uuid4())
    own = _own(saved, topics)
    _put_checkpoint(saved, settings, identity, own)
    if same:
        rewind.note_again(saved.job, saved, settings)
    if not done:
        _put_markers(saved, settings, identity, own, same=same)


def _put_back(saved: Savepoint, settings: Settings) -> None:
    kafka = Log(settings.kafka_bootstrap)
    written = rewind.written_by(saved.job, saved.topics, settings, kafka)
    assert written  # it has markers
    rewind.check(saved.job, saved, written)
    rewind.take_over(saved.job, written, settings)
    written = rewind.written_by(saved.job, saved.topics, settings, kafka) or written
    rewind.put_back(saved.job, saved, store_of(saved.name, settings) / FOLDER, written, settings)


def _put_checkpoint(saved: Savepoint, settings: Settings, identity: str, own: Mapping[str, str]) -> None:
    source, target = store_of(saved.name, settings) / FOLDER, Store.of(settings.checkpoint_of(saved.job))
    target.remove()
    for name in source.names():
        content = source.read(name)
        if name.startswith("offsets/"):
            content = _at_beginning(content, own)
        elif name.startswith(OPERATOR):
            content = moved(content, settings.checkpoint_of(saved.job))
        target.write(name, content)
    target.write("metadata", orjson.dumps({"id": identity}))


def _at_beginning(entry: bytes, own: Mapping[str, str]) -> bytes:
    """An entry of the offset log in which the generation's own topics take the places of others, unread."""
    plan = OffsetLogEntry.parse(entry.decode())
    sources = {
        name: {(own.get(topic, topic), at): 0 if topic in own else offset for (topic, at), offset in offsets.items()}
        for name, offsets in plan.sources.items()
    }
    return replace(plan, sources=sources).format().encode()


def _put_markers(saved: Savepoint, settings: Settings, identity: str, own: Mapping[str, str], *, same: bool) -> None:
    query = settings.query_of(saved.job)
    tasks, driver = tasks_of(settings, query, identity), driver_of(settings, query, identity)
    # In a new generation nothing of a batch beyond the savepoint's is written.
    done = {m.slot: m.done if same else saved.batch + 1 for m in saved.markers}
    commit(tasks, tasks.group, [marker_to_commit(tasks, m.slot, done[m.slot], m.tasks) for m in saved.markers])
    commit(driver, driver.group, [marker_to_commit(driver, 0, saved.driver if same else saved.batch + 1, 1)])
    offsets = {(topic, at): offset for (topic, at), offset in saved.offsets.items() if topic not in own}
    commit(tasks, query, topic_partitions(offsets))


def export(saved: Savepoint | ChainSavepoint, settings: Settings, file: Path) -> None:
    """Write a savepoint as one compressed file. Raises UserError if that is there already."""
    if file.exists():
        raise UserError(f"{file}: is there already; choose another name")

    def manifest(contents: archive.Contents) -> bytes:
        return orjson.dumps(saved.model_dump(mode="json") | contents.model_dump(mode="json"))

    archive.write(file, store_of(saved.name, settings), manifest)


def take_in(file: Path, name: str | None, settings: Settings) -> Savepoint | ChainSavepoint:
    """Read an exported savepoint into the store of this installation, maybe under another name.

    Nothing is written before the whole file was checked. Raises UserError if it is none, or the name is taken.
    """
    manifest, contents = archive.check(file)
    try:
        saved = parse(manifest)
    except ValidationError as error:
        raise UserError(f"{file}: its {MANIFEST} can't be used: {describe(error)[:300]}") from None
    if isinstance(saved, Savepoint) and saved.job not in (one.name for one in JOBS if one.is_replayable):
        raise UserError(f"{file}: job={saved.job!r}: savepoints are taken of {SAVEABLE}, or of all jobs")
    saved = saved.model_copy(update={"name": name or saved.name})
    store = store_of(saved.name, settings)
    if store.names():
        raise UserError(f"savepoint {saved.name!r}: there is one already; use --as")
    if (free := store.free_bytes()) is not None and contents.total > free:
        raise UserError(f"{file}: unpacks to {contents.total:,} bytes; {store.path} has room for {free:,}")
    archive.unpack(file, contents, store)
    store.write(MANIFEST, saved.model_dump_json(indent=1).encode())
    return saved

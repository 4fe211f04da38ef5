"""Cut and return on a real broker, without Spark: what markers and offsets say, and what a copy that runs meets."""

import uuid

import pytest
from confluent_kafka import TopicPartition

from connectors.kafka import admin
from connectors.kafka.client import open_consumer
from connectors.kafka.markers import MarkedWriter, ProgressError
from connectors.kafka.offsets import Log
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.commits import BatchCommitter, TakenOverError
from jobs.runtime.offset_log import OffsetLogEntry
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.savepoints import cut, rewind
from ops.savepoints.saved import SavedMarker, Savepoint, tasks_of
from ops.savepoints.store import Store

QUERY, RUN = "detector", "the first"
TASKS = 2


@pytest.fixture
def settings(servers, tmp_path):
    """Of a generation of this test's own, whose topics are there."""
    settings = Settings(kafka_bootstrap=servers.bootstrap, home=tmp_path, generation=f"t{uuid.uuid4().hex[:8]}")
    client = admin.connect(servers.bootstrap)
    admin.apply(client, [*topics_of(settings).derived, load_topics()["sink.progress"]])
    yield settings
    admin.delete(client, [topic.name for topic in topics_of(settings).derived])


def topics_of(settings):
    return JOBS.topics_in(load_topics(), settings.generation)


class Job:
    """The detector as far as the broker sees it: tasks that write, and a driver that commits."""

    def __init__(self, settings, run=RUN, planned=0):
        self.progress = tasks_of(settings, settings.query_of(QUERY), run)
        topics = topics_of(settings)
        self.reads, self.writes = topics["statistics"].name, topics["novelties"].name
        self.committer = BatchCommitter(self.progress, lambda: planned)
        self.tasks = [MarkedWriter(self.progress, slot) for slot in range(TASKS)]

    def write(self, slot, batch):
        task = self.tasks[slot]
        if task.begin_batch(batch, TASKS):
            task.produce([(self.writes, slot, b"m", b"batch %d" % batch, 1, None)])
            task.commit()

    def do(self, batch, *offsets):
        """A whole batch, which ends at these offsets of its input."""
        for slot in range(TASKS):
            self.write(slot, batch)
        self.commit(batch, *offsets)

    def commit(self, batch, *offsets):
        self.committer.check(batch)
        self.committer.commit(batch, {(self.reads, at): offset for at, offset in enumerate(offsets)})


def noted(settings, batch):
    Store.of(settings.checkpoint_of(QUERY)).write(f"commits/{batch}", b"v1")


def settle(settings):
    return cut.settle(QUERY, QUERY, settings, topics_of(settings), Log(settings.kafka_bootstrap))


def ends(settings):
    topic = topics_of(settings)["novelties"].name
    return {number: offset for (_, number), offset in Log(settings.kafka_bootstrap).ends([topic]).items()}


def written(settings):
    topics = topics_of(settings)
    return rewind.written_by(QUERY, [topics["statistics"].name], settings, Log(settings.kafka_bootstrap))


def test_a_query_is_taken_between_two_batches_and_not_within_one(settings, monkeypatch):
    assert settle(settings) is None
    job = Job(settings)
    job.do(0, 5, 6)
    noted(settings, 0)
    after_first = ends(settings)
    assert {at: offset for (_, at), offset in settle(settings).ends.items()} == after_first

    # The next batch is written by one of its two tasks: no moment between two batches.
    job.write(0, 1)
    assert ends(settings) != after_first
    monkeypatch.setattr(cut, "PATIENCE_SECONDS", 1.0)
    with pytest.raises(UserError, match="detector: its last batch is written in part"):
        settle(settings)
    with pytest.raises(UserError, match="detector: its batch 1 is written in part; start the job once"):
        written(settings)
    job.write(1, 1)
    job.commit(1, 7, 8)
    noted(settings, 1)
    found = settle(settings)
    assert found.batch == 1 and {at: offset for (_, at), offset in found.ends.items()} == ends(settings)


def test_a_job_that_is_put_back_knows_what_it_has_written_whatever_it_reads_again(settings):
    topic = topics_of(settings)["statistics"].name
    job = Job(settings)
    for batch, offsets in enumerate([(5, 6), (7, 8), (9, 9)]):
        job.do(batch, *offsets)
    found = written(settings)
    assert (found.done, found.run, {**found.slots}) == (3, RUN, {0: TASKS, 1: TASKS})
    assert (found.offsets[topic, 0], found.offsets[topic, 1]) == (9, 9)

    saved = Savepoint(
        name="sp", job=QUERY, generation=settings.generation, batch=0, planned=False, run=RUN,
        offsets={(topic, 0): 5, (topic, 1): 6}, sources=("statistics",), driver=1, shuffle_partitions=2, settings={},
        markers=tuple(SavedMarker(slot=slot, done=1, tasks=TASKS) for slot in range(TASKS)), layout={}, shards=2,
    )  # fmt: skip
    copy = Store.of(settings.savepoint_of("sp")) / "checkpoint"
    plan = OffsetLogEntry("v2", "{}", {"statistics": saved.offsets})
    for name, content in [("metadata", "{}"), ("offsets/0", plan.format()), ("commits/0", "v1\n{}")]:
        copy.write(name, content.encode())
    rewind.check(QUERY, saved, found)
    rewind.take_over(QUERY, found, settings)
    with pytest.raises(TakenOverError, match="another copy of this job runs"):
        job.commit(3, 10, 10)  # the one that ran
    rewind.put_back(QUERY, saved, copy, found, settings)

    # It begins again behind batch 0, under another identity; the former checkpoint is refused.
    with pytest.raises(ProgressError, match="belong to checkpoint"):
        Job(settings)
    run = Store.of(settings.checkpoint_of(QUERY)).read("metadata").decode().split('"')[3]
    again = Job(settings, run)
    again.do(1, 6, 7)
    now = written(settings)
    assert (now.done, now.run) == (2, run)
    assert (now.offsets[topic, 0], now.offsets[topic, 1]) == (9, 9)  # though it has read until 6 and 7 only
    again.do(2, 12, 8)
    assert (written(settings).offsets[topic, 0], written(settings).offsets[topic, 1]) == (12, 9)


def test_what_was_noted_for_another_checkpoint_does_not_count(settings):
    job = Job(settings)
    job.do(0, 5, 6)
    topic = topics_of(settings)["statistics"].name
    with open_consumer(job.progress.connection, f"{job.progress.query}.written") as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 99, metadata="another")], asynchronous=False)
    assert written(settings).offsets[topic, 0] == 5

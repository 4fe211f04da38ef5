"""BatchCommitter a batch on a real broker: the lag that ordinary tools show, and two copies of one job."""

import os
import subprocess
import time
import uuid
from contextlib import suppress
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from connectors.kafka.admin import connect
from connectors.kafka.markers import ProgressError
from connectors.kafka.offsets import latest_offsets
from connectors.sinks.kafka import SinkSettings
from infra.jars import default_jars
from infra.jdk import KAFKA_JAVA, find_jdk
from infra.local.kafka import KafkaBroker
from jobs.runtime import commits
from jobs.runtime.commits import BatchCommitter, TakenOverError
from tests.integration.conftest import free_ports
from tests.waiting import until


@pytest.fixture
def settings(servers) -> SinkSettings:
    """Of a query of this test's own; its input topic `<query>.in` holds 10 records in each of two partitions."""
    query = f"commits-{uuid.uuid4().hex[:8]}"
    admin = connect(servers.bootstrap)
    for creation in admin.create_topics([NewTopic(f"{query}.in", 2, 1), NewTopic(f"{query}.progress", 2, 1)]).values():
        creation.result()
    producer = Producer({"bootstrap.servers": servers.bootstrap})
    for number in range(20):
        producer.produce(f"{query}.in", b"x", partition=number % 2)
    assert producer.flush(30) == 0
    return SinkSettings(servers.bootstrap, query, "run-1", f"{query}.progress", 60_000)


def committer(settings, planned=1):
    """Of a checkpoint whose last planned batch is `planned`."""
    return BatchCommitter(settings, lambda: planned)


def offsets(settings, first, second):
    return {(f"{settings.query}.in", 0): first, (f"{settings.query}.in", 1): second}


def describe(settings):
    """What `kafka-consumer-groups --describe` prints of the job's group: (partition, offset, end, lag)."""
    done = subprocess.run(
        [
            find_jdk(KAFKA_JAVA, "Kafka") / "bin" / "java",
            *("-cp", f"{default_jars()}/kafka/*", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"),
            *("--bootstrap-server", settings.bootstrap, "--describe", "--group", settings.query),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(settings.query)]
    header = next(line.split() for line in done.stdout.splitlines() if line.startswith("GROUP"))
    columns = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    return sorted(tuple(row[header.index(name)] for name in columns) for row in rows)


def test_the_real_tool_shows_a_jobs_lag(settings):
    committer(settings).commit(0, offsets(settings, 10, 4))

    topic = f"{settings.query}.in"
    assert describe(settings) == [(topic, "0", "10", "10", "0"), (topic, "1", "4", "10", "6")]


def test_a_second_copy_of_a_job_ends_the_first(settings):
    first = committer(settings)
    first.commit(0, offsets(settings, 1, 1))
    second = committer(settings)
    with pytest.raises(TakenOverError, match=f"another copy of this job runs on .* process {os.getpid()}"):
        first.check(1)
    with pytest.raises(TakenOverError, match="another copy of this job runs"):
        first.check_owner()
    second.commit(1, offsets(settings, 3, 3))


def test_a_copy_that_is_fenced_within_a_batch_does_not_commit_it(settings):
    first = committer(settings)
    first.check(0)
    second = committer(settings)
    with pytest.raises(TakenOverError, match="another copy of this job runs"):
        first.commit(0, offsets(settings, 1, 1))
    second.check(0)
    second.commit(0, offsets(settings, 1, 1))
    second.check_owner()


def test_an_old_checkpoint_is_refused_before_it_fences_anyone(settings):
    first = committer(settings)
    for batch in range(3):
        first.check(batch)
        first.commit(batch, offsets(settings, batch + 1, 1))
    with pytest.raises(ProgressError, match="batch 1 is to be written, but batch 2 was: the checkpoint is an old copy"):
        committer(settings, planned=1)
    first.check(3)
    first.commit(3, offsets(settings, 4, 1))


def test_a_copy_that_lost_does_not_take_back_from_one_that_works(settings, monkeypatch):
    """As a container does that is started again whatever its exit code."""
    on = lambda host: monkeypatch.setattr(commits.socket, "gethostname", lambda: host)  # noqa: E731
    on("pod-a")
    committer(settings)
    on("pod-b")
    second = committer(settings)
    done = iter(range(100))

    def work(_seconds):
        batch = next(done)
        second.check(batch)
        second.commit(batch, offsets(settings, batch, 1))

    # Its own alone: a call of the second copy that is tried again sleeps, too.
    monkeypatch.setattr(commits, "time", SimpleNamespace(sleep=work, monotonic=time.monotonic))
    on("pod-a")
    with pytest.raises(TakenOverError, match="another copy of this job runs on pod-b"):
        committer(settings)
    second.check_owner()


def test_a_copy_that_lost_takes_over_from_one_that_rests(settings, monkeypatch):
    monkeypatch.setattr(commits, "WATCH_SECONDS", 0.1)
    for host in ("pod-a", "pod-b"):
        monkeypatch.setattr(commits.socket, "gethostname", lambda host=host: host)
        second = committer(settings)
    monkeypatch.setattr(commits.socket, "gethostname", lambda: "pod-a")
    committer(settings).check_owner()
    with pytest.raises(TakenOverError, match="runs on pod-a"):
        second.check_owner()


def test_a_second_copy_with_another_checkpoint_is_refused_and_the_first_goes_on(settings):
    first = committer(settings)
    first.commit(0, offsets(settings, 1, 1))
    other = SinkSettings(settings.bootstrap, settings.query, "run-2", settings.progress_topic, 60_000)
    with pytest.raises(ProgressError, match="belong to checkpoint run-1, this one is run-2"):
        committer(other)
    first.commit(1, offsets(settings, 2, 2))


def test_a_committed_batch_is_not_committed_again(settings):
    """Its watermarks would be written twice."""
    committer(settings).commit(
        0, offsets(settings, 1, 1), [(f"{settings.query}.in", 0, None, b"watermark", 1_000, None)]
    )
    again = committer(settings, planned=0)
    again.check(0)
    again.commit(0, offsets(settings, 1, 1), [(f"{settings.query}.in", 0, None, b"watermark", 1_000, None)])

    with pytest.raises(ProgressError, match="the checkpoint is an old copy"):
        again.commit(-1, offsets(settings, 1, 1))
    assert watermarks(settings) == [b"watermark"]


def watermarks(settings):
    """What was added to the input topic's partition 0 after its ten records."""
    consumer = Consumer(
        {"bootstrap.servers": settings.bootstrap, "group.id": str(uuid.uuid4()), "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(f"{settings.query}.in", 0, 10)])
    found = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        found.append(message.value())
    consumer.close()
    return found


def test_the_ends_are_known_after_a_brokers_restart(tmp_path):
    broker = KafkaBroker(tmp_path, free_ports(2), heap="300m", jars=default_jars())
    try:
        admin = connect(started(broker).address)
        admin.create_topics([NewTopic("ends", 2)])["ends"].result(30)
        producer = Producer({"bootstrap.servers": broker.address})
        producer.produce("ends", b"1", partition=1)
        assert not producer.flush(30)
        await_ends(admin, {("ends", 0): 0, ("ends", 1): 1})
        broker.kill()
        started(broker)
        await_ends(admin, {("ends", 0): 0, ("ends", 1): 1})
    finally:
        broker.kill()


def await_ends(admin, expected):
    def are_known():
        with suppress(KafkaException):  # leaders are elected a moment after a broker's start
            return latest_offsets(admin, expected) == expected

    until(are_known, 120, "the ends are not known")


def started(broker: KafkaBroker) -> KafkaBroker:
    broker.spawn()
    until(broker.ready, broker.ready_seconds, "the broker does not start")
    return broker

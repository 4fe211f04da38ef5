"""BatchCommitter a batch on a real broker: the lag that ordinary tools show, and two copies of one job."""

import subprocess
import uuid
from contextlib import suppress

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
    BatchCommitter(settings).commit(0, offsets(settings, 10, 4))

    topic = f"{settings.query}.in"
    assert describe(settings) == [(topic, "0", "10", "10", "0"), (topic, "1", "4", "10", "6")]


def test_a_second_copy_of_a_job_ends_the_first(settings):
    first = BatchCommitter(settings)
    first.commit(0, offsets(settings, 1, 1))
    second = BatchCommitter(settings)
    with pytest.raises(TakenOverError, match="another copy of this job runs"):
        first.commit(1, offsets(settings, 2, 2))
    second.commit(1, offsets(settings, 3, 3))


def test_a_second_copy_with_another_checkpoint_is_refused_and_the_first_goes_on(settings):
    first = BatchCommitter(settings)
    first.commit(0, offsets(settings, 1, 1))
    other = SinkSettings(settings.bootstrap, settings.query, "run-2", settings.progress_topic, 60_000)
    with pytest.raises(ProgressError, match="belong to checkpoint run-1, this one is run-2"):
        BatchCommitter(other)
    first.commit(1, offsets(settings, 2, 2))


def test_a_committed_batch_is_not_committed_again(settings):
    """Its watermarks would be written twice."""
    BatchCommitter(settings).commit(
        0, offsets(settings, 1, 1), [(f"{settings.query}.in", 0, None, b"watermark", 1_000, None)]
    )
    again = BatchCommitter(settings)
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

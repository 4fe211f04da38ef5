"""What a micro-batch of a job reads of its topics' partitions."""

import pytest
from confluent_kafka import Producer

from jobs.runtime.job import Context
from jobs.runtime.settings import Settings
from tests.waiting import until

LIMIT, BACKLOG, NEW, BATCHES = 1_000, 10_000, 20, 5


@pytest.fixture
def send(servers):
    """Sends numbers to a partition, and waits until they have arrived."""
    producer = Producer({"bootstrap.servers": servers.bootstrap})

    def to(topic, partition, numbers):
        for number in numbers:
            producer.produce(topic, str(number), partition=partition)
        assert producer.flush(60) == 0

    return to


def test_few_new_records_do_not_wait_for_the_backlog_of_another_partition(spark, servers, topics, tmp_path, send):
    topic = topics["events"]
    settings = Settings(kafka_bootstrap=servers.bootstrap, home=tmp_path, max_offsets_per_trigger=LIMIT)
    send(topic.name, 0, range(BACKLOG))
    send(topic.name, 1, range(NEW))
    read = []

    def write(frame, batch_id):
        rows = frame.select("partition", "value").collect()
        read.append({place: sorted(int(row.value) for row in rows if row.partition == place) for place in (0, 1)})
        send(topic.name, 1, range(NEW * (batch_id + 1), NEW * (batch_id + 2)))

    stream = Context(spark, settings, topics).stream("events", [topic])
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        until(lambda: query.exception() or len(read) >= BATCHES, 120, "the stream is slow")
    finally:
        query.stop()
    assert query.exception() is None
    size = LIMIT - NEW
    assert read[:BATCHES] == [
        {
            0: [*range(batch * size, (batch + 1) * size)],
            1: [*range(batch * NEW, (batch + 1) * NEW)],
        }
        for batch in range(BATCHES)
    ]

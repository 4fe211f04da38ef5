"""What a micro-batch of a job reads of its topics' partitions."""

from itertools import chain

import orjson
import pytest
from confluent_kafka import Producer

from infra.contract.watermarks import watermark_value
from jobs.runtime.job import Context
from jobs.runtime.settings import Settings
from tests.waiting import until

LIMIT, BACKLOG, NEW, BATCHES = 1_000, 10_000, 20, 5
STEP = 10_000_000_000


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


def test_records_are_gathered_until_a_watermark_takes_a_step(spark, servers, topics, tmp_path):
    topic = topics["events"]
    settings = Settings(kafka_bootstrap=servers.bootstrap, home=tmp_path, trigger_seconds=600)
    producer = Producer({"bootstrap.servers": servers.bootstrap, "transactional.id": "gathering"})
    producer.init_transactions()
    gathered, at_once = [], []

    def start(read, name, **more):
        def write(frame, _):
            values = [
                bytes(row.value) for row in frame.where("partition = 0 and key is not null").sort("offset").collect()
            ]
            read.extend([values] if values else [])

        stream = Context(spark, settings, topics).stream("events", [topic], **more)
        return stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / name)).start()

    queries = [start(gathered, "gathered", step=STEP), start(at_once, "at_once")]

    def commit(value, watermark):
        """As a job does: in the end a watermark in each partition. Returns when a stream that doesn't gather has it."""
        producer.begin_transaction()
        producer.produce(topic.name, value, key="vm-1", partition=0)
        for partition in range(topic.partitions):
            producer.produce(topic.name, watermark_value(watermark), partition=partition)
        producer.commit_transaction()
        until(lambda: value in chain.from_iterable(at_once), 120, "the stream is slow")

    def has_read(transactions):
        """Whether the stream that gathers has these: in the first partition of three offsets each, else of two."""
        progress = queries[0].lastProgress
        ends = orjson.loads(progress["sources"][0]["endOffset"])[topic.name] if progress else {}
        return ends == {str(place): (2 if place else 3) * transactions for place in range(topic.partitions)}

    try:
        for number, watermark in enumerate((101, 105, 109, 110, 113, 119, 120)):
            commit(b"%d" % number, watermark * STEP // 10)
            if watermark in (101, 110, 120):
                until(lambda done=number + 1: has_read(done), 120, "a batch is late")
    finally:
        for query in queries:
            query.stop()
    assert [query.exception() for query in queries] == [None, None]
    # A transaction's markers come to one partition after the other: its own batch may be two.
    assert [batch[:2] for batch in gathered if batch[0] in b"014"] == [[b"0"], [b"1", b"2"], [b"4", b"5"]]
    assert list(chain.from_iterable(gathered)) == [b"%d" % number for number in range(7)]

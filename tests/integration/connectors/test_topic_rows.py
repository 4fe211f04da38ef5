"""Which rows of a frame are read from which topic, as Spark's source for Kafka cuts it, and files of a table."""

import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from connectors.kafka.admin import connect
from connectors.topic_rows import only_of
from tests.waiting import until

RECORDS = 10


@pytest.fixture(scope="module")
def topics(servers):
    """Two topics of two partitions, each with records in both."""
    names = [f"rows-{kind}-{uuid.uuid4().hex[:8]}" for kind in ("a", "b")]
    admin = connect(servers.bootstrap)
    for created in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        created.result(30)
    until(lambda: admin.list_topics().topics.keys() >= {*names}, 30, "the brokers tell of the topics")
    producer = Producer({"bootstrap.servers": servers.bootstrap})
    for name in names:
        for number in range(RECORDS):
            producer.produce(name, f"{name} {number}".encode(), partition=number % 2)
    assert producer.flush(60) == 0
    return names


def read(spark, servers, *topics):
    source = spark.readStream.format("kafka").name("-".join(topics).replace(".", "_").replace("-", "_"))
    options = {"kafka.bootstrap.servers": servers.bootstrap, "subscribe": ",".join(topics)}
    return source.options(**options, startingOffsets="earliest").load().select("value", "topic")


def in_a_batch(stream, folder, look):
    """What `look` gives of the stream's only micro-batch."""
    found = []
    writer = stream.writeStream.trigger(availableNow=True).option("checkpointLocation", str(folder))
    writer.foreachBatch(lambda frame, _: found.append(look(frame))).start().awaitTermination(120)
    (one,) = found
    return one


def partitions_of(frame):
    return frame._jdf.queryExecution().toRdd().getNumPartitions()


def values(frame):
    return sorted(bytes(row.value).decode() for row in frame.collect())


@pytest.mark.parametrize("is_united", [False, True])
def test_partitions_of_other_topics_are_left_out(spark, servers, topics, tmp_path, is_united):
    one, other = topics
    united = read(spark, servers, one).union(read(spark, servers, other))
    stream = united if is_united else read(spark, servers, *topics)

    def look(frame):
        parts = [only_of(frame, [name]) for name in topics]
        sizes = [partitions_of(found) for found in (frame, *parts)]
        return sizes, [values(found) for found in parts], values(only_of(frame, topics)), only_of(frame, ["nobody"])

    sizes, of_each, of_both, of_nobody = in_a_batch(stream, tmp_path, look)
    assert sizes == [4, 2, 2]
    assert of_each == [[f"{name} {number}" for number in range(RECORDS)] for name in topics]
    assert of_both == sorted([*of_each[0], *of_each[1]])
    assert of_nobody is None


def test_of_a_frame_that_was_shuffled_all_stays(spark, servers, topics, tmp_path):
    stream = read(spark, servers, *topics).repartition(3)
    every, found = in_a_batch(stream, tmp_path, lambda frame: (values(frame), values(only_of(frame, topics[:1]))))
    assert found == every
    assert len(every) == 2 * RECORDS


def table(spark, folder, *partitioned_by):
    """A Delta table of two topics; some files for each, unless it is partitioned by something else."""
    rows = [(f"{name} {number}".encode(), name, 1) for name in ("a", "b") for number in range(RECORDS)]
    frame = spark.createDataFrame(rows, "value binary, topic string, date int")
    frame.write.format("delta").partitionBy(*partitioned_by).save(str(folder))
    return spark.read.format("delta").load(str(folder))


def test_files_of_a_table_by_topic_that_have_none_of_them_are_not_read(spark, tmp_path):
    found = table(spark, tmp_path / "t", "topic", "date")
    a, b = (found.where(found["topic"] == name).select("value", "topic") for name in ("a", "b"))
    united = a.unionByName(b)
    assert values(only_of(united, ["a"])) == values(a) == [f"a {number}" for number in range(RECORDS)]
    assert values(only_of(united, ["a", "b"])) == values(united)
    assert only_of(united, ["nobody"]) is None
    # Files of both may be read together: then all of these stay.
    assert {*values(only_of(found, ["b"]))} >= {*values(b)}


def test_of_a_table_by_something_else_all_stays(spark, tmp_path):
    found = table(spark, tmp_path / "t", "date")
    assert values(only_of(found, ["a"])) == values(found)

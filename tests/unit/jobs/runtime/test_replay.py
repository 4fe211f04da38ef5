import pytest
from pyspark.sql import functions as F

from infra.contract.topics import load_topics
from jobs.runtime.replay import OFFSET_HEADER, Replay

KAFKA = (
    "key binary, value binary, topic string, partition int, offset long, headers array<struct<key:string,value:binary>>"
)


@pytest.fixture
def rows(spark):
    """A topic's records as Kafka's rows: (topic, partition, offset, value), watermarks without a key."""

    def rows(*records):
        full = [
            (None if b"watermark" in value else b"k", value, topic, partition, offset, None)
            for topic, partition, offset, value in records
        ]
        return spark.createDataFrame(full, KAFKA)

    return rows


def test_without_a_plan_everything_is_read():
    assert Replay().starting_offsets(["events"]) == "earliest"
    assert Replay().batch_records(["events"], 20_000, 2.0) == 20_000


def test_sources_get_their_part_of_a_batch_by_backlog():
    replay = Replay(start={("a", 0): 0, ("b", 0): 5}, backlog={"a": 3000, "b": 1000, "c": 0})
    assert [replay.batch_records([topic], 1000, 2.0) for topic in "abc"] == [750, 250, 20]
    assert replay.starting_offsets(["b"]) == '{"b": {"0": 5}}'


def test_a_plan_is_stored_by_topic_and_partition():
    """As the topic `generations` holds it, and has from the beginning."""
    replay = Replay(start={("a", 0): 7, ("a", 1): 8}, end={("b", 3): 9})
    stored = replay.model_dump(mode="json")
    assert (stored["start"], stored["end"]) == ({"a": {"0": 7, "1": 8}}, {"b": {"3": 9}})
    assert Replay.model_validate_json(replay.model_dump_json()) == replay
    assert Replay.model_validate_json('{"start": {"a": {"0": 7}}, "end": {}}') == Replay(start={("a", 0): 7})


def test_the_rate_bounds_a_batch():
    replay = Replay(start={("a", 0): 0}, backlog={"a": 10}, max_rate=100)
    assert replay.batch_records(["a"], 20_000, 2.0) == 200
    assert replay.batch_records(["a"], 50, 2.0) == 50


def test_nothing_after_the_end_is_taken(rows):
    replay = Replay(end={("events", 0): 2, ("events", 1): 0})
    found = replay.part(
        rows(("events", 0, 1, b"{}"), ("events", 0, 2, b"{}"), ("events", 1, 0, b"{}")), [load_topics()["events"]]
    )
    assert [(row.partition, row.offset) for row in found.collect()] == [(0, 1)]


def test_a_condition_lets_watermarks_pass_and_what_is_for_many_machines(rows):
    records = [b'{"machine":"upf-1"}', b'{"machine":"vm-1"}', b'{"watermark_unix_nano":5}', b'{"machine":"vm-*"}']
    frame = rows(*(("events", 0, offset, value) for offset, value in enumerate(records)))
    found = Replay(where="machine like 'upf-%'").part(frame, [load_topics()["events"]])
    assert [row.offset for row in found.collect()] == [0, 2, 3]
    assert found.columns == frame.columns


def test_a_restored_record_is_seen_where_it_stood(rows):
    replay = Replay(restored={"events.v2": "events"})
    header = F.array(F.struct(F.lit(OFFSET_HEADER).alias("key"), F.lit("117").cast("binary").alias("value")))
    kept = F.array(F.struct(F.lit("kappa.schema").alias("key"), F.lit("1").cast("binary").alias("value")))
    frame = rows(("events.v2", 1, 0, b"{}")).withColumn("headers", F.concat(kept, header))
    (row,) = replay.part(frame, [load_topics()["events"]]).collect()
    assert (row.topic, row.partition, row.offset) == ("events", 1, 117)
    assert [(h.key, bytes(h.value)) for h in row.headers] == [("kappa.schema", b"1")]
    assert replay.subscribed(["events", "inventory"]) == ["events.v2", "inventory"]
    assert replay.original({("events.v2", 1): 3}) == {("events", 1): 3}

"""The statistics fold as Spark calls it, and the windows that a checkpoint is bound to."""

from datetime import UTC, datetime
from functools import partial

import orjson
import pytest
from pyspark.sql import functions as F

from infra.contract.columnar import event_columns
from infra.errors import UserError
from jobs.runtime.checkpoint import Checkpoint
from jobs.runtime.fold import fold_partitions, to_records
from jobs.runtime.shard_state import Input
from jobs.statistics.job import check_windows
from jobs.statistics.settings import Windows, load_windows
from jobs.statistics.shard import EARLY, Shard

NANO = 1_000_000_000
SHARDS = (0, 3)
ROWS = (
    "topic string, partition int, offset long, value string, timestamp timestamp,"
    " headers array<struct<key:string,value:binary>>"
)
TIME = datetime(2026, 1, 1, tzinfo=UTC)  # Kafka's


def log(shard):
    """Two minutes of one machine, a record each 5 s, and watermarks."""
    for second in range(0, 150, 5):
        event = {"time_unix_nano": (600 + second) * NANO, "series": "load", "name": "load", "value": second / 10}
        facts = {"id": f"{shard}-{second}", "machine": f"vm-{shard}", "kind": "metric", "inventory": {"known": False}}
        yield orjson.dumps(facts | {"events": event_columns([event])})
        if second % 20 == 0:
            yield orjson.dumps({"watermark_unix_nano": (600 + second) * NANO})


def test_batches_of_spark_give_what_the_fold_gives_at_once(spark, tmp_path):
    batches = [(0, 20), (20, 21), (21, 99)]
    for number, (begin, end) in enumerate(batches):
        rows = [
            ("events", shard, n, value.decode(), TIME, []) for shard in SHARDS for n, value in enumerate(log(shard))
        ]
        part = [row for row in rows if begin <= row[2] < end]
        spark.createDataFrame(part, ROWS).coalesce(1).write.json(str(tmp_path / f"in/{number}"))
    stream = spark.readStream.format("json").name("events").schema(ROWS).option("maxFilesPerTrigger", 1)
    kafka = stream.load(str(tmp_path / "in/*")).withColumn("value", F.col("value").cast("binary"))
    folded = fold_partitions(kafka, partial(Shard, load_windows()))
    query = (
        folded.transform(to_records, {"statistics": "statistics", EARLY: "early"}, same_partition=True)
        .writeStream.format("memory")
        .queryName("folded")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert (
        sum(operator["numRowsDroppedByWatermark"] for p in query.recentProgress for operator in p["stateOperators"])
        == 0
    )
    found = [(r.topic, r.partition, r.key, bytes(r.value)) for r in spark.table("folded").collect() if r.key]
    expected = []
    for shard in SHARDS:
        values = list(log(shard))
        outputs = Shard(load_windows()).feed(Input("events", shard, range(len(values)), values))
        expected += [("early" if o.topic == EARLY else "statistics", shard, o.key, o.value) for o in outputs if o.key]
    assert sorted(found) == sorted(expected)
    assert {topic for topic, *_ in found} == {"statistics", "early"}


def windows(*sizes):
    return Windows.model_validate({"windows": [{"kind": "tumbling", "size": size} for size in sizes]})


def test_a_checkpoint_is_bound_to_its_windows(spark, tmp_path):
    checkpoint = Checkpoint(spark, str(tmp_path / "checkpoint"))
    check_windows(windows("10s", "1m"), checkpoint, "live")
    check_windows(windows("1m", "10s"), checkpoint, "live")
    with pytest.raises(UserError) as refused:
        check_windows(windows("10s", "2m"), checkpoint, "live")
    assert str(refused.value) == (
        "KAPPA_STATISTICS_WINDOWS: generation 'live' began with other windows: without {kind: tumbling, size: 120s}, "
        "with {kind: tumbling, size: 60s}; put them back, or start a new one: kappa run statistics --generation NAME"
    )


def test_a_checkpoint_that_names_no_windows_is_refused(spark, tmp_path):
    """One that older code began."""
    (tmp_path / "metadata").write_text("{}")
    with pytest.raises(UserError, match="generation 'v2' began with other windows"):
        check_windows(windows("10s"), Checkpoint(spark, str(tmp_path)), "v2")

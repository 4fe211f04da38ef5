from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.replay.restore import archived, between, check_nothing_is_gone, gone, headers_of, to_list

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_a_stretch_of_the_log_is_whole_though_times_do_not_ascend(spark):
    """Watermarks, for one, are stamped earlier than what stands before them."""
    stamps = [100, 200, 150, 300, 250, 400]
    rows = [("events", 0, offset, stamp) for offset, stamp in enumerate(stamps)] + [("events", 1, 7, 120)]
    frame = spark.createDataFrame(rows, "topic string, partition int, offset long, timestamp_ms long")

    def kept(begin, end):
        found = between(frame, begin, end).orderBy("partition", F.col("offset")).collect()
        return [(row.partition, row.offset) for row in found]

    assert kept(160, 300) == [(0, 1), (0, 2)]
    assert kept(120, None) == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 7)]
    assert kept(0, 251) == [(0, 0), (0, 1), (0, 2), (1, 7)]


def test_a_record_that_several_archives_hold_is_there_once(spark, tmp_path):
    """Those that hold none of the topics, or nothing more, aren't compared: that would shuffle every record."""
    settings = Settings(home=tmp_path)
    logs = {"live": [("a", 0, 0), ("a", 0, 1)], "v1": [("a", 0, 1), ("a", 0, 2)], "v2": [("events.v2", 0, 0)]}
    logs["v3"] = [("a", 0, 1), ("events.v3", 0, 7)]
    for generation, rows in logs.items():
        log = spark.createDataFrame(rows, "topic string, partition int, offset long")
        log = log.withColumn("timestamp", F.timestamp_millis(F.col("offset")))
        log.write.format("delta").partitionBy("topic").save(
            settings.model_copy(update={"generation": generation}).delta_of("log")
        )

    def found(*generations):
        frame = archived(generations, ["a"], settings, spark)
        is_compared = "Deduplicate" in frame._jdf.queryExecution().analyzed().toString()
        return sorted((row.offset, row.timestamp_ms) for row in frame.collect()), is_compared

    assert found("live", "v1") == ([(0, 0), (1, 1), (2, 2)], True)
    assert found("live", "v2") == ([(0, 0), (1, 1)], False)
    assert found("live", "v3", "v2") == ([(0, 0), (1, 1)], False)
    assert found("v3", "live", "v1") == ([(0, 0), (1, 1), (2, 2)], True)
    assert found("v2") == ([], False)


def test_what_the_archive_has_deleted_is_told_with_its_count_and_where_it_begins(spark):
    day = 86_400_000
    rows = [("a", 0, 40, 3 * day + 5), ("a", 0, 41, 4 * day), ("a", 1, 0, 3 * day), ("b", 0, 7, day), ("c", 0, 0, day)]
    frame = spark.createDataFrame(rows, "topic string, partition int, offset long, timestamp_ms long")
    of_a, of_b = ("a", 40, datetime(1970, 1, 4, 0, 0, 0, 5_000, UTC)), ("b", 7, datetime(1970, 1, 2, tzinfo=UTC))
    assert gone(frame, 0) == [of_a, of_b]
    assert gone(frame, 2 * day) == [of_a]
    assert gone(frame, 3 * day) == [], "of that day nothing was deleted"
    with pytest.raises(UserError, match=r"of a the archive begins at 1970-01-04T00:00:00Z: 40 records before are gone"):
        check_nothing_is_gone(frame, 2 * day)
    check_nothing_is_gone(frame, 0)


def test_headers_become_pairs():
    rows = [
        [{"key": "kappa.source", "value": b"in/0/1"}, {"key": "kappa.schema", "value": b"events/1"}],
        [],
        [{"key": "kappa.source", "value": None}],
    ]
    assert list(headers_of(pa.array(rows, HEADERS))) == [
        [("kappa.source", b"in/0/1"), ("kappa.schema", b"events/1")],
        [],
        [("kappa.source", None)],
    ]


def test_a_batch_without_headers_has_none():
    assert list(headers_of(pa.array([[], []], HEADERS))) == [None, None]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"a", None, b""], pa.binary()),
        pa.array(["ä", None, ""], pa.string()),
        pa.array([2**62, -1], pa.int64()),
        pa.array([], pa.binary()),
    ],
)
def test_columns_become_what_they_hold(column):
    assert to_list(column) == column.to_pylist()
    assert to_list(column.slice(1)) == column.slice(1).to_pylist()

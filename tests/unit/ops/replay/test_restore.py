import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from ops.replay.restore import between, headers_of, to_list

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

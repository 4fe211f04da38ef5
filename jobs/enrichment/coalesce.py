"""One record for all data points that a task has of a machine, and one for all log lines of each of its services, as
far as the same inventory facts apply to them.

With one event a record, what costs is the record: here and in every job after this one. How a log is cut into batches
decides what is coalesced, so nothing may depend on it: events stay as they are, and their own.
"""

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.java_class import java_class
from connectors.prepared import Step

# What all points of a record have in common; the partition of the source, so that it can be named.
_COMMON = ("topic", "partition", "machine", "kind", "resource", "inventory")


class Coalescing(NamedTuple):
    """How rows become fewer: `gather` computes them, `before` and `after` are Spark's columns alone."""

    before: Step
    gather: Step
    after: Step


def coalesced() -> Coalescing:
    """Fewer rows, of the same events, with the greatest offset, timestamp and delay of each one's records.

    Gathered is, within each task, what was rendered to JSON, is in time as a whole and was not sent again.
    """
    is_plain = (F.col("verdict") == "ok") & F.col("json").isNotNull() & F.col("events").isNull()
    group = F.when(is_plain & F.col("retried").isNull(), F.struct(*_COMMON))
    whole = {
        "json": F.coalesce("coalesced", "json"),
        "newest": F.coalesce("newest", "timestamp"),
        "delay_ms": F.coalesce("longest_ms", "delay_ms"),
    }
    return Coalescing(
        before=lambda df: df.withColumn("group", group),
        gather=_gathered,
        after=lambda df: df.withColumns(whole).drop("group", "coalesced", "longest_ms"),
    )


def apart() -> Coalescing:
    """The same columns, with each row as it is."""
    alone = {"last_offset": F.lit(None).cast("long"), "newest": F.col("timestamp")}
    return Coalescing(before=_same, gather=_same, after=lambda df: df.withColumns(alone))


def _same(df: DataFrame) -> DataFrame:
    return df


def _gathered(df: DataFrame) -> DataFrame:
    return DataFrame(java_class(df.sparkSession, "kappa.Coalescer").coalesced(df._jdf), df.sparkSession)

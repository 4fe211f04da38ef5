"""One record for all data points that a task has of a machine, as far as the same inventory facts apply to them.

With one event a record, what costs is the record: here and in every job after this one. How a log is cut into batches
decides what is coalesced, so nothing may depend on it: events stay as they are, and their own.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

Step = Callable[[DataFrame], DataFrame]

# What all points of a record have in common; the partition of the source, so that it can be named.
_COMMON = ("topic", "partition", "machine", "kind", "resource", "inventory")


def coalesced() -> Step:
    """Fewer rows, of the same events; `last_offset` and `newest` are the greatest offset and timestamp of each.

    Gathered is, within each task, what was decoded to JSON, is in time as a whole and was not sent again.
    """
    is_plain = (F.col("verdict") == "ok") & F.col("json").isNotNull() & F.col("events").isNull()
    group = F.when(is_plain & F.col("retried").isNull(), F.struct(*_COMMON))
    whole = {"json": F.coalesce("coalesced", "json"), "newest": F.coalesce("newest", "timestamp")}

    def coalesce(df: DataFrame) -> DataFrame:
        found = _in_jvm(df.sparkSession).coalesced(df.withColumn("group", group)._jdf)
        return DataFrame(found, df.sparkSession).withColumns(whole).drop("group", "coalesced")

    return coalesce


def apart() -> Step:
    """The same columns, with each row as it is."""
    alone = {"last_offset": F.lit(None).cast("long"), "newest": F.col("timestamp")}
    return lambda df: df.withColumns(alone)


@cache
def _in_jvm(spark: SparkSession) -> Any:
    # Once: to look for a Java name, py4j tries to load each part of it as a class.
    assert spark._jvm
    return spark._jvm.kappa.Coalescer

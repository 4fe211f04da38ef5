"""The rows of a micro-batch by the topic of Kafka that they are read from, without reading any."""

from collections.abc import Collection
from functools import cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def only_of(frame: DataFrame, topics: Collection[str]) -> DataFrame | None:
    """The frame without the partitions that are read from other topics than these; None if none is left.

    A partition of a frame that Spark's source for Kafka gives, and that no shuffle has changed, is of one topic. Of any
    other frame each partition stays, so a caller must still leave out the rows of other topics.
    """
    found = _in_jvm(frame.sparkSession).onlyOf(frame._jdf, list(topics))
    return None if found is None else DataFrame(found, frame.sparkSession)


@cache
def _in_jvm(spark: SparkSession) -> Any:
    # Once: to look for a Java name, py4j tries to load each part of it as a class.
    assert spark._jvm
    return spark._jvm.kappa.TopicPartitions

"""The rows of a frame by the topic of Kafka that they are of, without reading any."""

from collections.abc import Collection

from pyspark.sql import DataFrame

from connectors.java_class import java_class


def only_of(frame: DataFrame, topics: Collection[str]) -> DataFrame | None:
    """The frame without the partitions that are read from other topics than these; None if none is left.

    A partition of a frame that Spark's source for Kafka gives, and that no shuffle has changed, is of one topic; one of
    a table that is partitioned by `topic` is of those of its files. Of any other frame each partition stays, so a
    caller must still leave out the rows of other topics.
    """
    found = java_class(frame.sparkSession, "kappa.TopicPartitions").onlyOf(frame._jdf, list(topics))
    return None if found is None else DataFrame(found, frame.sparkSession)

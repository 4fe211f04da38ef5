"""An exactly-once Delta sink for `foreachBatch`: a batch that is tried again is recognised by the table itself."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from connectors.sinks.kafka import SinkSettings, WriteSummary


class DeltaSink:
    """Appends the micro-batches of one query to a table; Delta skips a batch that it has."""

    def __init__(self, path: str, partition_by: Sequence[str], settings: SinkSettings) -> None:
        """`settings` say whose batches these are: batch ids begin again with a new checkpoint, of another run."""
        self.path, self.partition_by = path, partition_by
        self.application = f"{settings.query}.{settings.run}"

    def write(self, frame: DataFrame, batch_id: int) -> WriteSummary:
        """Append `frame` as batch `batch_id`."""
        append(frame, self.path, self.application, batch_id, self.partition_by)
        return WriteSummary({}, {}, 0, {})


def append(frame: DataFrame, path: str, application: str, batch_id: int, partition_by: Sequence[str] = ()) -> None:
    """Append `frame` to the table at `path` as batch `batch_id` of `application`, unless the table has that batch."""
    (
        frame.write.format("delta")
        .mode("append")
        .option("txnAppId", application)
        .option("txnVersion", batch_id)
        .option("mergeSchema", "true")  # the table is older than a field that the records now have
        # A property of the table, set when it is created: whoever writes the 50th small file of a partition joins them.
        .option("delta.autoOptimize.autoCompact", "true")
        .partitionBy(*partition_by)
        .save(path)
    )

"""An exactly-once Delta sink for `foreachBatch`: the table's own log recognises a micro-batch that is retried."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from connectors.sinks.kafka import SinkSettings, WriteSummary


class DeltaSink:
    """Appends the micro-batches of one query to a table, idempotently: Delta skips one that the table has."""

    def __init__(self, path: str, partition_by: Sequence[str], settings: SinkSettings) -> None:
        """`settings` name the query and its checkpoint (`run`): with a new checkpoint, batch ids start at 0 again."""
        self.path, self.partition_by = path, partition_by
        self.application = f"{settings.query}.{settings.run}"

    def write(self, frame: DataFrame, batch_id: int) -> WriteSummary:
        """Append `frame` as micro-batch `batch_id`; the summary is empty, as Delta counts no rows here."""
        append(frame, self.path, self.application, batch_id, self.partition_by)
        return WriteSummary({}, {}, {}, 0, {})


def append(frame: DataFrame, path: str, application: str, batch_id: int, partition_by: Sequence[str] = ()) -> None:
    """Append `frame` to the table at `path` as micro-batch `batch_id` of `application`, unless the table has it."""
    (
        frame.write.format("delta")
        .mode("append")
        .option("txnAppId", application)
        .option("txnVersion", batch_id)
        .option("mergeSchema", "true")  # the records may have fields that are newer than the table
        # A property of the table, set at its creation: the write of a partition's 50th small file compacts them.
        .option("delta.autoOptimize.autoCompact", "true")
        .partitionBy(*partition_by)
        .save(path)
    )

"""An exactly-once Delta sink for `foreachBatch`: a batch that is tried again is recognised by the table itself."""

from collections.abc import Sequence

from pyspark.sql import DataFrame


def append(frame: DataFrame, path: str, query: str, batch_id: int, partition_by: Sequence[str] = ()) -> None:
    """Append `frame` to the table at `path` as batch `batch_id` of `query`; Delta skips one that it has.

    `query` must change with the checkpoint's identity, as batch ids begin again with a new checkpoint.
    """
    (
        frame.write.format("delta")
        .mode("append")
        .option("txnAppId", query)
        .option("txnVersion", batch_id)
        .option("mergeSchema", "true")  # the table is older than a field that the records now have
        # A property of the table, set when it is created: whoever writes the 50th small file of a partition joins them.
        .option("delta.autoOptimize.autoCompact", "true")
        .partitionBy(*partition_by)
        .save(path)
    )

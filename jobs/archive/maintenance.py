"""Maintenance of the archive's Delta tables: compacts small files and removes those that are no longer needed."""

from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Maintenance:
    """What was done to a table: files of its current version before and after, files deleted from storage."""

    table: str
    files_before: int
    files_after: int
    removed_from_disk: int


def optimize(spark: SparkSession, name: str, path: str) -> Maintenance:
    """Compact the small files of the table at `path`, then delete the files that only its expired versions use.

    Versions are kept for the table's `delta.deletedFileRetentionDuration`, a week unless it is set. Safe beside a
    running job: compaction changes no row, so Delta lets both commit, and a file that a job has written but not
    committed yet is younger than that.
    """
    table = DeltaTable.forPath(spark, path)
    before = _files(table)
    table.optimize().executeCompaction()
    on_disk = _on_disk(spark, path)
    table.vacuum()
    return Maintenance(name, before, _files(table), on_disk - _on_disk(spark, path))


def _files(table: DeltaTable) -> int:
    return int(table.detail().select("numFiles").collect()[0][0])


def _on_disk(spark: SparkSession, path: str) -> int:
    found = spark.read.format("binaryFile").option("pathGlobFilter", "*.parquet").option("recursiveFileLookup", True)
    return found.load(path).select("path").count()

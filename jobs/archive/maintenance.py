"""Keeps the archive's tables quick to read: few large files instead of many small ones."""

from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Maintained:
    """What was done to a table: how many files its current version had and has, and how many lie on the disk."""

    table: str
    files_before: int
    files_after: int
    removed_from_disk: int


def optimize(spark: SparkSession, name: str, path: str) -> Maintained:
    """Join the small files of the table at `path`, then delete what its former versions alone need.

    Versions are kept for the table's `delta.deletedFileRetentionDuration`, a week unless it is set. Safe beside a
    running job: joining files changes no row, so Delta lets both commit, and a file that a job has written but not
    committed yet is younger than that.
    """
    table = DeltaTable.forPath(spark, path)
    before = _files(table)
    table.optimize().executeCompaction()
    on_disk = _on_disk(spark, path)
    table.vacuum()
    return Maintained(name, before, _files(table), on_disk - _on_disk(spark, path))


def _files(table: DeltaTable) -> int:
    return int(table.detail().select("numFiles").collect()[0][0])


def _on_disk(spark: SparkSession, path: str) -> int:
    found = spark.read.format("binaryFile").option("pathGlobFilter", "*.parquet").option("recursiveFileLookup", True)
    return found.load(path).select("path").count()

"""Maintenance of the archive's Delta tables: deletes old days, joins small files, removes what no version needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date

import structlog
from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from connectors.java_class import java_class
from infra.contract.topics import Topic
from jobs.archive.tables import Table

ATTEMPTS = 3
# The job has rewritten, or added to, what was to be joined or deleted: the next attempt sees that.
_CONFLICT = "DELTA_CONCURRENT"

log = structlog.get_logger()

Days = Mapping[str, tuple[date, date]]  # by topic: the oldest and the newest day of the table


@dataclass(frozen=True)
class Maintenance:
    """What was done to a table.

    Attributes:
        table: its name.
        days_deleted: days of a topic that were older than its retention.
        files_before: files of the version before.
        files_after: files of the version now.
        removed_from_disk: files that only expired versions used.
        oldest: the first day that each topic has now.
    """

    table: str
    days_deleted: int
    files_before: int
    files_after: int
    removed_from_disk: int
    oldest: Mapping[str, date]


def maintain(spark: SparkSession, declared: Table, path: str) -> Maintenance:
    """Maintain the table at `path`. Safe beside a running job and beside readers of an older version.

    Days are deleted and files joined by commits of their own, which change no row that the job writes: Delta lets both
    commit, or has this one tried again. Files stay on disk for the table's `delta.deletedFileRetentionDuration`, a week
    unless it is set: until then older versions can be read. A file that a job has written but not committed yet is
    younger than that.
    """
    table = DeltaTable.forPath(spark, path)
    before, days = _files(table), _days(spark, path, declared)
    due = expired(days, {topic.name: topic for topic in declared.topics})
    if due:
        _repeated(lambda: table.delete(_condition(due, declared)))
    # Days that are over: of the newest, the job joins small files itself.
    newest = max((newest for _, newest in days.values()), default=None)
    if newest:
        _repeated(lambda: table.optimize().where(f"date < '{newest}'").executeCompaction())
    on_disk = _on_disk(spark, path)
    table.vacuum()
    left = {topic: oldest for topic, (oldest, _) in _days(spark, path, declared).items()} if due else {}
    oldest = left or {topic: oldest for topic, (oldest, _) in days.items()}
    removed = on_disk - _on_disk(spark, path)
    return Maintenance(declared.name, _count(days, due), before, _files(table), removed, oldest)


def expired(days: Days, topics: Mapping[str, Topic]) -> dict[str, date]:
    """By topic, the day before which all is older than the retention; only where there is such a day.

    Age is counted back from the topic's newest day: where nothing arrives, nothing is deleted.
    """
    found = {}
    for topic, (oldest, newest) in days.items():
        if topic in topics and oldest < (first := newest - topics[topic].archive_retention):
            found[topic] = first
    return found


def _count(days: Days, due: Mapping[str, date]) -> int:
    return sum((first - days[topic][0]).days for topic, first in due.items())


def _condition(due: Mapping[str, date], declared: Table) -> str:
    """The rows of these topics before these days: partitions alone, so no file is read or rewritten."""
    if "topic" not in declared.partition_by:
        return f"date < '{min(due.values())}'"
    return " OR ".join(f"(topic = '{topic}' AND date < '{first}')" for topic, first in due.items())


def _days(spark: SparkSession, path: str, declared: Table) -> Days:
    """The oldest and the newest day of each topic, from the partitions' names."""
    topic = F.col("topic") if "topic" in declared.partition_by else F.lit(declared.topics[0].name)
    rows = partitions(spark, path).select(topic.alias("topic"), "date").groupBy("topic")
    found = rows.agg(F.min("date").alias("oldest"), F.max("date").alias("newest")).collect()
    return {row.topic: (row.oldest, row.newest) for row in found}


def partitions(spark: SparkSession, path: str) -> DataFrame:
    """The partitions of a table, a row each, from its log: the columns `date` and, if it has it, `topic`."""
    log = java_class(spark, "org.apache.spark.sql.delta.DeltaLog").forTable(spark._jsparkSession, path)
    values = F.col("partitionValues")
    files = DataFrame(log.unsafeVolatileSnapshot().allFiles().toDF(), spark)
    return files.select(values["date"].cast("date").alias("date"), values["topic"].alias("topic")).distinct()


def _repeated(act: Callable[[], object]) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            act()
        except Py4JJavaError as error:
            if _CONFLICT not in str(error) or attempt == ATTEMPTS:
                raise
            log.info("tried again: the job has changed the same files", attempt=attempt)
        else:
            return


def _files(table: DeltaTable) -> int:
    return int(table.detail().select("numFiles").collect()[0][0])


def _on_disk(spark: SparkSession, path: str) -> int:
    found = spark.read.format("binaryFile").option("pathGlobFilter", "*.parquet").option("recursiveFileLookup", True)
    return found.load(path).select("path").count()

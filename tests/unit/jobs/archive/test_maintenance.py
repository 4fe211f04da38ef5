import threading
from pathlib import Path

import pytest

from connectors.sinks import delta
from jobs.archive.maintenance import optimize

QUERY = "kappa.live.archive.log.run-1"
BATCHES = 4


def rows(spark, batch):
    return spark.range(batch * 10, batch * 10 + 10).selectExpr("id", "'events' as topic").repartition(2)


def numbers(spark, path):
    return sorted(row.id for row in spark.read.format("delta").load(path).collect())


@pytest.fixture
def table(spark, tmp_path):
    """A table of many small files."""
    path = str(tmp_path / "log")
    for batch in range(BATCHES):
        delta.append(rows(spark, batch), path, QUERY, batch, ["topic"])
    return path


def keep_no_former_version(spark, path):
    """Not while somebody writes: a file that isn't committed yet is in no version."""
    spark.sql(
        f"alter table delta.`{path}` set tblproperties ('delta.deletedFileRetentionDuration' = 'interval 0 hours')"
    )


def test_a_job_may_write_meanwhile(spark, table):
    written, failures = [], []

    def write():
        try:
            for batch in range(BATCHES, BATCHES + 3):
                delta.append(rows(spark, batch), table, QUERY, batch, ["topic"])
                written.append(batch)
        except Exception as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    optimize(spark, "log", table)
    writer.join(120)
    assert not failures and len(written) == 3
    assert numbers(spark, table) == list(range(10 * (BATCHES + 3)))


def test_few_files_are_left(spark, table):
    keep_no_former_version(spark, table)
    done = optimize(spark, "log", table)
    assert done.files_before >= BATCHES
    assert done.files_after == 1
    assert done.removed_from_disk >= done.files_before
    assert len(list(Path(table).rglob("*.parquet"))) == 1
    assert numbers(spark, table) == list(range(10 * BATCHES))


def test_a_repeated_batch_is_still_known_afterwards(spark, table):
    keep_no_former_version(spark, table)
    optimize(spark, "log", table)
    delta.append(rows(spark, BATCHES - 1), table, QUERY, BATCHES - 1, ["topic"])
    assert numbers(spark, table) == list(range(10 * BATCHES))


def test_small_files_are_bounded_without_it(spark, tmp_path):
    path, limit = str(tmp_path / "log"), "spark.databricks.delta.autoCompact.minNumFiles"
    counts = []
    spark.conf.set(limit, "5")
    try:
        for batch in range(6):
            delta.append(rows(spark, batch), path, QUERY, batch, ["topic"])
            counts.append(spark.sql(f"describe detail delta.`{path}`").select("numFiles").collect()[0][0])
    finally:
        spark.conf.unset(limit)
    assert max(counts) <= 5
    assert numbers(spark, path) == list(range(60))

import json
import shutil
import threading
from datetime import date, timedelta
from pathlib import Path

import pytest
from delta.tables import DeltaTable

from connectors.sinks import delta
from infra.contract.topics import load_topics
from jobs.archive.maintenance import expired, maintain
from jobs.archive.tables import Table, tables

QUERY = "kappa.live.archive.log.run-1"
BATCHES = 4
LOG, *PARSED = tables(load_topics())
TODAY = date(2026, 9, 21)


def rows(spark, batch, topic="events", day=TODAY - timedelta(days=1)):
    """Ten rows of one day, in two files."""
    columns = ("id", f"'{topic}' as topic", f"date'{day}' as date")
    return spark.range(batch * 10, batch * 10 + 10).selectExpr(*columns).repartition(2)


def append(spark, path, batch, topic="events", day=TODAY - timedelta(days=1)):
    delta.append(rows(spark, batch, topic, day), path, QUERY, batch, ["topic", "date"])


def version(spark, path):
    return DeltaTable.forPath(spark, path).history(1).collect()[0].version


def numbers(spark, path, **options):
    return sorted(row.id for row in spark.read.format("delta").options(**options).load(path).collect())


@pytest.fixture(scope="module")
def original(spark, tmp_path_factory):
    """A table of many small files of yesterday, and one of today."""
    path = tmp_path_factory.mktemp("original") / "log"
    for batch in range(BATCHES):
        append(spark, str(path), batch)
    append(spark, str(path), BATCHES, day=TODAY)
    return path


@pytest.fixture
def table(original, tmp_path):
    """A copy of it for one test."""
    return str(shutil.copytree(original, tmp_path / "log"))


def keep_no_former_version(spark, path):
    """Not while somebody writes: a file that isn't committed yet is in no version."""
    spark.sql(
        f"alter table delta.`{path}` set tblproperties ('delta.deletedFileRetentionDuration' = 'interval 0 hours')"
    )


def test_the_log_of_a_table_is_kept_for_a_week_and_notes_each_file_once(spark, original):
    (detail,) = DeltaTable.forPath(spark, str(original)).detail().collect()
    assert detail.properties["delta.logRetentionDuration"] == "interval 7 days"
    checksums = list((original / "_delta_log").glob("0*.crc"))
    assert len(checksums) > BATCHES
    assert not any("allFiles" in json.loads(one.read_text()) for one in checksums)


def test_a_job_may_write_meanwhile_and_a_reader_stay_at_its_version(spark, table):
    written, failures = [], []
    before = numbers(spark, table)
    reader = spark.read.format("delta").option("versionAsOf", version(spark, table)).load(table)

    def write():
        try:
            for batch in range(BATCHES + 1, BATCHES + 5):
                append(spark, table, batch, day=TODAY - timedelta(days=batch % 2))
                written.append(batch)
        except Exception as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(2):
        maintain(spark, LOG, table)
    writer.join(300)
    assert not failures and len(written) == 4
    assert numbers(spark, table) == list(range(10 * (BATCHES + 5)))
    assert sorted(row.id for row in reader.collect()) == before


def test_few_files_are_left_of_the_days_that_are_over(spark, table):
    keep_no_former_version(spark, table)
    done = maintain(spark, LOG, table)
    assert done.files_before > BATCHES
    (joined,) = (Path(table) / "topic=events" / f"date={TODAY - timedelta(days=1)}").glob("*.parquet")
    todays = list((Path(table) / "topic=events" / f"date={TODAY}").glob("*.parquet"))
    assert done.files_after == 1 + len(todays)
    assert done.removed_from_disk >= done.files_before - len(todays), "the newest day is the job's"
    assert (done.days_deleted, done.oldest) == (0, {"events": TODAY - timedelta(days=1)})
    assert numbers(spark, table) == list(range(10 * BATCHES + 10))
    again = maintain(spark, LOG, table)
    assert (again.files_before, again.files_after, again.removed_from_disk) == (done.files_after, done.files_after, 0)
    assert joined.is_file()


def test_days_beyond_the_retention_of_their_topic_are_deleted(spark, tmp_path):
    path = str(tmp_path / "log")
    ages = {"events": (0, 90, 91, 200), "novelties": (0, 300, 400), "inventory": (5, 3_000)}
    batch = 0
    for topic, days in ages.items():
        for age in days:
            append(spark, path, batch, topic, TODAY - timedelta(days=age))
            batch += 1
    keep_no_former_version(spark, path)
    done = maintain(spark, LOG, path)
    left = spark.read.format("delta").load(path).select("topic", "date").distinct().collect()
    assert {(row.topic, (TODAY - row.date).days) for row in left} == {
        ("events", 0), ("events", 90), ("novelties", 0), ("novelties", 300), ("inventory", 5), ("inventory", 3_000),
    }  # fmt: skip
    assert done.oldest == {topic: TODAY - timedelta(days=ages[topic][-2]) for topic in ("events", "novelties")} | {
        "inventory": TODAY - timedelta(days=3_000)
    } | {"events": TODAY - timedelta(days=90)}
    assert not [folder for folder in Path(path).rglob(f"date={TODAY - timedelta(days=200)}") if any(folder.iterdir())]
    assert done.days_deleted == 110 + 35


def test_a_table_of_one_topic_is_by_day_alone(spark, tmp_path):
    (novelties,) = [table for table in PARSED if table.name == "novelties"]
    path = str(tmp_path / "novelties")
    for batch, age in enumerate((0, 364, 366)):
        frame = rows(spark, batch, day=TODAY - timedelta(days=age))
        delta.append(frame, path, QUERY, batch, novelties.partition_by)
    before = version(spark, path)
    done = maintain(spark, novelties, path)
    assert numbers(spark, path) == list(range(20))
    assert done.oldest == {"novelties": TODAY - timedelta(days=364)}
    assert numbers(spark, path, versionAsOf=before) == list(range(30)), "an older version is still there"


def test_an_empty_table_needs_nothing(spark, tmp_path):
    path = str(tmp_path / "log")
    delta.append(rows(spark, 0).where("false"), path, QUERY, 0, ["topic", "date"])
    done = maintain(spark, Table("log", LOG.topics, ("topic", "date")), path)
    assert (done.files_before, done.files_after, done.oldest) == (0, 0, {})


def test_where_nothing_arrives_nothing_is_deleted():
    topics = {topic.name: topic for topic in LOG.topics}
    old = TODAY - timedelta(days=5_000)
    assert expired({"events": (old, old + timedelta(days=90)), "not declared any more": (old, TODAY)}, topics) == {}
    assert expired({"events": (old, TODAY)}, topics) == {"events": TODAY - timedelta(days=90)}


def test_a_repeated_batch_is_still_known_afterwards(spark, table):
    keep_no_former_version(spark, table)
    maintain(spark, LOG, table)
    append(spark, table, BATCHES, day=TODAY)
    assert numbers(spark, table) == list(range(10 * BATCHES + 10))


def test_small_files_are_bounded_without_it(spark, tmp_path):
    path, limit = str(tmp_path / "log"), "spark.databricks.delta.autoCompact.minNumFiles"
    counts = []
    spark.conf.set(limit, "5")
    try:
        for batch in range(6):
            append(spark, path, batch)
            counts.append(spark.sql(f"describe detail delta.`{path}`").select("numFiles").collect()[0][0])
    finally:
        spark.conf.unset(limit)
    assert max(counts) <= 5
    assert numbers(spark, path) == list(range(60))

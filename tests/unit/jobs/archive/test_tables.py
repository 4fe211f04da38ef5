"""What the archive's parsed tables hold of a topic."""

from datetime import UTC, date, datetime

from infra.contract.topics import load_topics
from jobs.archive.tables import tables
from jobs.archive.transform import rows as table_rows
from jobs.runtime.watermarks import watermark_records

KAFKA = (
    "topic string, partition int, offset long, timestamp timestamp, key binary, value binary,"
    " headers array<struct<key:string,value:binary>>"
)
AT = datetime(2026, 11, 22, 12, tzinfo=UTC)


def rows(spark, name, *records):
    """Rows of the table `name` for (key, value) records of its topic, by offset."""
    topics = load_topics()
    table = next(table for table in tables(topics) if table.name == name)
    kafka = [("novelties", 0, offset, AT, key, value, None) for offset, (key, value) in enumerate(records)]
    return {row["offset"]: row for row in table_rows(spark.createDataFrame(kafka, KAFKA), table).collect()}


def test_a_parsed_table_has_the_fields_of_records_and_no_watermarks(spark):
    [(_, _, key, watermark, *_), *_] = watermark_records(load_topics()["novelties"], 1_795_000_000_000)
    record = b'{"id":"n-1","machine":"vm-1","verdict":"silence","score":14.5}'
    found = rows(spark, "novelties", (b"vm-1", record), (key, watermark))
    assert list(found) == [0]
    row = found[0]
    assert (row["id"], row["machine"], row["verdict"], row["score"]) == ("n-1", "vm-1", "silence", 14.5)
    assert (row["topic"], row["partition"], row["date"]) == ("novelties", 0, date(2026, 11, 22))


def test_a_record_that_is_no_json_keeps_its_place(spark):
    found = rows(spark, "novelties", (b"vm-1", b"{"))
    assert found[0]["id"] is None and found[0]["timestamp"].astimezone(UTC) == AT


def test_the_log_holds_watermarks_and_bytes_too(spark):
    found = rows(spark, "log", (None, b'{"watermark_unix_nano":1}'), (b"vm-1", b"{"))
    assert {offset: bytes(row["value"]) for offset, row in found.items()} == {0: b'{"watermark_unix_nano":1}', 1: b"{"}

"""The transform of the archive: rows of Kafka to rows of a Delta table."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infra.contract.schemas import SCHEMAS
from infra.contract.topics import Topic
from jobs.archive.tables import Table


def rows(kafka: DataFrame, table: Table) -> DataFrame:
    """Kafka's columns and `date`, the day of the Kafka timestamp; for a parsed table the fields, not the bytes."""
    raw = kafka.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        F.to_date("timestamp").alias("date"),
        "key",
        "value",
        "headers",
    )
    return parse(raw, table.parsed) if table.parsed else raw


def parse(raw: DataFrame, topic: Topic) -> DataFrame:
    """The fields of the records, with date, timestamp, topic, partition, offset; without watermarks (no key)."""
    assert topic.schema_name
    schema = SCHEMAS[topic.schema_name]
    text = F.col("value").cast("string")
    records = raw.where(F.col("key").isNotNull())  # not the parsed `id`: to ask for it, Spark would parse twice
    parsed = records.select(
        "topic", "partition", "offset", "timestamp", "date", F.from_json(text, schema).alias("record")
    )
    return parsed.select("date", "timestamp", "topic", "partition", "offset", "record.*")

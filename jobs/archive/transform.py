"""Kafka's rows as the rows of a Delta table."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infra.contract.schemas import SCHEMAS
from infra.contract.topics import Topic
from jobs.archive.tables import Table


def rows(kafka: DataFrame, table: Table) -> DataFrame:
    """Kafka's columns with the day of the record; of a parsed table the record's fields in place of its bytes."""
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
    """The record's fields beside where it stands in the log; watermarks, which have no key, are left to the log."""
    assert topic.schema_name
    schema = SCHEMAS[topic.schema_name]
    text = F.col("value").cast("string")
    records = raw.where(F.col("key").isNotNull())  # not the parsed `id`: to ask for it, Spark would parse twice
    parsed = records.select(
        "topic", "partition", "offset", "timestamp", "date", F.from_json(text, schema).alias("record")
    )
    return parsed.select("date", "timestamp", "topic", "partition", "offset", "record.*")

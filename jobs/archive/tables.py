"""What the archive keeps: the log itself, and a table with typed columns for each topic that people query."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infra.contract.schemas import SCHEMAS
from infra.contract.topics import Topic, TopicMap


@dataclass(frozen=True)
class Table:
    """A Delta table and the topics that fill it; `parsed` is the topic whose record's fields are its columns."""

    name: str
    topics: tuple[Topic, ...]
    partition_by: tuple[str, ...]
    parsed: Topic | None = None

    def rows(self, kafka: DataFrame) -> DataFrame:
        """Kafka's rows as the table's."""
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
        return parse(raw, self.parsed) if self.parsed else raw


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


def tables(topics: TopicMap) -> tuple[Table, ...]:
    """The log of every archived topic, and the parsed tables."""
    log = Table("log", topics.archived, ("topic", "date"))
    parsed = [
        Table(key, (topic,), ("date",), topic)
        for key, topic in topics.topics.items()
        if topic.archive == "parsed" and topics.owns(key)
    ]
    return (log, *parsed)

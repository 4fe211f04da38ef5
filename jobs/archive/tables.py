"""The Delta tables of the archive: `log` has the raw records of every topic, parsed tables have typed columns."""

from collections.abc import Mapping
from dataclasses import dataclass

from infra.contract.topics import Topic, TopicMap


@dataclass(frozen=True)
class Table:
    """A Delta table and the topics that fill it; a parsed table has the fields of the topic `parsed` as columns."""

    name: str
    topics: tuple[Topic, ...]
    partition_by: tuple[str, ...]
    parsed: Topic | None = None

    @property
    def query(self) -> str:
        """The name of the streaming query that fills the table."""
        return f"archive.{self.name}"


def tables(topics: TopicMap) -> tuple[Table, ...]:
    """The table `log` and the parsed tables of a generation's topics."""
    log = Table("log", topics.archived, ("topic", "date"))
    parsed = [
        Table(key, (topic,), ("date",), topic)
        for key, topic in topics.topics.items()
        if topic.archive == "parsed" and topics.owns(key)
    ]
    return (log, *parsed)


def queries(topics: TopicMap) -> Mapping[str, tuple[Topic, ...]]:
    """The topics that each query of the job reads, by the query's name."""
    return {table.query: table.topics for table in tables(topics)}

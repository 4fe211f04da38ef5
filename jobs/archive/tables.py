"""Which Delta tables the archive keeps: the log itself, and one with typed columns for each topic that people query."""

from collections.abc import Mapping
from dataclasses import dataclass

from infra.contract.topics import Topic, TopicMap


@dataclass(frozen=True)
class Table:
    """A Delta table and the topics that fill it; `parsed` is the topic whose record's fields are its columns."""

    name: str
    topics: tuple[Topic, ...]
    partition_by: tuple[str, ...]
    parsed: Topic | None = None

    @property
    def query(self) -> str:
        """The name of the query that fills it."""
        return f"archive.{self.name}"


def tables(topics: TopicMap) -> tuple[Table, ...]:
    """The log of every archived topic, and the parsed tables."""
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

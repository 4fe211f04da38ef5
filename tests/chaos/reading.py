"""What topics and Delta tables hold."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import orjson
import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition


class Place(NamedTuple):
    """Where a record stands in the log."""

    topic: str
    partition: int
    offset: int


class Record(NamedTuple):
    """A record of a topic."""

    place: Place
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def read_topic(bootstrap: str, topic: str, tail: int | None = None) -> list[Record]:
    """Every committed record of a topic by now, or those of each partition's last `tail` offsets, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "chaos.reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        numbers = consumer.list_topics(topic, 30).topics[topic].partitions
        places = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers]
        for place in places if tail else ():
            low, high = consumer.get_watermark_offsets(place, 10)
            place.offset = max(low, high - tail)
        consumer.assign(places)
        return sorted(_until_end(consumer, len(numbers)))
    finally:
        consumer.close()


def _until_end(consumer: Consumer, partitions: int) -> Iterator[Record]:
    ended: set[int] = set()
    while len(ended) < partitions:
        for message in consumer.consume(10_000, 1.0):
            error = message.error()
            if error is None:
                place = Place(message.topic(), message.partition(), message.offset())
                yield Record(place, message.timestamp()[1], message.key(), message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            elif not error.retriable():
                raise KafkaException(error)


def read_table(folder: Path, columns: list[str]) -> Iterator[dict]:
    """The live rows of a Delta table, by its own log; `topic` may be a partition column."""
    for file, values in _live_files(folder).items():
        wanted = [column for column in columns if column not in values]
        fixed = {column: values[column] for column in columns if column in values}
        for row in pq.ParquetFile(folder / file).read(wanted).to_pylist():
            yield row | fixed


def _live_files(folder: Path) -> dict[str, dict[str, str]]:
    """Data files with their partition values: those added and not removed."""
    live: dict[str, dict[str, str]] = {}
    for commit in sorted((folder / "_delta_log").glob("*.json")):
        for line in commit.read_bytes().splitlines():
            action = orjson.loads(line)
            if added := action.get("add"):
                live[unquote(added["path"])] = added["partitionValues"]
            elif removed := action.get("remove"):
                live.pop(unquote(removed["path"]), None)
    return live


def last_ticks(bootstrap: str, topic: str, tail: int = 300) -> dict[int, int]:
    """The newest tick of each partition that has one among its last records."""
    ticks: dict[int, int] = {}
    for record in read_topic(bootstrap, topic, tail):
        parsed = orjson.loads(record.value or b"{}")
        if "tick_unix_nano" in parsed:
            ticks[record.place.partition] = parsed["tick_unix_nano"]
    return ticks

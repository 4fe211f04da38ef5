"""The dead letters in `events.rejected`: reads them, restores their original bytes, and retries each of them once."""

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from confluent_kafka import TopicPartition

from connectors.kafka.access import describe_topic
from connectors.kafka.client import READER, open_consumer
from connectors.kafka.reader import read_topic
from connectors.kafka.security import client_config
from connectors.kafka.transactions import TransactionalWriter
from infra.contract import retries
from infra.contract.dead_letters import KEPT_BYTES, REJECTED_BYTES
from infra.contract.topics import Topic

_TIMEOUT_S = 30


class OriginalLostError(Exception):
    """A dead letter keeps only the beginning of its original record, which its own topic has deleted meanwhile."""


@dataclass(frozen=True)
class DeadLetter:
    """A record of `events.rejected` with its partition and offset there."""

    partition: int
    offset: int
    record: dict[str, Any]

    @property
    def retry_key(self) -> str:
        """`partition/offset` in `events.rejected`: the key of its retry, another one for each rejection of a record."""
        return f"{self.partition}/{self.offset}"

    @property
    def stage(self) -> str:
        """The job that could not use the record; version 0.1.0 didn't say so, and only two could write one."""
        return str(
            self.record.get("stage")
            or ("indexer" if self.record.get("id", "").startswith("indexer/") else "enrichment")
        )

    @property
    def time_ms(self) -> int:
        """The Kafka timestamp of the original record, ms since the epoch."""
        return int(self.record["source"]["timestamp_unix_milli"])

    @property
    def value(self) -> bytes:
        """The original bytes, or what was kept of their beginning; of a decoded record the rejected events as JSON."""
        if "batch" in self.record:
            return str(self.record["batch"]).encode()
        return base64.b64decode(self.record.get("value", ""))

    @property
    def is_cut(self) -> bool:
        """Whether only a part of the original bytes is kept."""
        most = REJECTED_BYTES if self.stage == "enrichment" else KEPT_BYTES
        is_whole = "value" in self.record and len(self.value) < most
        return "batch" not in self.record and not is_whole

    def headers(self) -> list[tuple[str, str | bytes | None]]:
        """The headers of its retry, by which enrichment knows the original topic and offset (jobs/enrichment/retry)."""
        source = self.record["source"]
        known = {
            retries.SOURCE_TOPIC: source["topic"],
            retries.SOURCE_PARTITION: source["partition"],
            retries.SOURCE_OFFSET: source["offset"],
            retries.PART: self.record.get("part"),
            retries.EVENTS_ONLY: 1 if "batch" in self.record else None,
        }
        return [(name, str(value)) for name, value in known.items() if value is not None]


def dead_letters(bootstrap: str, topic: str) -> Iterator[DeadLetter]:
    """Every dead letter that the topic has now, ordered by offset within a partition."""
    for message in read_topic(bootstrap, topic):
        yield DeadLetter(message.partition() or 0, message.offset() or 0, orjson.loads(message.value() or b""))


def retried_keys(bootstrap: str, topic: str) -> set[str]:
    """The keys of the retry topic: the `retry_key` of each dead letter that has been retried."""
    return {(message.key() or b"").decode() for message in read_topic(bootstrap, topic)}


def original(bootstrap: str, letter: DeadLetter) -> bytes:
    """The bytes of the original record, complete. Raises OriginalLostError if only their beginning is left."""
    if not letter.is_cut:
        return letter.value
    source = letter.record["source"]
    return read_original(bootstrap, source["topic"], source["partition"], source["offset"])


def read_original(bootstrap: str, topic: str, partition: int, offset: int) -> bytes:
    """The value of one record.

    Raises OriginalLostError if its topic no longer has it, UserError if this user may not see the topic.
    """
    place = TopicPartition(topic, partition, offset)
    with open_consumer(client_config(bootstrap), READER) as consumer:
        if partition not in describe_topic(consumer, bootstrap, topic).partitions:
            raise OriginalLostError(f"{place.topic}/{place.partition}/{place.offset}")
        low, high = consumer.get_watermark_offsets(place, _TIMEOUT_S)
        if not low <= place.offset < high:
            raise OriginalLostError(f"{place.topic}/{place.partition}/{place.offset}")
        consumer.assign([place])
        message = consumer.poll(_TIMEOUT_S)
    if message is None or message.error() or message.offset() != place.offset:
        raise OriginalLostError(f"{place.topic}/{place.partition}/{place.offset}")
    return bytes(message.value() or b"")


class Redrive:
    """Writes dead letters to the retry topic in one transaction, each once.

    The topic has the `retry_key` of each dead letter that was retried. The producer, when it is opened, aborts
    the transaction of a killed run and fences a run that is still active; only then is the topic read. So no dead
    letter is written twice.
    """

    def __init__(self, bootstrap: str, topic: Topic) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        settings = {"message.max.bytes": 10_000_000, "log_level": 2}
        self._writer = TransactionalWriter(client_config(bootstrap), f"kappa.{topic.name}", settings)
        self.retried = retried_keys(bootstrap, topic.name)

    def send(self, chosen: Iterable[DeadLetter], each: Callable[[], None] = lambda: None) -> int:
        """Redrive those of `chosen` that were not retried before; returns their number.

        `each` is called after every one. Raises OriginalLostError, and then nothing is written.
        """
        self._writer.begin()
        count = 0
        try:
            for letter in chosen:
                if letter.retry_key not in self.retried:
                    self._produce(letter)
                    count += 1
                each()
            self._writer.commit()
        except BaseException:
            self._writer.abandon()
            raise
        return count

    def _produce(self, letter: DeadLetter) -> None:
        value, key = original(self.bootstrap, letter), letter.retry_key.encode()
        self._writer.produce([(self.topic.name, -1, key, value, letter.time_ms, letter.headers())])


def printable(value: bytes) -> str:
    """Bytes to be printed: as text if they are UTF-8 without control characters, else in hexadecimal digits."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.hex(" ", 4)
    return text if not re.search(r"[\x00-\x08\x0e-\x1f]", text) else value.hex(" ", 4)

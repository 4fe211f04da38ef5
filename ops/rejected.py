"""`events.rejected` as a person works with it: found, shown, and sent again, each rejection once."""

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from confluent_kafka import TopicPartition

from connectors.kafka.client import open_consumer
from connectors.kafka.reader import read_topic
from connectors.kafka.security import client_config
from connectors.kafka.transactions import TransactionalWriter
from infra.contract.topics import Topic
from jobs.enrichment import retry
from jobs.enrichment.transform import REJECTED_BYTES

_TIMEOUT_S = 30


class GoneError(Exception):
    """The original record is too large for `events.rejected` to hold, and no longer in its own topic."""


@dataclass(frozen=True)
class Rejection:
    """One record of `events.rejected`, and where it stands there."""

    partition: int
    offset: int
    record: dict[str, Any]

    @property
    def place(self) -> str:
        """What tells it from a later rejection of the same record."""
        return f"{self.partition}/{self.offset}"

    @property
    def time_ms(self) -> int:
        """When the original record reached the broker."""
        return int(self.record["source"]["timestamp_unix_milli"])

    @property
    def value(self) -> bytes:
        """The original bytes, at most the first REJECTED_BYTES; the rejected events as JSON if it was decoded."""
        if "batch" in self.record:
            return str(self.record["batch"]).encode()
        return base64.b64decode(self.record.get("value", ""))

    @property
    def is_cut(self) -> bool:
        """Whether only a part of the original bytes is kept."""
        is_whole = "value" in self.record and len(self.value) < REJECTED_BYTES
        return "batch" not in self.record and not is_whole

    def headers(self) -> list[tuple[str, str | bytes | None]]:
        """What enrichment needs to know beside the value (see jobs/enrichment/retry.py)."""
        source = self.record["source"]
        known = {
            retry.SOURCE_TOPIC: source["topic"],
            retry.SOURCE_PARTITION: source["partition"],
            retry.SOURCE_OFFSET: source["offset"],
            retry.PART: self.record.get("part"),
            retry.EVENTS_ONLY: 1 if "batch" in self.record else None,
        }
        return [(name, str(value)) for name, value in known.items() if value is not None]


def rejections(bootstrap: str, topic: str) -> Iterator[Rejection]:
    """All that stand in the topic now, in order within a partition."""
    for message in read_topic(bootstrap, topic):
        yield Rejection(message.partition() or 0, message.offset() or 0, orjson.loads(message.value() or b""))


def retried_places(bootstrap: str, topic: str) -> set[str]:
    """The places of the rejections that were sent again."""
    return {(message.key() or b"").decode() for message in read_topic(bootstrap, topic)}


def original(bootstrap: str, rejection: Rejection) -> bytes:
    """The bytes to send again. Raises GoneError if only a part of them is left."""
    if not rejection.is_cut:
        return rejection.value
    source = rejection.record["source"]
    place = TopicPartition(source["topic"], source["partition"], source["offset"])
    with open_consumer(client_config(bootstrap), "kappa.rejected") as consumer:
        low, high = consumer.get_watermark_offsets(place, _TIMEOUT_S)
        if not low <= place.offset < high:
            raise GoneError(f"{place.topic}/{place.partition}/{place.offset}")
        consumer.assign([place])
        message = consumer.poll(_TIMEOUT_S)
    if message is None or message.error() or message.offset() != place.offset:
        raise GoneError(f"{place.topic}/{place.partition}/{place.offset}")
    return bytes(message.value() or b"")


class Retry:
    """Sends rejections to the retry topic, in one transaction, those excepted that were sent before.

    The topic is its own memory: its keys are the places of the rejections. Opening the producer settles what a killed
    run left behind and fences one that still runs; only then is the topic read. So each is sent once.
    """

    def __init__(self, bootstrap: str, topic: Topic) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        settings = {"message.max.bytes": 10_000_000, "log_level": 2}
        self._writer = TransactionalWriter(client_config(bootstrap), f"kappa.{topic.name}", settings)
        self.sent = retried_places(bootstrap, topic.name)

    def send(self, chosen: Iterable[Rejection], each: Callable[[], None] = lambda: None) -> int:
        """How many were sent; `each` is called for every one. Raises GoneError before anything is sent for good."""
        self._writer.begin()
        count = 0
        try:
            for rejection in chosen:
                if rejection.place not in self.sent:
                    self._produce(rejection)
                    count += 1
                each()
            self._writer.commit()
        except BaseException:
            self._writer.abandon()
            raise
        return count

    def _produce(self, rejection: Rejection) -> None:
        value, key = original(self.bootstrap, rejection), rejection.place.encode()
        self._writer.produce([(self.topic.name, -1, key, value, rejection.time_ms, rejection.headers())])


def printable(value: bytes) -> str:
    """Bytes for a person: as text if they are text, else as hexadecimal digits."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.hex(" ", 4)
    return text if not re.search(r"[\x00-\x08\x0e-\x1f]", text) else value.hex(" ", 4)

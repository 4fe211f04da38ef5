"""Carries over what one job had written and another had not read yet, into the partitions of a rescaled generation."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from connectors.kafka.client import make_producer
from connectors.kafka.offsets import Log
from connectors.kafka.reader import read_topic
from connectors.kafka.security import client_config
from infra.contract.offsets import Offsets
from infra.contract.topics import LARGEST_MESSAGE_BYTES
from infra.errors import UserError
from ops.rescale.division import Division

FLUSH_SECONDS = 120.0
_SETTINGS = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "compression.type": "lz4",
    "message.max.bytes": LARGEST_MESSAGE_BYTES,
}


@dataclass(frozen=True)
class Stretch:
    """A stretch of a topic: from where each job has read it to where its writer ends, and the topic that takes it."""

    topic: str
    target: str
    readers: Mapping[str, Offsets]  # by job
    ends: Offsets

    def begin(self, partition: int) -> int:
        """Where the slowest of the jobs stands."""
        return min(offsets[self.topic, partition] for offsets in self.readers.values())


def carry(stretch: Stretch, division: Division, bootstrap: str) -> dict[str, Offsets]:
    """Write each record of a stretch into the partitions that take it over, in the order of the log.

    Gives where each job is to begin in the target, which must be empty. Raises UserError if it wasn't, KafkaException
    if a record can't be written.
    """
    writer = _Writer(bootstrap, stretch.target)
    starts: dict[str, Offsets] = {job: {} for job in stretch.readers}
    for parent in range(division.before):
        place = stretch.topic, parent
        waiting = sorted(stretch.readers, key=lambda job: stretch.readers[job][place], reverse=True)
        for message in _records(stretch, parent, bootstrap):
            while waiting and stretch.readers[waiting[-1]][place] <= (message.offset() or 0):
                starts[waiting.pop()] |= writer.counts(division.children(parent))
            for partition in division.takers(parent, message.value()):
                writer.write(partition, message)
        for job in waiting:
            starts[job] |= writer.counts(division.children(parent))
    writer.finish(division)
    return starts


def _records(stretch: Stretch, partition: int, bootstrap: str) -> Iterator[Message]:
    begin, end = stretch.begin(partition), stretch.ends[stretch.topic, partition]
    if begin >= end:
        return
    place = {(stretch.topic, partition): begin}
    for message in read_topic(bootstrap, stretch.topic, begin=place, partitions=[partition]):
        if (message.offset() or 0) >= end:
            return
        yield message


class _Writer:
    """Writes a topic by a producer that keeps the order and repeats nothing, so that offsets are counted."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._producer: Producer = make_producer(client_config(bootstrap), _SETTINGS)
        self._written: Counter[int] = Counter()
        self._failed: KafkaError | None = None

    def counts(self, partitions: list[int]) -> Offsets:
        """How many records it has written into each of these: the offset of the next."""
        return {(self._topic, partition): self._written[partition] for partition in partitions}

    def write(self, partition: int, message: Message) -> None:
        """Write a record as it was: key, value, time and headers."""
        while True:
            self._producer.poll(0)
            try:
                self._producer.produce(
                    self._topic,
                    message.value(),
                    message.key(),
                    partition,
                    timestamp=message.timestamp()[1],
                    headers=message.headers() or [],
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
                continue
            self._written[partition] += 1
            return

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._failed = self._failed or error

    def finish(self, division: Division) -> None:
        """Wait until all is on the broker, and check that nothing else is."""
        left = self._producer.flush(FLUSH_SECONDS)
        if self._failed:
            raise KafkaException(self._failed)
        partitions = range(division.before * division.parts)
        ends = Log(self._bootstrap).ends([self._topic])
        if left or ends != self.counts([*partitions]):
            raise UserError(
                f"topic {self._topic!r}: holds other records than were carried over: was this rescaling cut before? "
                "kappa replay drop NAME, then again"
            )

"""Finds the offsets of a savepoint in the log of another cluster, which holds the same records at other offsets.

A mirror keeps a record's partition, order, bytes and Kafka timestamp, but not its offset. So a savepoint notes the last
record before each of its offsets: where the same record stands in the other log, the same follows.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from confluent_kafka import Message
from pydantic import BaseModel, ConfigDict

from connectors.kafka.offsets import Log
from connectors.kafka.reader import read_topic
from infra.contract.offsets import Offsets, Partition
from infra.contract.topics import TopicMap
from infra.errors import UserError

# Records that are alike and were sent within a minute can't be told apart.
ALIKE_MILLI = 60_000

Position = tuple[Partition, int]


class Landmark(BaseModel):
    """The last record before an offset of a partition."""

    model_config = ConfigDict(frozen=True)

    topic: str
    partition: int
    position: int  # the offset that it is before
    offset: int
    timestamp_ms: int
    sha256: str  # of its key and value

    @property
    def place(self) -> Partition:
        """Its partition."""
        return self.topic, self.partition

    def is_like(self, message: Message) -> bool:
        """Whether a record is the same, wherever it stands."""
        return message.timestamp()[1] == self.timestamp_ms and _digest(message) == self.sha256

    def is_same_record(self, other: "Landmark") -> bool:
        """Whether another landmark is the same record, wherever both stand."""
        return (self.timestamp_ms, self.sha256) == (other.timestamp_ms, other.sha256)


def take(kafka: Log, offsets: Iterable[Offsets]) -> tuple[Landmark, ...]:
    """The landmarks of all these offsets, in their order; none of those that no record is before."""
    positions = {position for found in offsets for position in found.items()}
    return tuple(
        Landmark(
            topic=topic,
            partition=partition,
            position=position,
            offset=message.offset() or 0,
            timestamp_ms=message.timestamp()[1],
            sha256=_digest(message),
        )
        for ((topic, partition), position), message in sorted(kafka.last_before(positions).items(), key=_first)
    )


def _first(item: tuple[Position, object]) -> Position:
    return item[0]


def _digest(message: Message) -> str:
    key, value = message.key() or b"", message.value() or b""
    return hashlib.sha256(b"%d %d " % (len(key), len(value)) + key + value).hexdigest()


def displaced(kafka: Log, landmarks: Iterable[Landmark], topics: TopicMap) -> list[Landmark]:
    """The landmarks where the log now has another record, or none though neither retention nor compaction took it."""
    marks = list(landmarks)
    if not marks:
        return []
    starts = kafka.starts({mark.topic for mark in marks})
    held = {(mark.place, mark.position): mark for mark in marks if mark.offset >= starts.get(mark.place, 0)}
    compacted = {topic.name for topic in topics if topic.cleanup == "compact"}
    found = kafka.last_before(held)

    def is_displaced(mark: Landmark, there: Message | None) -> bool:
        if there is None or there.offset() != mark.offset:
            return mark.topic not in compacted
        return not mark.is_like(there)

    return [mark for position, mark in held.items() if is_displaced(mark, found.get(position))]


def relocated(kafka: Log, landmarks: Iterable[Landmark], whose: str) -> dict[Position, int]:
    """The offset in the present log of each position that has a landmark; `whose` positions they are, an error says.

    Raises UserError if the record of one isn't there, or is there more than once.
    """
    return {(mark.place, mark.position): _found(kafka, mark, whose) for mark in landmarks}


def _found(kafka: Log, mark: Landmark, whose: str) -> int:
    begin = kafka.at([mark.topic], mark.timestamp_ms).get(mark.place)
    matches, is_last = list[int](), True
    for message in _records(kafka, mark, begin):
        if mark.is_like(message):
            matches.append(message.offset() or 0)
        is_last = bool(matches) and message.offset() == matches[-1]
        if message.timestamp()[1] > mark.timestamp_ms + ALIKE_MILLI:
            break
    where = f"{whose}: the record before offset {mark.position} of {mark.topic}/{mark.partition}"
    if not matches:
        raise UserError(f"{where} is not on {kafka.bootstrap}: has it been mirrored so far? Or is it another log?")
    if len(matches) > 1:
        raise UserError(f"{where} is on {kafka.bootstrap} {len(matches)} times; take another one")
    # Behind the last record there are markers of transactions, and nothing to read.
    return kafka.ends([mark.topic])[mark.place] if is_last else matches[0] + 1


def _records(kafka: Log, mark: Landmark, begin: int | None) -> Iterator[Message]:
    if begin is None:  # it has no such partition
        return iter(())
    return read_topic(kafka.bootstrap, mark.topic, begin={mark.place: begin}, partitions=[mark.partition])


def moved(offsets: Offsets, found: Mapping[Position, int], whose: str) -> Offsets:
    """Offsets in the log that `found` is of. One that nothing was before stays 0.

    Raises UserError if an offset has no landmark.
    """
    return {place: _moved(place, offset, found, whose) for place, offset in offsets.items()}


def _moved(place: Partition, offset: int, found: Mapping[Position, int], whose: str) -> int:
    if (place, offset) in found:
        return found[place, offset]
    if offset == 0:
        return 0
    raise UserError(
        f"{whose}: nothing was left before offset {offset} of {place[0]}/{place[1]} when it was taken, so "
        "that the place can't be found in another log; take another one"
    )

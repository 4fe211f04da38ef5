"""Where a consumer group stands in its topics: what it has not read, how old that is, and what retention has taken."""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import orjson
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from connectors.kafka.client import Connection, make_admin
from connectors.kafka.groups import Groups
from connectors.kafka.reader import value_of
from infra.contract.offsets import Offsets, Partition

SECONDS = 30.0
BACK = 20  # offsets before a position among which a watermark is looked for; some are transactions' markers
FETCH_BYTES = 65_536  # of a partition; a broker gives at least one batch of records

_CONSUMER = {
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "fetch.message.max.bytes": FETCH_BYTES,
    "queued.max.messages.kbytes": 1024,
}


@dataclass(frozen=True)
class Standing:
    """Where a group stands in a partition, in offsets; of what was asked for, times in ms since the Unix epoch.

    Attributes:
        position: what the group reads next; the start if it has read nothing.
        start: the first offset that retention has left.
        end: behind the last committed record.
        unread_milli: the Kafka timestamp of the record at `position`, if there is one.
        watermark_milli: the last watermark before `position`, if one is near.
        has_committed: whether the group has committed a position there.
    """

    position: int
    start: int
    end: int
    unread_milli: int | None = None
    watermark_milli: int | None = None
    has_committed: bool = True

    @property
    def lag(self) -> int:
        """Offsets that are to be read, those that are gone left out."""
        return max(0, self.end - max(self.position, self.start))

    @property
    def lost(self) -> int:
        """Offsets that were deleted before they were read."""
        return max(0, self.start - self.position)


class Standings:
    """Asks a broker where groups stand. Only `look` may be called by several threads at once. Close it."""

    def __init__(self, connection: Connection) -> None:
        self._admin: AdminClient = make_admin(connection, {"log_level": 0})
        self._groups = Groups(connection, _CONSUMER)

    def close(self) -> None:
        """Leave the broker."""
        self._groups.close()

    def look(self, group: str, topics: Iterable[str], begin: Mapping[Partition, int] = {}) -> dict[Partition, Standing]:
        """Where a group stands in each partition; those whose leader doesn't answer are left out.

        Where it has committed nothing, it stands at `begin`, or at the start.

        Raises KafkaException if the broker, or the group's coordinator, can't be reached.
        """
        known = self._admin.list_topics(timeout=SECONDS).topics
        places = [(topic, number) for topic in topics if topic in known for number in known[topic].partitions]
        ends = self._offsets(places, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        starts = self._offsets(places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        committed = self._groups.committed(group, places)
        positions = {**starts, **begin, **committed}
        return {
            place: Standing(positions[place], starts[place], ends[place], has_committed=place in committed)
            for place in places
            if place in starts and place in ends
        }

    def with_times(
        self, group: str, standings: Mapping[Partition, Standing], watermarked: Collection[str]
    ) -> dict[Partition, Standing]:
        """The same with the times of what is unread; in the topics `watermarked` also with the last watermarks."""
        wanted = {
            place: max(one.start, one.position - (BACK if place[0] in watermarked else 0))
            for place, one in standings.items()
            if one.lag or (place[0] in watermarked and one.end > one.start)
        }
        found, consumer = dict(standings), self._groups.consumer(group)
        assigned = [TopicPartition(*place, offset) for place, offset in wanted.items()]
        consumer.assign(assigned)
        consumer.resume(assigned)  # the last time each was paused, which outlasts an assignment
        try:
            deadline, left = time.monotonic() + SECONDS, {*wanted}
            while left and time.monotonic() < deadline:
                for message in consumer.consume(500, 0.2):
                    place = message.topic() or "", message.partition() or 0
                    if place in left and self._is_seen(message, place, found):
                        left.discard(place)
                        consumer.pause([TopicPartition(*place)])
        finally:
            consumer.unassign()
        return found

    def _is_seen(self, message: Message, place: Partition, found: dict[Partition, Standing]) -> bool:
        """Note what a message says of its partition; returns whether that is all that was to be learned there."""
        if error := message.error():
            if error.code() == KafkaError._PARTITION_EOF:
                return True
            if not error.retriable():
                raise KafkaException(error)
            return False
        one, offset = found[place], message.offset() or 0
        if offset >= one.position:
            found[place] = replace(one, unread_milli=message.timestamp()[1])
            return True
        if (watermark := _watermark(message)) is not None:
            found[place] = replace(one, watermark_milli=watermark)
        return offset + 1 >= one.end

    def _offsets(self, places: Collection[Partition], spec: OffsetSpec) -> Offsets:
        if not places:
            return {}
        asked = {TopicPartition(*place): spec for place in places}
        answers = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=SECONDS
        )
        found: Offsets = {}
        for at, answer in answers.items():
            try:
                found[at.topic, at.partition] = answer.result().offset
            except KafkaException as error:
                if error.args[0].code() in {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}:
                    raise
        return found


def _watermark(message: Message) -> int | None:
    """The time of a watermark record, in ms; None for any other."""
    if message.key() is not None:
        return None
    try:
        nano = orjson.loads(value_of(message) or b"null")["watermark_unix_nano"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return nano // 1_000_000 if isinstance(nano, int) else None

"""Where the log begins and ends, and how far a job has read it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from connectors.kafka.access import described, partitions_of
from connectors.kafka.client import READER, fetch_committed, make_admin, open_consumer
from connectors.kafka.retries import retrying
from connectors.kafka.security import client_config
from infra.contract.offsets import Offsets, Partition

SECONDS = 30.0
TAIL = 50  # offsets before an end among which a record is found: the others are transactions' markers
_NONE = str(Uuid(0, 0))  # the identity of a topic that has none
# The client knows other leaders than the brokers do.
_STALE = {KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION}

# A broker that is started again is waited for.
_patient = retrying(300, pause_seconds=0.5).wraps


class Log:
    """Asks a broker for offsets. As committed records end: behind the last transaction that is decided."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._connection = client_config(bootstrap)
        self.admin = make_admin(self._connection, {"log_level": 0})

    @_patient
    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """What each of these topics that is there is to the broker, whatever its name: made anew, it is another one.

        None of brokers that don't tell them apart, as those before Kafka 2.8.
        """
        found = {}
        for name, answer in described(self.admin, topics):
            try:
                found[name] = str(answer.result().topic_id)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        return {name: identity for name, identity in found.items() if identity != _NONE}

    @_patient
    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """Every partition of these topics. Raises KeyError if one is gone, UserError if this user may not see it."""
        topics = list(topics)
        found = partitions_of(self.admin, topics)
        return [(topic, partition) for topic in topics for partition in range(found[topic])]

    def starts(self, topics: Iterable[str]) -> Offsets:
        """The first offset that is still there."""
        return self._offsets(topics, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def ends(self, topics: Iterable[str]) -> Offsets:
        """The next offset."""
        return self._offsets(topics, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def at(self, topics: Iterable[str], time_ms: int) -> Offsets:
        """The first offset whose Kafka timestamp is not before `time_ms`; the end if there is none."""
        topics = list(topics)
        ends = self.ends(topics)
        found = self._offsets(topics, OffsetSpec.for_timestamp(time_ms))  # type: ignore[no-untyped-call]
        return {partition: offset if offset >= 0 else ends[partition] for partition, offset in found.items()}

    @_patient
    def _offsets(self, topics: Iterable[str], spec: OffsetSpec) -> Offsets:
        wanted = {TopicPartition(*partition): spec for partition in self.partitions(topics)}
        if not wanted:
            return {}
        found = self.admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=SECONDS)
        return {(at.topic, at.partition): future.result().offset for at, future in found.items()}

    @_patient
    def committed(self, group: str, partitions: Iterable[Partition]) -> Offsets:
        """A consumer group's offsets, those in open transactions left out; 0 where it has none."""
        wanted = [TopicPartition(*partition) for partition in partitions]
        # The other isolation would wait for open transactions.
        with open_consumer(self._connection, group, "read_uncommitted") as consumer:
            found = fetch_committed(consumer, wanted)
        return {(at.topic, at.partition): max(0, at.offset) for at in found}

    @_patient
    def times(self, offsets: Mapping[Partition, int]) -> dict[Partition, int]:
        """The newest Kafka timestamp, ms, of the last records before each offset; only where there is one."""
        found: dict[Partition, int] = {}
        with self._reader() as consumer:
            for place, message in _before(consumer, offsets):
                found[place] = max(found.get(place, 0), message.timestamp()[1])
        return found

    @_patient
    def last_before(self, positions: Iterable[tuple[Partition, int]]) -> dict[tuple[Partition, int], Message]:
        """The last committed record before each of these offsets of a partition; only where there is one."""
        found = {}
        with self._reader() as consumer:
            for ends in _rounds(positions):
                found.update({(place, ends[place]): message for place, message in _before(consumer, ends)})
        return found

    def _reader(self) -> AbstractContextManager[Consumer]:
        # At the end of a partition a broker that has no more says so at once.
        return open_consumer(self._connection, READER, settings={"fetch.wait.max.ms": 10})


def _rounds(positions: Iterable[tuple[Partition, int]]) -> list[Offsets]:
    """The same positions, so parted that no partition is in one of them twice."""
    rounds = list[Offsets]()
    for place, offset in positions:
        free = next((ends for ends in rounds if place not in ends), None)
        if free is None:
            rounds.append(free := {})
        free[place] = offset
    return rounds


def _before(consumer: Consumer, ends: Mapping[Partition, int]) -> Iterator[tuple[Partition, Message]]:
    """The committed records at the last TAIL offsets before each end, of all partitions at once."""
    left, assigned = Offsets(), list[TopicPartition]()
    for place, wanted in ends.items():
        low, high = consumer.get_watermark_offsets(TopicPartition(*place), SECONDS)
        end = min(wanted, high)
        start = max(low, end - TAIL)
        if start < end:
            left[place] = end
            assigned.append(TopicPartition(*place, start))
    consumer.assign(assigned)
    while left:
        for message in consumer.consume(TAIL, 0.05):
            if message.error():
                raise KafkaException(message.error())
            place = (message.topic() or "", message.partition() or 0)
            if (message.offset() or 0) < left.get(place, 0):
                yield place, message
        reached = consumer.position([TopicPartition(*place) for place in left])
        done = [(at.topic, at.partition) for at in reached if at.offset >= left[at.topic, at.partition]]
        consumer.incremental_unassign([TopicPartition(*place) for place in done])
        left = {place: end for place, end in left.items() if place not in done}


def missing(offsets: Mapping[Partition, int], ends: Mapping[Partition, int]) -> int:
    """How many offsets before `ends` are not yet read: the lag over all partitions."""
    return sum(max(0, end - offsets.get(partition, 0)) for partition, end in ends.items())


def earliest_offsets(admin: AdminClient, partitions: Iterable[Partition], seconds: float = SECONDS) -> Offsets:
    """The first offsets of `partitions` that retention has left."""
    start = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    return _asked(admin, {TopicPartition(topic, number): start for topic, number in partitions}, seconds)


def latest_offsets(admin: AdminClient, partitions: Iterable[Partition], seconds: float = SECONDS) -> Offsets:
    """The ends of `partitions`, open transactions included: what is not yet committed still holds a watermark back."""
    end = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    return _asked(admin, {TopicPartition(topic, number): end for topic, number in partitions}, seconds)


def _asked(admin: AdminClient, wanted: dict[TopicPartition, OffsetSpec], seconds: float) -> Offsets:
    try:
        return _offsets(admin, wanted, seconds)
    except KafkaException as error:
        if error.args[0].code() not in _STALE:
            raise
    # The client would ask with the leaders of before a broker's restart for ever.
    admin.list_topics(timeout=seconds)
    return _offsets(admin, wanted, seconds)


def _offsets(admin: AdminClient, wanted: dict[TopicPartition, OffsetSpec], seconds: float) -> Offsets:
    found = admin.list_offsets(wanted, request_timeout=seconds)
    return {(at.topic, at.partition): future.result().offset for at, future in found.items()}

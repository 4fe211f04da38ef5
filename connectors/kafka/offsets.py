"""Where the log begins and ends, and how far a job has read it."""

from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from connectors.kafka.client import client_config

Place = tuple[str, int]  # topic, partition
Positions = dict[Place, int]
SECONDS = 30.0
TAIL = 50  # offsets before a position among which a record is found: the others are transactions' markers
# What passes by itself, of the errors that don't say so.
_TRANSIENT = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,  # of a topic that was just made, or a broker that was started again
}


def _passes(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and (error.args[0].retriable() or error.args[0].code() in _TRANSIENT)


# A broker that is started again is waited for.
patient = retry(retry=retry_if_exception(_passes), wait=wait_fixed(0.5), stop=stop_after_delay(300), reraise=True)


class Log:
    """Asks a broker for offsets. As committed records end: behind the last transaction that is decided."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient(client_config(bootstrap, log_level=0))

    @patient
    def places(self, topics: Iterable[str]) -> list[Place]:
        """Every partition of these topics."""
        found = self.admin.list_topics(timeout=SECONDS).topics
        return [(topic, partition) for topic in topics for partition in sorted(found[topic].partitions)]

    def starts(self, topics: Iterable[str]) -> Positions:
        """The first offset that is still there."""
        return self._offsets(topics, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def ends(self, topics: Iterable[str]) -> Positions:
        """The next offset."""
        return self._offsets(topics, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def at(self, topics: Iterable[str], time_ms: int) -> Positions:
        """The first offset whose Kafka timestamp is not before `time_ms`; the end if there is none."""
        topics = list(topics)
        ends = self.ends(topics)
        found = self._offsets(topics, OffsetSpec.for_timestamp(time_ms))  # type: ignore[no-untyped-call]
        return {place: offset if offset >= 0 else ends[place] for place, offset in found.items()}

    @patient
    def _offsets(self, topics: Iterable[str], spec: OffsetSpec) -> Positions:
        wanted = {TopicPartition(*place): spec for place in self.places(topics)}
        if not wanted:
            return {}
        found = self.admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=SECONDS)
        return {(place.topic, place.partition): future.result().offset for place, future in found.items()}

    @patient
    def committed(self, group: str, places: Iterable[Place]) -> Positions:
        """A consumer group's offsets, those in open transactions left out; 0 where it has none."""
        consumer = self._consumer(group, "read_uncommitted")  # the other isolation would wait for them
        try:
            found = consumer.committed([TopicPartition(*place) for place in places], timeout=SECONDS)
        finally:
            consumer.close()
        for place in found:
            if place.error:
                raise KafkaException(place.error)
        return {(place.topic, place.partition): max(0, place.offset) for place in found}

    @patient
    def times(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """The newest Kafka timestamp, ms, of the last records before each position; only where there is one."""
        consumer = self._consumer("kappa.replay")
        try:
            newest = {place: self._newest(consumer, place, offset) for place, offset in positions.items()}
        finally:
            consumer.close()
        return {place: time for place, time in newest.items() if time is not None}

    def _newest(self, consumer: Consumer, place: Place, end: int) -> int | None:
        low, _ = consumer.get_watermark_offsets(TopicPartition(*place), SECONDS)
        position, newest = max(low, end - TAIL), None
        consumer.assign([TopicPartition(*place, position)])
        while position < end:
            message = consumer.poll(0.2)
            if message is not None:
                if message.error():
                    raise KafkaException(message.error())
                newest = max(newest or 0, message.timestamp()[1])
            position = max(position, consumer.position([TopicPartition(*place)])[0].offset)
        return newest

    def _consumer(self, group: str, isolation: str = "read_committed") -> Consumer:
        own = {"group.id": group, "enable.auto.commit": False, "isolation.level": isolation}
        return Consumer(client_config(self.bootstrap, **own))


def missing(positions: Positions, ends: Positions) -> int:
    """Offsets before `ends` that are not yet read."""
    return sum(max(0, end - positions.get(place, 0)) for place, end in ends.items())

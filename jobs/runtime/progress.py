"""How far a job has come, told to others: consumer-group offsets for operators, ticks for the jobs downstream."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import orjson
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from connectors.kafka.reader import read_records
from connectors.sinks.kafka import Row, SinkSettings, Writer, open_consumer, read_markers
from infra.contract.topics import Topic, TopicMap
from infra.errors import UserError
from jobs.runtime.checkpoint import Offsets

# The client knows other leaders than the brokers do.
_STALE = {KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION}


class TakenOverError(UserError):
    """Another copy of this job has begun to write: this one must end, and not be started again."""


class Closing:
    """Ends each batch of a query, in one transaction of the driver: its ticks, and its positions for operators.

    The positions are offsets of a consumer group named as the query, so that ordinary tools see the lag; Spark commits
    none. The transaction is opened under one name for the life of the process, so a second copy of the job fences the
    first here.
    """

    def __init__(self, settings: SinkSettings) -> None:
        """`settings` are those of the query's sink.

        Raises ProgressError if another checkpoint was the last to write: before it fences that one's job.
        """
        self.query = settings.query
        driver = replace(settings, query=f"{settings.query}.driver")
        with open_consumer(driver.connection, driver.group, "read_uncommitted") as consumer:
            for marker in read_markers(driver, consumer, [0]):
                marker.check(driver, marker.done, 1)
        self._writer = Writer(driver, 0)
        with open_consumer(settings.connection, settings.query) as consumer:
            self._group = consumer.consumer_group_metadata()

    def check(self, batch_id: int) -> None:
        """Raises ProgressError if `batch_id` of this checkpoint can't follow on what was closed last."""
        if self._writer.marker:
            self._writer.marker.check(self._writer.settings, batch_id, 1)

    def close(self, batch_id: int, end: Offsets, ticks: Iterable[Row] = ()) -> None:
        """Close the batch that ends at `end`; does nothing if an earlier attempt did.

        Raises TakenOverError if another copy of this job runs.
        """
        positions = [TopicPartition(topic, partition, offset) for (topic, partition), offset in end.items()]
        try:
            if self._writer.begin(batch_id, 1):
                self._writer.produce(ticks)
                self._writer.send_positions(positions, self._group)
                self._writer.commit()
        except KafkaException as error:
            self._writer.abandon()
            if error.args[0].code() not in _FENCED:
                raise
            raise TakenOverError(f"{self.query}: another copy of this job runs; stop one of them") from error


_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


# Brokers' clocks differ, and a replicated record is seen later than it was stamped: by at most this much together.
TICK_MARGIN_MS = 5_000


@dataclass
class Ticker:
    """Event-time progress of a job that reads telemetry, from what the log says.

    An event that is older than its Kafka timestamp by more than its topic's lateness doesn't pass enrichment. So a
    partition that was read up to Kafka time K can bring no event before K - lateness. A partition that was read to its
    end can only bring records stamped after those already read elsewhere, so it doesn't hold the others back.
    """

    lateness_ms: Mapping[str, int]  # by topic
    newest: dict[tuple[str, int], int] = field(default_factory=dict)  # newest Kafka timestamp, ms, by partition
    tick_ms: int = 0

    def advance(self, end: Offsets, latest: Offsets, newest: Mapping[tuple[str, int], int]) -> int | None:
        """The new tick in ms, or None if event time has not moved.

        `end` is where the batch ended, `latest` the ends of the partitions after it was planned.
        """
        for partition, timestamp in newest.items():
            self.newest[partition] = max(timestamp, self.newest.get(partition, timestamp))
        if not self.newest:
            return None
        # Retried records are older than the ticks and say so (`retried`): their topic holds nothing back.
        end = {partition: offset for partition, offset in end.items() if partition[0] in self.lateness_ms}
        behind = {partition for partition, offset in end.items() if latest[partition] > offset}
        if behind - self.newest.keys():
            return None  # one that has not been seen since the start: nobody knows where it stands
        frontier = max(self.newest.values())
        bounds = [
            (self.newest[partition] if partition in behind else frontier) - self.lateness_ms[partition[0]]
            for partition in end
        ]
        tick = min(bounds) - TICK_MARGIN_MS
        if tick <= self.tick_ms:
            return None
        self.tick_ms = tick
        return tick


def latest_offsets(admin: AdminClient, partitions: Iterable[tuple[str, int]], seconds: float = 30) -> Offsets:
    """The ends of `partitions`, open transactions included: what is not yet committed still holds a tick back."""
    end = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    wanted = {TopicPartition(topic, number): end for topic, number in partitions}
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
    return {(p.topic, p.partition): future.result().offset for p, future in found.items()}


def tick_records(topic: Topic, tick_ms: int) -> list[Row]:
    """The tick for every partition of `topic`."""
    value = orjson.dumps({"tick_unix_nano": tick_ms * 1_000_000})
    return [(topic.name, partition, None, value, tick_ms, None) for partition in range(topic.partitions)]


def last_ticks(bootstrap: str, topic: str, tail: int | None = None) -> dict[int, int]:
    """The newest tick, unix ns, of each partition that has one; with `tail` among its last so many offsets only."""
    records = read_records(bootstrap, topic, tail)
    return {partition: record["tick_unix_nano"] for partition, record in records if "tick_unix_nano" in record}


def lateness_by_topic(topics: TopicMap) -> dict[str, int]:
    """Allowed lateness of each telemetry topic in ms."""
    return {topic.name: int(topic.lateness.total_seconds() * 1000) for topic in topics.telemetry if topic.lateness}

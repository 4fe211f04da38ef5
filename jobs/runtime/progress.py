"""How far a job has come, told to others: consumer-group offsets for operators, ticks for the jobs downstream."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from connectors.sinks.kafka import SinkSettings, write_once
from infra.topics import TopicMap
from jobs.runtime.checkpoint import Offsets


class GroupOffsets:
    """Commits a job's positions to a consumer group: Spark doesn't, and lag would be invisible to ordinary tools."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})

    def commit(self, offsets: Offsets) -> None:
        """Commit the next offset of each partition."""
        positions = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        self._consumer.commit(offsets=positions, asynchronous=False)

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()


# Brokers stamp the records; their clocks may differ by this much when a partition's leader changes.
BROKER_CLOCK_SKEW_MS = 1_000


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
        behind = {partition for partition, offset in end.items() if latest[partition] > offset}
        if behind - self.newest.keys():
            return None  # one that has not been seen since the start: nobody knows where it stands
        frontier = max(self.newest.values())
        bounds = [
            (self.newest[partition] if partition in behind else frontier) - self.lateness_ms[partition[0]]
            for partition in end
        ]
        tick = min(bounds) - BROKER_CLOCK_SKEW_MS
        if tick <= self.tick_ms:
            return None
        self.tick_ms = tick
        return tick


def latest_offsets(admin: AdminClient, partitions: Offsets) -> Offsets:
    """The ends of `partitions`, open transactions included: what is not yet committed still holds a tick back."""
    end = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    wanted = {TopicPartition(topic, number): end for topic, number in partitions}
    found = admin.list_offsets(wanted, request_timeout=30)
    return {(p.topic, p.partition): future.result().offset for p, future in found.items()}


class TickWriter:
    """Writes a tick to every partition of a topic, exactly once a batch, after the batch's own records."""

    def __init__(self, topic: str, partitions: int, settings: SinkSettings) -> None:
        self.topic, self.partitions = topic, partitions
        self._settings = settings

    def write(self, tick_ms: int, batch_id: int) -> None:
        """Write the tick as part of batch `batch_id`; one that an earlier attempt wrote is not repeated."""
        value = orjson.dumps({"tick_unix_nano": tick_ms * 1_000_000})
        rows = [(self.topic, partition, None, value, tick_ms, None) for partition in range(self.partitions)]
        write_once(self._settings, 0, rows, batch_id, 1)


def lateness_by_topic(topics: TopicMap) -> dict[str, int]:
    """Allowed lateness of each telemetry topic in ms."""
    return {topic.name: int(topic.lateness.total_seconds() * 1000) for topic in topics.telemetry if topic.lateness}

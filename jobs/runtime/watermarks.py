"""Watermarks of a job that reads telemetry: how far event time has come, by what the log says.

A *watermark record* in a partition of a derived topic promises that no event earlier than it follows there. Jobs
downstream close windows by these records alone, so they decide alike in each replay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from connectors.kafka.reader import read_records
from connectors.kafka.transactions import Row
from infra.contract.offsets import Offsets, Partition
from infra.contract.topics import Topic, TopicMap
from infra.contract.watermarks import watermark_of, watermark_value

# Brokers' clocks differ, and a replicated record is seen later than it was stamped: by at most this much together.
WATERMARK_MARGIN_MS = 5_000


@dataclass
class WatermarkTracker:
    """Event-time progress of a job that reads telemetry, from what the log says.

    An event that is older than its Kafka timestamp by more than its topic's lateness doesn't pass enrichment. So a
    partition that was read up to Kafka time K can bring no event before K - lateness. A partition that was read to its
    end can only bring records stamped after those already read elsewhere, so it doesn't hold the others back.
    """

    lateness_ms: Mapping[str, int]  # by topic
    newest: dict[Partition, int] = field(default_factory=dict)  # newest Kafka timestamp, ms, by partition
    watermark_ms: int = 0

    def advance(self, end: Offsets, latest: Offsets, newest: Mapping[Partition, int]) -> int | None:
        """The new watermark in ms, or None if event time has not moved.

        `end` is where the batch ended, `latest` the ends of the partitions after it was planned.
        """
        for partition, timestamp in newest.items():
            self.newest[partition] = max(timestamp, self.newest.get(partition, timestamp))
        if not self.newest:
            return None
        # Retried records are older than the watermarks and say so (`retried`): their topic holds nothing back.
        end = {partition: offset for partition, offset in end.items() if partition[0] in self.lateness_ms}
        behind = {partition for partition, offset in end.items() if latest[partition] > offset}
        if behind - self.newest.keys():
            return None  # one that has not been seen since the start: nobody knows where it stands
        frontier = max(self.newest.values())
        bounds = [
            (self.newest[partition] if partition in behind else frontier) - self.lateness_ms[partition[0]]
            for partition in end
        ]
        watermark = min(bounds) - WATERMARK_MARGIN_MS
        if watermark <= self.watermark_ms:
            return None
        self.watermark_ms = watermark
        return watermark


def watermark_records(topic: Topic, watermark_ms: int) -> list[Row]:
    """The watermark for every partition of `topic`."""
    value = watermark_value(watermark_ms * 1_000_000)
    return [(topic.name, partition, None, value, watermark_ms, None) for partition in range(topic.partitions)]


def last_watermarks(bootstrap: str, topic: str, tail: int | None = None) -> dict[int, int]:
    """The newest watermark, unix ns, of each partition that has one; with `tail` among its last so many offsets."""
    records = read_records(bootstrap, topic, tail)
    found = ((partition, watermark_of(record)) for partition, record in records)
    return {partition: watermark for partition, watermark in found if watermark is not None}


def lateness_by_topic(topics: TopicMap) -> dict[str, int]:
    """Allowed lateness of each telemetry topic in ms."""
    return {topic.name: int(topic.lateness.total_seconds() * 1000) for topic in topics.telemetry if topic.lateness}

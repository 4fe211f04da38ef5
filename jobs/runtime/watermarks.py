"""Watermarks of a job that reads telemetry: how far event time has come, by what the log says.

A *watermark record* in a partition of a derived topic promises that no event earlier than it follows there. Jobs
downstream close windows by these records alone, so they decide alike in each replay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from connectors.kafka.reader import read_records
from connectors.kafka.transactions import Row
from connectors.sinks.kafka import Span
from infra.contract.lateness import AllowedLateness
from infra.contract.offsets import Offsets, Partition
from infra.contract.topics import Topic
from infra.contract.watermarks import watermark_of, watermark_value
from jobs.runtime.last_hour import LastHour

# The margin, in ms: at first and at most; and at least, for a skew that the last hour did not show.
LARGEST_MARGIN_MS, LEAST_MARGIN_MS = 5_000, 100
ENOUGH = 100  # times that a partition was read on


@dataclass
class _Seen:
    times: int = 0
    largest_ms: int = 0


class Skew:
    """By how much records were older than what was expected of their partition, over the last hour of Kafka time.

    Brokers' clocks differ, and a replicated record is seen later than it was stamped.
    """

    def __init__(self) -> None:
        self._last_hour = LastHour(_Seen)

    def observe(self, expected_ms: int, oldest_ms: int) -> None:
        """Take what came of a partition of which records from the Kafka time `expected_ms` on were expected."""
        seen = self._last_hour.at(expected_ms)
        seen.times += 1
        seen.largest_ms = max(seen.largest_ms, expected_ms - oldest_ms)

    @property
    def margin_ms(self) -> int:
        """What a watermark must leave for records that are still to come: twice the largest skew, and a little."""
        if sum(seen.times for seen in self._last_hour) < ENOUGH:
            return LARGEST_MARGIN_MS
        largest = max(seen.largest_ms for seen in self._last_hour)
        return min(LARGEST_MARGIN_MS, LEAST_MARGIN_MS + 2 * largest)


@dataclass
class WatermarkTracker:
    """Event-time progress of a job that reads telemetry, from what the log says.

    An event that is older than its Kafka timestamp by more than is allowed then doesn't pass enrichment. So a partition
    that was read up to Kafka time K can bring no event before K - lateness. A partition that was read to its end can
    only bring records stamped after those already read elsewhere, but for the skew: so it doesn't hold the others back.
    """

    lateness: AllowedLateness
    newest: dict[Partition, int] = field(default_factory=dict)  # newest Kafka timestamp, ms, by partition
    watermark_ms: int = 0
    skew: Skew = field(default_factory=Skew)
    _expected: dict[Partition, int] = field(default_factory=dict)  # the oldest Kafka timestamp that may still come, ms

    def advance(self, end: Offsets, latest: Offsets, read: Mapping[Partition, Span]) -> int | None:
        """The new watermark in ms, or None if event time has not moved.

        `end` is where the batch ended, `latest` the ends of the partitions after it was planned, `read` the Kafka
        timestamps of what it read.
        """
        self._observe(read)
        if not self.newest:
            return None
        # Retried records are older than the watermarks and say so (`retried`): their topic holds nothing back.
        end = {partition: offset for partition, offset in end.items() if partition[0] in self.lateness.by_topic}
        behind = {partition for partition, offset in end.items() if latest[partition] > offset}
        if behind - self.newest.keys():
            return None  # one that has not been seen since the start: nobody knows where it stands
        frontier = max(self.newest.values())
        self._expected = {place: self.newest[place] if place in behind else frontier for place in end}
        margin = self.skew.margin_ms
        watermark = min(
            self.lateness.oldest(topic, expected - margin) for (topic, _), expected in self._expected.items()
        )
        if watermark <= self.watermark_ms:
            return None
        self.watermark_ms = watermark
        return watermark

    def _observe(self, read: Mapping[Partition, Span]) -> None:
        for partition, (oldest, newest) in read.items():
            self.newest[partition] = max(newest, self.newest.get(partition, newest))
            if (expected := self._expected.get(partition)) is not None:
                self.skew.observe(expected, oldest)


def watermark_records(topic: Topic, watermark_ms: int) -> list[Row]:
    """The watermark for every partition of `topic`."""
    value = watermark_value(watermark_ms * 1_000_000)
    return [(topic.name, partition, None, value, watermark_ms, None) for partition in range(topic.partitions)]


def last_watermarks(bootstrap: str, topic: str, tail: int | None = None) -> dict[int, int]:
    """The newest watermark, unix ns, of each partition that has one; with `tail` among its last so many offsets."""
    records = read_records(bootstrap, topic, tail)
    found = ((partition, watermark_of(record)) for partition, record in records)
    return {partition: watermark for partition, watermark in found if watermark is not None}

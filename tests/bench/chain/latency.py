"""How long after its time an event is in `events`, a window's statistics and a novelty are there."""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from confluent_kafka import OFFSET_END, Consumer, KafkaException, Message, TopicPartition

from tests.bench.background import Background

MILLI, NANO = 1000, 1_000_000_000
# Of an event the broker's time of its raw record, of a window its end.
_MARK = re.compile(rb'"(?:timestamp_unix_milli":(?P<milli>\d+)|end_unix_nano":(?P<nano>\d+))')


def quantiles(values: Sequence[float], unit: str = "s") -> dict[str, float]:
    """p50, p99 and maximum of some values, by name and unit, and how many records these are; nothing of none."""
    if not values:
        return {}
    p50, p99, most = np.quantile(values, [0.5, 0.99, 1.0]).round(2).tolist()
    return {f"p50_{unit}": p50, f"p99_{unit}": p99, f"max_{unit}": most, "records": len(values)}


def by_timestamp(message: Message) -> float:
    """A record's time: its timestamp."""
    return message.timestamp()[1] / MILLI


def by_content(message: Message) -> float:
    """A record's time: what is written in it, as not every engine sets the timestamps of what it writes."""
    mark = _MARK.search(message.value())
    assert mark, f"{message.topic()}: no time in {message.value()[:200]!r}"
    return int(mark["milli"]) / MILLI if mark["milli"] else int(mark["nano"]) / NANO


class Latencies(Background):
    """Reads one partition of each topic, committed records only, and takes the age of each record by `time_of`.

    Our timestamps are the broker's time of the raw record in `events`, a window's end in `statistics` and `novelties`.
    """

    def __init__(
        self, bootstrap: str, topics: tuple[str, ...], time_of: Callable[[Message], float] = by_timestamp
    ) -> None:
        super().__init__()
        self._time_of = time_of
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "bench.latency", "enable.auto.commit": False}
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_END) for topic in topics])

    def run(self) -> None:
        """Until the block ends."""
        while not self.over.is_set():
            messages = self._consumer.consume(1000, 0.1)
            now = time.time()
            for message in messages:
                if message.error():
                    raise KafkaException(message.error())
                if message.key() is not None:  # a watermark has none
                    self._seconds[message.topic()].append(now - self._time_of(message))

    def quantiles(self) -> dict[str, dict[str, float]]:
        """p50, p99 and maximum of each topic that had a record, s."""
        return {topic: quantiles(seconds) for topic, seconds in self._seconds.items()}

    def close(self) -> None:
        """Close its consumer."""
        self._consumer.close()

"""How long after its time an event is in `events`, a window's statistics and a novelty are there."""

import threading
import time
from collections import defaultdict

import numpy as np
from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

MILLI = 1000


class Latencies(threading.Thread):
    """Reads one partition of each topic, committed records only, and takes the age of each record's timestamp.

    That is the broker's time of the raw record in `events`, the window's end in `statistics` and `novelties`.
    """

    def __init__(self, bootstrap: str, topics: tuple[str, ...]) -> None:
        super().__init__(daemon=True)
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._over = threading.Event()
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "bench.latency", "enable.auto.commit": False}
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_END) for topic in topics])

    def run(self) -> None:
        """Until the block ends."""
        while not self._over.is_set():
            messages = self._consumer.consume(1000, 0.1)
            now = time.time()
            for message in messages:
                if message.error():
                    raise KafkaException(message.error())
                if message.key() is not None:  # a watermark has none
                    self._seconds[message.topic()].append(now - message.timestamp()[1] / MILLI)

    def quantiles(self) -> dict[str, dict[str, float]]:
        """p50, p99 and maximum of each topic that had a record, s."""
        return {
            topic: {
                **{
                    name: round(float(value), 2) for name, value in zip(("p50_s", "p99_s", "max_s"), found, strict=True)
                },
                "records": len(seconds),
            }
            for topic, seconds in self._seconds.items()
            for found in [np.quantile(seconds, [0.5, 0.99, 1.0])]
        }

    def __enter__(self) -> "Latencies":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        self._consumer.close()

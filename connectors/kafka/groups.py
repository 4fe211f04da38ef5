"""Consumer groups that are asked again and again, each by a client that stays: to make one costs a connection."""

import threading
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, TopicPartition

from connectors.kafka.client import Connection, fetch_committed, make_consumer
from infra.contract.offsets import Offsets, Partition

# With the other isolation a group's offsets that an open transaction holds would be waited for.
_ALWAYS = {"isolation.level": "read_uncommitted", "log_level": 0}


class Groups:
    """A consumer for each group that is asked for; none joins its group. Close it."""

    def __init__(self, connection: Connection, settings: Mapping[str, object] = {}) -> None:
        self._connection, self._settings = connection, {**_ALWAYS, **settings}
        self._consumers: dict[str, Consumer] = {}
        self._lock = threading.Lock()

    def consumer(self, group: str) -> Consumer:
        """The client of a group, as it was left the last time."""
        with self._lock:
            if group not in self._consumers:
                self._consumers[group] = make_consumer(self._connection, group, self._settings)
            return self._consumers[group]

    def committed(self, group: str, partitions: Iterable[Partition]) -> Offsets:
        """A group's offsets, those in open transactions left out, of the partitions where it has one.

        Raises KafkaException if the group's coordinator doesn't answer.
        """
        wanted = [TopicPartition(*partition) for partition in partitions]
        # Not by the admin client: where a broker knows no group yet, its call never returns, or ends the process.
        found = fetch_committed(self.consumer(group), wanted) if wanted else []
        return {(at.topic, at.partition): at.offset for at in found if at.offset >= 0}

    def close(self) -> None:
        """Leave the broker."""
        for consumer in self._consumers.values():
            consumer.close()

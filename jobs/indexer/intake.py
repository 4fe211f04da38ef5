"""The indexer's side of its consumer group: batches, waiting without losing the partitions, going back, gaps.

A gap is what retention, or somebody, has deleted from a topic before it was read.
"""

import threading
import time
from collections.abc import Iterable
from typing import Any

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Polled

from connectors.kafka.access import partitions_of, reach
from connectors.kafka.client import make_admin, make_consumer, topic_partitions
from connectors.kafka.offsets import earliest_offsets, latest_offsets
from connectors.kafka.reader import value_of
from connectors.kafka.security import client_config
from infra.contract.offsets import Offsets
from infra.errors import UserError
from jobs.indexer.batch import Message
from jobs.runtime.health import HEALTH

BATCH_RECORDS = 5_000
# A novelty waits for the batch before its own, and for what was fetched before it: with a minute's statistics of a
# thousand machines, 8 MB, that was eleven seconds.
BATCH_BYTES = 2_000_000
LINGER_SECONDS = 0.5
BROKER_SECONDS = 10

_log = structlog.get_logger(__name__)


class Abandoned(Exception):
    """The batch is not ours to finish: we stop, or its partitions were taken away. Nothing of it was committed."""


class Interrupted(Exception):
    """A commit didn't end as it should: it is done in whole, or not at all. The group's offsets say which."""


class Intake:
    """Reads committed records of some topics; where it goes on only ever comes from the group's committed offsets."""

    def __init__(self, bootstrap: str, group: str, topics: Iterable[str], stop: threading.Event) -> None:
        self._topics = list(topics)
        self._stop = stop
        self._held: list[Message] = []
        self._bytes = 0
        self._rebalances = 0
        connection = client_config(bootstrap)
        settings = {
            "session.timeout.ms": 10_000,  # how long the partitions of a killed one wait for its successor
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",  # an offset that is out of range is a gap, which we must notice
            # Eager: a rebalance sends every partition back to its committed offset, so a batch can just be dropped.
            "partition.assignment.strategy": "range",
            # The end is behind the last transaction's marker: only with it can the lag come down to 0.
            "enable.partition.eof": True,
            "queued.max.messages.kbytes": BATCH_BYTES // 1000,
            "max.partition.fetch.bytes": BATCH_BYTES // 4,
            "fetch.queue.backoff.ms": 20,  # else, once so much waits, nothing is fetched for a second
        }
        self._consumer = make_consumer(connection, group, settings)
        # Of its own connection: on the consumer's, a request waits for as long as a fetch that finds nothing.
        self._admin = make_admin(connection)
        self._check_topics(bootstrap)
        self._subscribe()

    @property
    def assignments(self) -> int:
        """How often partitions have been taken away or read anew from their committed offsets: a number that grows."""
        return self._rebalances

    def gather(self) -> list[Message]:
        """What arrives within the linger time and the bounds of a batch."""
        deadline = time.monotonic() + LINGER_SECONDS
        while not self._is_full() and not self._stop.is_set() and (left := deadline - time.monotonic()) > 0:
            self._poll(left)
        messages = self._held
        self._drop()
        return messages

    def wait(self, seconds: float) -> None:
        """Read nothing for a while, but stay in the group: paused partitions are polled all the same.

        Raises:
            Abandoned: there's no point in waiting any longer.
        """
        rebalances, deadline = self._rebalances, time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._stop.is_set():
                raise Abandoned("the indexer stops")
            self._consumer.pause(self._consumer.assignment())
            self._poll(min(left, LINGER_SECONDS))
            if self._rebalances != rebalances:
                raise Abandoned("partitions were reassigned")
            HEALTH.beat("indexer")

    def resume(self) -> None:
        """Read again after `wait`."""
        self._consumer.resume(self._consumer.assignment())

    def commit(self, offsets: Offsets) -> None:
        """Commit the offset to read next of each partition; refused if they aren't ours any more.

        Raises:
            Interrupted: go on from the group's committed offsets.
        """
        try:
            self._consumer.commit(offsets=topic_partitions(offsets), asynchronous=False)
        except KafkaException as error:
            raise Interrupted(error.args[0].str()) from error

    def rewind(self) -> None:
        """Go back to the committed offsets.

        Raises:
            Abandoned: the indexer stops before the broker has answered.
        """
        self._drop()
        self._rebalances += 1
        for at in self._committed():
            self._consumer.seek(TopicPartition(at.topic, at.partition, max(at.offset, OFFSET_BEGINNING)))

    def _committed(self) -> list[TopicPartition]:
        while not self._stop.is_set():
            try:
                return self._consumer.committed(self._consumer.assignment(), timeout=BROKER_SECONDS)
            except KafkaException as error:
                _log.warning("kafka unavailable", reason=error.args[0].str())
                self._stop.wait(LINGER_SECONDS)
        raise Abandoned("the indexer stops")

    def membership(self) -> Any:
        """The group's metadata, by which the broker knows a member that is no longer one."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def _check_topics(self, bootstrap: str) -> None:
        known = partitions_of(reach(bootstrap, stop=self._stop), self._topics)
        if missing := sorted(set(self._topics) - known.keys()):
            raise UserError(f"topics={', '.join(missing)}: missing on {bootstrap}; run `kappa topics apply`")

    def _subscribe(self) -> None:
        self._consumer.subscribe(self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Go on from the committed offsets; where the log begins behind one, from there, with the gap held."""
        try:
            committed = consumer.committed(partitions, timeout=BROKER_SECONDS)
            places = [(at.topic, at.partition) for at in committed]
            starts = earliest_offsets(self._admin, places, BROKER_SECONDS)
            ends = latest_offsets(self._admin, places, BROKER_SECONDS)
        except KafkaException as error:  # the broker is on its way: polling says so, and we subscribe again
            _log.warning("kafka unavailable", reason=error.args[0].str())
            return
        for at in committed:
            place = at.topic, at.partition
            if at.offset > ends[place]:
                _log.error(
                    "topic is shorter than what was read of it: it is read from its beginning", topic=at.topic,
                    partition=at.partition, read_to=at.offset, ends_at=ends[place],
                )  # fmt: skip
                at.offset = starts[place]
            elif at.offset >= 0 and at.offset < starts[place]:
                self._held.append(Message(*place, at.offset, starts[place], is_gap=True))
                at.offset = starts[place]
            elif at.offset < 0:
                at.offset = starts[place]
        consumer.assign(committed)

    def _is_full(self) -> bool:
        return len(self._held) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES

    def _drop(self) -> None:
        self._held, self._bytes = [], 0

    def _on_revoke(self, *_: Any) -> None:
        """On a rebalance drop what isn't committed: it will be read again, by us or by another."""
        self._drop()
        self._rebalances += 1

    def _poll(self, seconds: float) -> None:
        message = self._consumer.poll(seconds)
        if message is None:
            return
        error = message.error()
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            self._held.append(_received(message))
            self._bytes += len(message)
        elif error.code() == KafkaError._FATAL:
            raise KafkaException(error)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            _log.warning("offset out of range", topic=message.topic(), partition=message.partition())
            self._consumer.unsubscribe()  # the assignment that follows tells what is gone
            self._drop()
            self._rebalances += 1
            self._subscribe()
        else:
            _log.warning("kafka unavailable", reason=error.str())


def next_offsets(messages: Iterable[Message]) -> Offsets:
    """The offset to read next in each partition, after these messages in their order."""
    return {(message.topic, message.partition): message.next_offset for message in messages}


def _received(polled: Polled) -> Message:
    """A message, or the end of a partition, whose offset lies behind everything read, transaction markers too."""
    topic, partition, offset = polled.topic(), polled.partition(), polled.offset()
    assert topic is not None and partition is not None and offset is not None
    if polled.error():
        return Message(topic, partition, offset, offset)
    return Message(topic, partition, offset, offset + 1, polled.timestamp()[1], polled.key(), value_of(polled))

"""Progress markers: how far each task of a query has written, committed with its rows.

A marker is an offset of the consumer group `<query>.sink` on the partition of the progress topic that has the task's
number (its *slot*): the offset is the number of batches that are written, its metadata says for which checkpoint and in
how many tasks. KafkaTask.java writes the same form.
"""

import json
import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from tenacity import RetryCallState

from connectors.kafka.client import CALL_SECONDS, fetch_committed, open_consumer
from connectors.kafka.retries import retrying
from connectors.kafka.transactions import Patience, TransactionalWriter

WAITING_SECONDS = 20.0  # for offsets, after which a person is told

_log = logging.getLogger(__name__)


class ProgressError(Exception):
    """The progress markers and this attempt contradict each other: going on would lose or double records."""


@dataclass(frozen=True)
class ProgressSettings:
    """Whose transactions and progress markers these are.

    `query` names them and must be the same after a restart; `run` is the identity of the checkpoint (Spark's query id).
    """

    bootstrap: str
    query: str
    run: str
    progress_topic: str = "sink.progress"
    transaction_timeout_ms: int = 600_000  # must outlast the slowest batch
    client: dict[str, Any] = field(default_factory=dict)  # of every librdkafka client, e.g. security.protocol

    @property
    def group(self) -> str:
        """The consumer group whose offsets are the progress markers."""
        return f"{self.query}.sink"

    @property
    def connection(self) -> dict[str, Any]:
        """How a client reaches the brokers."""
        return {"bootstrap.servers": self.bootstrap, **self.client}

    @property
    def retry_seconds(self) -> float:
        """How long errors that pass are waited out: as long as a transaction may live."""
        return self.transaction_timeout_ms / 1000

    def transactional_id(self, slot: int) -> str:
        """The name under which the broker fences a task's former writers."""
        return f"{self.query}-{slot}"


@dataclass(frozen=True)
class Marker:
    """How far one task has come: `done` batches, the last of them for the checkpoint `run`, in `tasks` tasks."""

    done: int
    run: str
    tasks: int

    @classmethod
    def of(cls, committed: TopicPartition) -> "Marker":
        """The marker that a committed offset is."""
        return cls(committed.offset, **json.loads(committed.metadata or ""))

    def committable(self, topic: str, slot: int) -> TopicPartition:
        """The offset to commit, on the slot's partition of the progress topic."""
        return TopicPartition(topic, slot, self.done, metadata=json.dumps({"run": self.run, "tasks": self.tasks}))

    def check(self, settings: ProgressSettings, batch_id: int, tasks: int) -> None:
        """Raise ProgressError unless batch `batch_id`, in `tasks` tasks, follows on this marker or repeats it."""
        if self.run != settings.run:
            raise ProgressError(
                f"query {settings.query}: its progress markers belong to checkpoint {self.run}, this one is "
                f"{settings.run}: the checkpoint was lost or replaced. See docs/how-to/operate.md, 'A lost checkpoint'."
            )
        if batch_id < self.done - 1:
            raise ProgressError(
                f"query {settings.query}: batch {batch_id} is to be written, but batch {self.done - 1} was: the "
                "checkpoint is an old copy. See docs/how-to/operate.md, 'A lost checkpoint'."
            )
        if batch_id == self.done - 1 and tasks != self.tasks:
            raise ProgressError(
                f"query {settings.query}: batch {batch_id} was begun with {self.tasks} tasks and is now tried with "
                f"{tasks}. Restore the former number of source or shuffle partitions until this batch is done."
            )


def list_slots(settings: ProgressSettings) -> list[int]:
    """The partitions of the progress topic: each can hold the marker of one task."""
    topic = settings.progress_topic
    with open_consumer(settings.connection, settings.group) as consumer:
        return list(consumer.list_topics(topic, CALL_SECONDS).topics[topic].partitions)


def read_markers(settings: ProgressSettings, slots: Collection[int], isolation: str) -> dict[int, Marker]:
    """The markers by slot, of those of `slots` that have one.

    With isolation `read_committed` a marker in an open transaction is waited for; with `read_uncommitted` it is the one
    before.
    """
    with open_consumer(settings.connection, settings.group, isolation) as consumer:
        return _fetch(settings, consumer, slots)


def _fetch(settings: ProgressSettings, consumer: Consumer, slots: Iterable[int]) -> dict[int, Marker]:
    wanted = [TopicPartition(settings.progress_topic, slot) for slot in slots]

    def tell(attempt: RetryCallState) -> None:
        if (attempt.seconds_since_start or 0) >= WAITING_SECONDS and attempt.outcome:
            _log.warning(
                "offsets of group %s can't be read since %.0f s (%s): if the brokers are well, a transaction hangs: "
                "docs/how-to/operate.md, 'A hanging transaction'",
                *(settings.group, attempt.seconds_since_start, attempt.outcome.exception()),
            )

    patient = retrying(settings.retry_seconds).copy(before_sleep=tell)
    found = patient(lambda: fetch_committed(consumer, wanted))
    return {committed.partition: Marker.of(committed) for committed in found if committed.offset > 0}


class MarkedWriter(TransactionalWriter):
    """A transactional writer whose transactions are micro-batches: each commits its slot's marker with its rows."""

    def __init__(self, settings: ProgressSettings, slot: int) -> None:
        super().__init__(
            settings.connection,
            settings.transactional_id(slot),
            {
                "transaction.timeout.ms": settings.transaction_timeout_ms,
                "partitioner": "murmur2_random",  # the Java clients' choice: a key keeps its partition
                "linger.ms": 20,
                "batch.size": 512 * 1024,
                "compression.type": "lz4",
                "message.max.bytes": 10_000_000,
                "logger": _log,  # else librdkafka writes to stderr whenever a task changes its worker
            },
            Patience(retry=settings.retry_seconds),
        )
        self.settings, self.slot = settings, slot
        # Only now is every earlier transaction of this id committed or gone, and the marker final.
        with open_consumer(settings.connection, settings.group) as consumer:
            self.marker = _fetch(settings, consumer, [slot]).get(slot)
            self.group = consumer.consumer_group_metadata()

    def confirm(self) -> None:
        """Have the broker say that no other writer of this id was opened since; raises KafkaException if one was."""
        marker = self.marker or Marker(0, self.settings.run, 1)
        self.begin()
        self.send_offsets([marker.committable(self.settings.progress_topic, self.slot)], self.group)
        self.abort()

    def begin_batch(self, batch_id: int, tasks: int) -> bool:
        """Open a transaction with the marker of `batch_id` in it; False if an earlier attempt has committed it.

        The marker goes first: a writer that was fenced learns it here, before it has consumed any row.
        """
        if self.marker:
            self.marker.check(self.settings, batch_id, tasks)
            if batch_id < self.marker.done:
                return False
        self.marker = Marker(batch_id + 1, self.settings.run, tasks)
        self.begin()
        self.send_offsets([self.marker.committable(self.settings.progress_topic, self.slot)], self.group)
        return True

"""An exactly-once Kafka sink for `foreachBatch`: what Spark's own sink, at-least-once, does not give.

Each task of a micro-batch writes its rows in one Kafka transaction and commits in the same transaction a *progress
marker*: the batch id, as the offset of a consumer group, on the partition of `progress_topic` that has the task's
number. A batch that is tried again finds its marker and skips; the rows of an attempt that died were never committed.
`transactional.id` is the query's name and the task's number, so the broker fences whoever wrote under it before: a lost
executor, a speculative copy, a second driver.

The driver's side is here; a task's is KafkaTask.java, as rows that go through Python cost more than their writing.

It needs nothing else of this project: copy these two files and deadline.py, put the class into `spark.jars`, create
`progress_topic` (never written, as many partitions as tasks), and give it a frame whose rows fall into the same tasks
whenever a batch is repeated (Kafka source without `minPartitions`, fixed `spark.sql.shuffle.partitions`, adaptive
execution off). docs/explanation/exactly-once.md has the proof.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.sinks.deadline import within

# What a frame must have. `partition` null: by the key's hash, as Java's clients do. `headers` is Kafka's own form.
COLUMNS = ("topic", "partition", "key", "value", "timestamp_ms", "headers")
# Where a row came from: optional; WriteSummary.source_timestamps says how far each source partition has come.
SOURCE_COLUMNS = ("source_topic", "source_partition", "source_timestamp_ms")
# What is to be counted of a row, or null: optional; WriteSummary.rows_by_note has the counts.
NOTE = "note"

_OPTIONAL = {**dict(zip(SOURCE_COLUMNS, ("string", "int", "long"), strict=True)), NOTE: "string"}

CALL_SECONDS = 30.0  # a single answer of the broker

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
# What passes by itself, among the errors that don't say so (those of `committed`).
_TRANSIENT = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
}
Headers = list[tuple[str, str | bytes | None]]
# topic, partition (-1: by the key's hash), key, value, timestamp in ms, headers
Row = tuple[str, int, bytes | None, bytes | None, int, Headers | None]


class ProgressError(Exception):
    """The progress markers and this attempt contradict each other: going on would lose or double records."""


@dataclass(frozen=True)
class SinkSettings:
    """Whose transactions these are.

    `query` names them and must be the same after a restart; `run` is the identity of the checkpoint (Spark's query id).
    """

    bootstrap: str
    query: str
    run: str
    progress_topic: str = "sink.progress"
    transaction_timeout_ms: int = 600_000  # must outlast the slowest batch
    client: dict[str, Any] = field(default_factory=dict)  # of every librdkafka client, e.g. security.protocol
    java_client: dict[str, str] = field(default_factory=dict)  # the same, as Java's clients call it
    java_producer: dict[str, str] = field(
        default_factory=dict
    )  # of the tasks' producers, instead of the defaults below

    @property
    def group(self) -> str:
        """The consumer group whose offsets are the progress markers."""
        return f"{self.query}.sink"

    @property
    def connection(self) -> dict[str, Any]:
        """How a client reaches the brokers."""
        return {"bootstrap.servers": self.bootstrap, **self.client}

    def transactional_id(self, slot: int) -> str:
        """The name under which the broker fences a task's former writers."""
        return f"{self.query}-{slot}"

    def of_tasks(self) -> tuple[Any, ...]:
        """What KafkaTask.Settings is made of."""
        consumer = {"bootstrap.servers": self.bootstrap, **self.java_client}
        timeout = self.transaction_timeout_ms
        producer = {
            **consumer,
            "transaction.timeout.ms": str(timeout),
            # An answer is waited for as long as the transaction may live.
            "max.block.ms": str(timeout),
            "delivery.timeout.ms": str(timeout),
            "request.timeout.ms": str(min(30_000, timeout // 2)),  # must fit into the former
            "linger.ms": "20",
            "batch.size": str(512 * 1024),
            "compression.type": "lz4",
            "max.request.size": "10000000",
            **self.java_producer,
        }
        return consumer, producer, self.query, self.group, self.run, self.progress_topic, timeout


@dataclass(frozen=True)
class WriteSummary:
    """What a micro-batch wrote: rows, tasks that an earlier attempt had done, newest time of each source partition."""

    rows_by_topic: dict[str, int]
    rows_by_note: dict[str, int]
    skipped_tasks: int
    source_timestamps: dict[tuple[str, int], int]


@dataclass(frozen=True)
class Marker:
    """How far one task has come: `done` batches, the last of them for the checkpoint `run`, in `tasks` tasks."""

    done: int
    run: str
    tasks: int

    def check(self, settings: SinkSettings, batch_id: int, tasks: int) -> None:
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


class TransactionalSink:
    """The driver's side: writes the micro-batches of one query."""

    def __init__(self, settings: SinkSettings) -> None:
        self.settings = settings
        self._written: int | None = None  # the last batch that this process has written
        self._task: tuple[Any, Any] | None = None  # the JVM's KafkaTask and its settings

    def write(self, frame: DataFrame, batch_id: int) -> WriteSummary:
        """Write `frame` (COLUMNS, maybe SOURCE_COLUMNS and NOTE) as batch `batch_id`.

        Each task's rows go out in time order, those without a key after the others of their time.

        Raises ProgressError if the checkpoint is not the one that the markers belong to, or if an earlier attempt of
        this batch had another number of tasks.
        """
        rows = in_order(frame)
        tasks = number_of_tasks(rows)
        if self._written is None or batch_id != self._written + 1:
            self.verify(batch_id, tasks)
        self._written = None  # should this attempt fail, the next one verifies again
        results = self._run(rows, batch_id, tasks)
        self._written = batch_id
        return _summary(results)

    def _run(self, rows: DataFrame, batch_id: int, tasks: int) -> list[dict[str, Any]]:
        task, settings = self._task = self._task or self._in_jvm(rows.sparkSession._jvm)
        return [json.loads(result) for result in task.write(rows._jdf, settings, batch_id, tasks)]

    def _in_jvm(self, jvm: Any) -> tuple[Any, Any]:
        # Once: to look for a Java name, py4j tries to load each part of it as a class.
        return jvm.kappa.KafkaTask, jvm.kappa.KafkaTask.Settings(*self.settings.of_tasks())

    def verify(self, batch_id: int, tasks: int) -> None:
        """Compare every task's marker with what is about to be written; raises ProgressError."""
        slots = self._slots(tasks)
        known = self._read(slots, "read_uncommitted")
        # Before anything is fenced: this may be the wrong checkpoint, and a good writer may be at work.
        self._check(known, batch_id, tasks)
        # A marker in an open transaction, of a writer that was killed, is nothing yet: commit or abort it.
        for slot in range(max([tasks, *(marker.tasks for marker in known)])):
            Writer(self.settings, slot)
        self._check(self._read(slots, "read_committed"), batch_id, tasks)

    def _slots(self, tasks: int) -> list[int]:
        topic = self.settings.progress_topic
        with open_consumer(self.settings.connection, self.settings.group) as consumer:
            slots = list(consumer.list_topics(topic, CALL_SECONDS).topics[topic].partitions)
        if tasks > len(slots):
            raise ProgressError(
                f"query {self.settings.query}: {tasks} tasks, but topic {topic} has {len(slots)} partitions: "
                "give it as many as there are tasks."
            )
        return slots

    def _read(self, slots: list[int], isolation: str) -> list[Marker]:
        with open_consumer(self.settings.connection, self.settings.group, isolation) as consumer:
            return read_markers(self.settings, consumer, slots)

    def _check(self, markers: list[Marker], batch_id: int, tasks: int) -> None:
        for marker in markers:
            marker.check(self.settings, batch_id, tasks)
        if batch_id > max((marker.done for marker in markers), default=0):
            raise ProgressError(
                f"query {self.settings.query}: batch {batch_id} is to be written, but no progress marker says that "
                f"batch {batch_id - 1} was: the broker has lost them (offsets.retention.minutes) or is another one. "
                "See docs/how-to/operate.md, 'Lost markers'."
            )


def _summary(results: list[dict[str, Any]]) -> WriteSummary:
    rows: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    newest: dict[tuple[str, int], int] = {}
    for result in results:
        rows.update(result["rows"])
        notes.update(result["notes"])
        for topic, partition, timestamp in result["sources"]:
            newest[topic, partition] = max(timestamp, newest.get((topic, partition), timestamp))
    return WriteSummary(dict(rows), dict(notes), sum(result["skipped"] for result in results), newest)


def in_order(frame: DataFrame) -> DataFrame:
    """The rows of each task as they are to be written: KafkaTask's columns, by their places."""
    absent = [(name, kind) for name, kind in _OPTIONAL.items() if name not in frame.columns]
    ready = {
        "key": F.col("key").cast("binary"),
        "value": F.col("value").cast("binary"),
        # Before 1970 there is no time for Kafka.
        "timestamp_ms": F.greatest("timestamp_ms", F.lit(1)),
        **{name: F.lit(None).cast(kind) for name, kind in absent},
    }
    # Time first: numbers sort fastest, and within each partition of a topic it is the same order.
    order = ("timestamp_ms", F.col("key").asc_nulls_last(), "topic", "partition", "value")
    return frame.withColumns(ready).select(*COLUMNS, *_OPTIONAL).sortWithinPartitions(*order)


def number_of_tasks(frame: DataFrame) -> int:
    """In how many tasks `frame` will be computed, without computing it."""
    return int(frame._jdf.queryExecution().toRdd().getNumPartitions())


@contextmanager
def open_consumer(connection: Mapping[str, Any], group: str, isolation: str = "read_committed") -> Iterator[Consumer]:
    """A consumer that only reads the group's offsets and names the group; it never joins it.

    With `read_committed` it waits for offsets that an open transaction holds; else it gives those before.
    """
    consumer = Consumer({**connection, "group.id": group, "isolation.level": isolation})
    try:
        yield consumer
    finally:
        consumer.close()


def read_markers(settings: SinkSettings, consumer: Consumer, slots: list[int]) -> list[Marker]:
    """The markers of those of `slots` that have one."""
    wanted = [TopicPartition(settings.progress_topic, slot) for slot in slots]

    def fetch() -> list[TopicPartition]:
        found = consumer.committed(wanted, timeout=CALL_SECONDS)
        for position in found:
            if position.error:
                raise KafkaException(position.error)
        return found

    found = retried(fetch, settings)
    return [Marker(position.offset, **json.loads(position.metadata or "")) for position in found if position.offset > 0]


def retried(call: Callable[[], _T], settings: SinkSettings) -> _T:
    """Repeat what failed for a reason that passes, for as long as a transaction may live."""
    deadline = time.monotonic() + settings.transaction_timeout_ms / 1000
    while True:
        try:
            return call()
        except KafkaException as error:
            if not _is_transient(error.args[0]) or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _is_transient(error: KafkaError) -> bool:
    if error.fatal() or error.txn_requires_abort():
        return False
    return bool(error.retriable() or error.code() in _TRANSIENT)


class Writer:
    """One transactional producer of the driver. Opening it fences its predecessors and settles what they left open."""

    def __init__(self, settings: SinkSettings, slot: int) -> None:
        self.settings, self.slot = settings, slot
        self.producer = Producer(
            {
                **settings.connection,
                "transactional.id": settings.transactional_id(slot),
                "transaction.timeout.ms": settings.transaction_timeout_ms,
                "partitioner": "murmur2_random",  # the Java clients' choice: a key keeps its partition
                "linger.ms": 20,
                "batch.size": 512 * 1024,
                "compression.type": "lz4",
                "message.max.bytes": 10_000_000,
            },
            logger=_log,  # else librdkafka writes to stderr whenever a task changes its worker
        )
        retried(lambda: self.producer.init_transactions(CALL_SECONDS), settings)
        # Only now is every earlier transaction of this id committed or gone, and the marker final.
        with open_consumer(settings.connection, settings.group) as consumer:
            self.marker = next(iter(read_markers(settings, consumer, [slot])), None)
            self.group = consumer.consumer_group_metadata()

    def begin(self, batch_id: int, tasks: int) -> bool:
        """Open a transaction with the marker of `batch_id` in it; False if an earlier attempt has committed it.

        The marker goes first: a writer that was fenced learns it here, before it has consumed any row.
        """
        if self.marker:
            self.marker.check(self.settings, batch_id, tasks)
            if batch_id < self.marker.done:
                return False
        self.marker = Marker(batch_id + 1, self.settings.run, tasks)
        metadata = json.dumps({"run": self.marker.run, "tasks": self.marker.tasks})
        position = TopicPartition(self.settings.progress_topic, self.slot, self.marker.done, metadata=metadata)
        self.producer.begin_transaction()
        self.send_positions([position], self.group)
        return True

    def send_positions(self, positions: list[TopicPartition], group: Any) -> None:
        """Commit offsets of a consumer group (its `consumer_group_metadata()`) with the open transaction."""
        retried(
            lambda: within(
                2 * CALL_SECONDS, lambda: self.producer.send_offsets_to_transaction(positions, group, CALL_SECONDS)
            ),
            self.settings,
        )

    def commit(self) -> None:
        """Commit rows and marker. No delivery reports are needed: a record that failed makes the commit fail."""
        retried(lambda: self.producer.commit_transaction(CALL_SECONDS), self.settings)

    def abandon(self) -> None:
        """Give up the open transaction; what can't be aborted now, the next writer's `init_transactions` aborts."""
        try:
            self.producer.purge()
            within(CALL_SECONDS, lambda: self.producer.abort_transaction(5))
        except (KafkaException, TimeoutError) as error:
            _log.warning("%s-%s: transaction left to its successor: %s", self.settings.query, self.slot, error)

    def produce(self, rows: Iterable[Row]) -> None:
        """Add rows to the open transaction."""
        produce, poll = self.producer.produce, self.producer.poll
        for topic, partition, key, value, timestamp, headers in rows:
            while True:
                try:
                    # By position: keywords cost a third of the call.
                    produce(topic, value, key, partition, None, None, timestamp, headers)
                    break
                except BufferError:
                    poll(0.5)
                except KafkaException as error:
                    error.add_note(f"to {topic}, key {key!r}, {len(value or b'')} bytes")
                    raise

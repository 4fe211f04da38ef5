"""An exactly-once Kafka sink for `foreachBatch`: what Spark's own sink, at-least-once, does not give.

Each task of a micro-batch writes its rows in one Kafka transaction and commits in the same transaction a *progress
marker*: the batch id, as the offset of a consumer group, on the partition of `progress_topic` that has the task's
number. A batch that is tried again finds its marker and skips; the rows of an attempt that died were never committed.
`transactional.id` is the query's name and the task's number, so the broker fences whoever wrote under it before: a lost
executor, a speculative copy, a second driver.

The driver's side is here; a task's is KafkaTask.java, as rows that go through Python cost more than their writing.

It can be copied into another project. These modules go together and import nothing else of this one: this file,
`connectors/prepared.py`, `connectors/java_class.py`, and of connectors/kafka/ `markers.py`, `transactions.py`,
`client.py`, `logins.py`, `refusals.py`, `retries.py` and `deadline.py`; they need confluent_kafka and tenacity. Put the
classes KafkaTask, PreparedPlan, KeptCode, KeptProjection and KeptStage into `spark.jars`, create `progress_topic`
(never written, as many partitions as tasks), and give the sink a frame whose rows fall into the same tasks whenever a
batch is repeated (Kafka source without `minPartitions`, fixed `spark.sql.shuffle.partitions`, adaptive execution off).
The proof is in docs/explanation/exactly-once.md.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.java_class import java_class
from connectors.kafka.markers import (
    MarkedWriter,
    Marker,
    ProgressError,
    ProgressSettings,
    list_slots,
    read_markers,
)
from connectors.prepared import Prepared

# What a frame must have. `partition` null: by the key's hash, as Java's clients do. `headers` is Kafka's own form.
COLUMNS = ("topic", "partition", "key", "value", "timestamp_ms", "headers")
# Where a row came from: optional; a row of several records has the times of the oldest and the newest of them, and the
# longest of the delays with which they came. WriteSummary.sources says how far each source partition has come.
SOURCE_COLUMNS = ("source_topic", "source_partition", "source_oldest_ms", "source_newest_ms", "source_delay_ms")
# What is to be counted of a row, or null: optional; WriteSummary.rows_by_note has the counts.
NOTE = "note"
# What a row comes from, a site for example, or null: optional; WriteSummary.newest_by_origin has the newest times.
ORIGIN = "origin"

_OPTIONAL = {
    **dict(zip(SOURCE_COLUMNS, ("string", "int", "long", "long", "long"), strict=True)),
    NOTE: "string",
    ORIGIN: "string",
}


@dataclass(frozen=True)
class SinkSettings(ProgressSettings):
    """Whose transactions these are, and how the tasks' producers, which are Java's, reach the brokers."""

    java_client: dict[str, str] = field(default_factory=dict)  # what `client` says, as Java's clients call it
    # Of the tasks' producers, in place of the defaults below.
    java_producer: dict[str, str] = field(default_factory=dict)

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


class Span(NamedTuple):
    """Kafka timestamps of what was read of a partition, in ms."""

    oldest: int
    newest: int


@dataclass(frozen=True)
class WriteSummary:
    """What a micro-batch wrote: rows, tasks that an earlier attempt had done, what was read of source partitions.

    Times are Kafka timestamps in ms. `delays` has by source topic how many rows had each delay, in tenths of a second.
    """

    rows_by_topic: dict[str, int]
    rows_by_note: dict[str, int]
    newest_by_origin: dict[str, int]
    skipped_tasks: int
    sources: dict[tuple[str, int], Span]
    delays: dict[str, Counter[int]] = field(default_factory=dict)


class TransactionalSink:
    """The driver's side: writes the micro-batches of one query."""

    def __init__(self, settings: SinkSettings, tasks: int | None = None) -> None:
        """With `tasks`, rows go to so many tasks by their keys, so that a repeated batch has the same."""
        self.settings = settings
        self._ordered = Prepared(partial(in_order, tasks=tasks))
        self._written: int | None = None  # the last batch that this process has written
        self._of_tasks: Any = None  # the JVM's KafkaTask.Settings

    def write(self, frame: DataFrame, batch_id: int) -> WriteSummary:
        """Write `frame` (COLUMNS, maybe SOURCE_COLUMNS, NOTE and ORIGIN) as batch `batch_id`.

        Each task's rows go out in time order, those without a key after the others of their time.

        Raises ProgressError if the checkpoint is not the one that the markers belong to, or if an earlier attempt of
        this batch had another number of tasks.
        """
        rows = self._ordered(frame)
        tasks = _in_jvm(rows).tasksOf(rows._jdf)
        if self._written is None or batch_id != self._written + 1:
            self.verify(batch_id, tasks)
        self._written = None  # should this attempt fail, the next one verifies again
        results = self._run(rows, batch_id, tasks)
        self._written = batch_id
        return _summary(results)

    def _run(self, rows: DataFrame, batch_id: int, tasks: int) -> list[dict[str, Any]]:
        self._of_tasks = self._of_tasks or _in_jvm(rows).Settings(*self.settings.of_tasks())
        return [json.loads(result) for result in _in_jvm(rows).write(rows._jdf, self._of_tasks, batch_id, tasks)]

    def verify(self, batch_id: int, tasks: int) -> None:
        """Compare every task's marker with what is about to be written; raises ProgressError."""
        slots = self._slots(tasks)
        known = read_markers(self.settings, slots, "read_uncommitted").values()
        # Before anything is fenced: this may be the wrong checkpoint, and a good writer may be at work.
        self._check(known, batch_id, tasks)
        # A marker in an open transaction, of a writer that was killed, is nothing yet: commit or abort it.
        for slot in range(max([tasks, *(marker.tasks for marker in known)])):
            MarkedWriter(self.settings, slot)
        self._check(read_markers(self.settings, slots, "read_committed").values(), batch_id, tasks)

    def _slots(self, tasks: int) -> list[int]:
        slots = list_slots(self.settings)
        if tasks > len(slots):
            raise ProgressError(
                f"query {self.settings.query}: {tasks} tasks, but topic {self.settings.progress_topic} has "
                f"{len(slots)} partitions: give it as many as there are tasks."
            )
        return slots

    def _check(self, markers: Collection[Marker], batch_id: int, tasks: int) -> None:
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
    origins: dict[str, int] = {}
    sources: dict[tuple[str, int], Span] = {}
    delays: dict[str, Counter[int]] = defaultdict(Counter)
    for result in results:
        rows.update(result["rows"])
        notes.update(result["notes"])
        for origin, time_ms in result["newest"].items():
            origins[origin] = max(time_ms, origins.get(origin, time_ms))
        for topic, partition, oldest, newest in result["sources"]:
            known = sources.get((topic, partition), Span(oldest, newest))
            sources[topic, partition] = Span(min(oldest, known.oldest), max(newest, known.newest))
        for topic, counts in result["delays"].items():
            delays[topic].update({int(tenths): count for tenths, count in counts.items()})
    skipped = sum(result["skipped"] for result in results)
    return WriteSummary(dict(rows), dict(notes), origins, skipped, sources, dict(delays))


def in_order(frame: DataFrame, tasks: int | None = None) -> DataFrame:
    """The rows of each task as they are to be written: KafkaTask's columns, by their places."""
    frame = frame.repartition(tasks, "key") if tasks else frame
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


def _in_jvm(frame: DataFrame) -> Any:
    return java_class(frame.sparkSession, "kappa.KafkaTask")

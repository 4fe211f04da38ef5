"""What Kafka no longer holds, from the archive back into topics that a generation's first job reads.

Each record is written as it was: key, value, headers, timestamp, partition, and in the order of its partition. Its
offset can't be kept, so it goes along in a header, by which the job sees the record where it stood
(jobs/runtime/replay.py).

A task writes one partition, in transactions that also commit the offset up to which it has come, in the original's
count, as an offset of group `kappa.<generation>.restore` on the restored partition. So it may be killed and run again.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, chain, pairwise, repeat
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from connectors.kafka import admin
from connectors.kafka.client import fetch_committed, open_consumer
from connectors.kafka.offsets import Log
from connectors.kafka.retries import retrying
from connectors.kafka.security import client_config
from connectors.kafka.transactions import Headers, TransactionalWriter
from infra.contract.offsets import Partition
from infra.contract.topics import TopicMap, load_topics
from infra.errors import UserError
from jobs.runtime.replay import OFFSET_HEADER
from jobs.runtime.settings import Settings
from ops.replay.plan import inputs, parse_time
from ops.replay.registry import Generation, Registry
from ops.savepoints.store import Store

COMMIT_RECORDS = 50_000
DAY_MILLI = 86_400_000
_PLACE = ("topic", "partition", "offset")
COLUMNS = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")

_log = logging.getLogger(__name__)


def names(generation: Generation, topics: TopicMap) -> dict[str, str]:
    """The restored topics: name -> the topic whose records they hold."""
    return {f"{topic.name}.{generation.name}": topic.name for topic in inputs(generation.jobs[0], topics)}


def create_topics(generation: Generation, topics: TopicMap, settings: Settings) -> None:
    """Create the restored topics: with the records' own times, and kept for ever."""
    client = admin.connect(settings.kafka_bootstrap)
    changes = {"timestamp": "CreateTime", "cleanup": "delete"}
    originals = inputs(generation.jobs[0], topics)
    wanted = [t.model_copy(update={"name": f"{t.name}.{generation.name}", **changes}) for t in originals]
    admin.apply(client, wanted)
    admin.set_config(client, {topic.name: {"retention.ms": "-1"} for topic in wanted})


def restore(generation: Generation, registry: Registry, settings: Settings, spark: SparkSession) -> Generation:
    """Write the archived records of the generation's time into its restored topics; gives the plan to read them.

    What was restored before is left out.

    Raises UserError if the archive holds none, or if it has deleted some of a time that the plan names.
    """
    topics = registry.topics(generation.name, load_topics(settings.topics_file))
    restored = names(generation, topics)
    found = archived(registry.names, restored.values(), settings, spark)
    begin, end = bounds(generation)
    check_nothing_is_gone(found, begin)
    rows = between(found, begin, end)
    query = f"kappa.{generation.name}.restore"
    task = _Task(settings.kafka_bootstrap, query, {original: name for name, original in restored.items()})
    partitions = sum(topic.partitions for topic in inputs(generation.jobs[0], topics))
    # Hashing may put several partitions into one task: they are written one after the other.
    ordered = rows.repartition(partitions, "topic", "partition").sortWithinPartitions("topic", "partition", "offset")
    ordered.select(*COLUMNS).mapInArrow(task, "written long").agg(F.sum("written")).collect()
    return _planned(generation, restored, Log(settings.kafka_bootstrap))


def bounds(generation: Generation) -> tuple[int, int | None]:
    """The generation's part of the log, in Kafka's timestamps: from, to; None: all that there is."""
    return generation.begin_ms or 0, None if generation.until == "latest" else parse_time(generation.until)


def archived(generations: Iterable[str], topics: Collection[str], settings: Settings, spark: SparkSession) -> DataFrame:
    """Kafka's columns of all that the archives of these generations hold of these topics, each record once."""
    paths = [settings.model_copy(update={"generation": name}).delta_of("log") for name in generations]
    found = [path for path in paths if (Store.of(path) / "_delta_log").names()]
    if not found:
        raise UserError(f"--source delta: there is no archive at {paths[0]}; has the archive job run?")
    # Most generations keep nothing but what they have derived: a table's folders are named by topic.
    holding = [path for path in found if any((Store.of(path) / f"topic={topic}").exists() for topic in topics)]
    once = _once([spark.read.format("delta").load(path) for path in holding or found[:1]], topics)
    return once.withColumn("timestamp_ms", F.unix_millis("timestamp"))


def _once(tables: Sequence[DataFrame], topics: Collection[str]) -> DataFrame:
    """All records of these topics that the tables have, each once.

    A table that has none but those of the tables before it is left out: that shows in its offsets alone, while to drop
    duplicates shuffles every record.
    """
    first, *others = [table.where(F.col("topic").isin(*topics)) for table in tables]
    whole, is_one = first, True
    for table in others:
        if not table.select(*_PLACE).join(whole.select(*_PLACE), [*_PLACE], "left_anti").isEmpty():
            whole, is_one = whole.unionByName(table), False
    return whole if is_one else whole.dropDuplicates([*_PLACE])


def check_nothing_is_gone(archived: DataFrame, begin_ms: int) -> None:
    """Raises UserError if records since `begin_ms` are no longer there; without it, what is gone is only logged."""
    for topic, count, since in gone(archived, begin_ms):
        if begin_ms:
            raise UserError(
                f"--source delta: of {topic} the archive begins at {since:%Y-%m-%dT%H:%M:%SZ}: {count} records before "
                "are gone (archive_retention in infra/topics.yaml), or were never archived; start from then on"
            )
        _log.warning("%s: %s records before %s are in the archive no more", topic, count, since)


def gone(archived: DataFrame, begin_ms: int) -> list[tuple[str, int, datetime]]:
    """Each topic of which the archive lacks records since `begin_ms`: how many at most, and when it begins.

    A partition's first archived offset says how many were before it; 0 says that none were. The archive is deleted by
    days: of the day on which it begins, nothing is gone.
    """
    firsts = archived.groupBy("topic", "partition").agg(
        F.min("offset").alias("before"), F.min("timestamp_ms").alias("since_ms")
    )
    day_after = (begin_ms // DAY_MILLI + 1) * DAY_MILLI if begin_ms else 0
    late = firsts.where((F.col("before") > 0) & (F.col("since_ms") >= day_after))
    found = late.groupBy("topic").agg(F.sum("before").alias("count"), F.max("since_ms").alias("since_ms"))
    return [
        (row.topic, row["count"], datetime.fromtimestamp(row.since_ms / 1000, UTC))
        for row in found.orderBy("topic").collect()
    ]


def between(rows: DataFrame, begin_ms: int, end_ms: int | None) -> DataFrame:
    """Of each partition, the offsets from the first record not before `begin_ms` until the first not before `end_ms`.

    Whole stretches of the log, as Kafka's own look-up by time gives them: timestamps need not ascend in it.
    """
    if not begin_ms and end_ms is None:
        return rows
    late = F.col("timestamp_ms") >= (end_ms if end_ms is not None else 2**62)
    first = F.min(F.when(F.col("timestamp_ms") >= begin_ms, F.col("offset"))).alias("first")
    bounds = rows.groupBy("topic", "partition").agg(first, F.min(F.when(late, F.col("offset"))).alias("last"))
    offset = F.col("offset")
    inside = (offset >= F.col("first")) & (F.col("last").isNull() | (offset < F.col("last")))
    return rows.join(F.broadcast(bounds), ["topic", "partition"]).where(inside)


def _planned(generation: Generation, restored: dict[str, str], log: Log) -> Generation:
    starts, ends = log.starts(restored), log.ends(restored)
    backlog = dict.fromkeys(restored, 0)
    for (topic, partition), end in ends.items():
        backlog[topic] += end - starts[topic, partition]
    if not sum(backlog.values()):
        raise UserError(f"--source delta: the archive holds nothing of {', '.join(restored.values())} in that time")
    changes = {"start": starts, "end": ends, "backlog": backlog, "restored": restored}
    replay = generation.replay.model_copy(update=changes)
    return generation.model_copy(update={"replay": replay, "state": "replaying"})


@dataclass(frozen=True)
class _Task:
    """Writes the rows of some partitions, in order; shipped to the Python workers."""

    bootstrap: str
    query: str
    targets: dict[str, str]  # topic -> the one that it is restored into

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written = 0
        writer: _PartitionWriter | None = None
        for batch in batches:
            for row in _rows(batch):
                if writer is None or writer.original != row[:2]:
                    if writer:
                        writer.end()
                    writer = _PartitionWriter(self.bootstrap, self.query, row[:2], self.targets[row[0]])
                written += writer.add(row)
        if writer:
            writer.end()
        yield pa.RecordBatch.from_pydict({"written": [written]})


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    plain = (to_list(batch.column(name)) for name in COLUMNS[:-1])
    return zip(*plain, headers_of(batch.column(COLUMNS[-1])), strict=True)


def to_list(column: pa.Array) -> list[Any]:
    """As Python objects; several times faster than `to_pylist`, which makes a Scalar of each first."""
    found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return found


def headers_of(column: pa.ListArray) -> Iterable[Headers | None]:
    """Each row's headers as pairs."""
    flat = column.flatten()
    if not len(flat):
        return repeat(None, len(column))
    pairs = list(zip(*(to_list(flat.field(name)) for name in ("key", "value")), strict=True))
    ends = accumulate(to_list(column.value_lengths()))
    return [pairs[begin:end] for begin, end in pairwise(chain([0], ends))]


class _PartitionWriter:
    """Restores one partition, in transactions of COMMIT_RECORDS records, going on from where an earlier run came to."""

    def __init__(self, bootstrap: str, query: str, original: Partition, target: str) -> None:
        self.original, self.target = original, target
        connection = client_config(bootstrap)
        settings = {"linger.ms": 20, "compression.type": "lz4", "message.max.bytes": 10_000_000, "logger": _log}
        self._writer = TransactionalWriter(connection, f"{query}-{target}-{original[1]}", settings)
        # Now every earlier transaction is decided, and the offset final.
        with open_consumer(connection, query) as consumer:
            self._group = consumer.consumer_group_metadata()
            self._next = self._committed(consumer)
        self._open = 0

    def _committed(self, consumer: Consumer) -> int:
        wanted = [TopicPartition(self.target, self.original[1])]
        (found,) = retrying(300, pause_seconds=0.5)(lambda: fetch_committed(consumer, wanted))
        return max(0, found.offset)

    def add(self, row: Sequence[Any]) -> bool:
        """Write a row, unless an earlier run has."""
        _, partition, offset, timestamp, key, value, headers = row
        if offset < self._next:
            return False
        if not self._open:
            self._writer.begin()
        headers = [*(headers or ()), (OFFSET_HEADER, str(offset).encode())]
        self._writer.produce([(self.target, partition, key, value, max(1, timestamp), headers)])
        self._next, self._open = offset + 1, self._open + 1
        if self._open == COMMIT_RECORDS:
            self.end()
        return True

    def end(self) -> None:
        """Commit what is open."""
        if not self._open:
            return
        self._writer.send_offsets([TopicPartition(self.target, self.original[1], self._next)], self._group)
        self._writer.commit()
        self._open = 0

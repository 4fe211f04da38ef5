"""Runs the jobs over the archived log as a batch, step by step, without Kafka in between.

A step is a range of offsets of each partition. The transform of the first job and the folds of the others are those
that the streaming jobs run: the transform gets the archived rows as its streams, the folds get each shard's records in
order, with the watermark that the log says. So what is written is what would be written through Kafka, but for where
records stand in topics that are never filled.

Each step leaves the states of the shards and a note; its rows go to Delta under its number. What is killed goes on with
the step that has no note: it computes the same again, and Delta leaves out what it has.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

from connectors.kafka.partitioner import partition_of, partitions_of
from connectors.sinks.delta import append
from connectors.sinks.kafka import Span
from infra.contract.offsets import Partition, StoredOffsets
from infra.contract.topics import Topic, TopicMap
from jobs.archive.tables import Table, tables
from jobs.archive.transform import rows as table_rows
from jobs.runtime.job import BatchTransform, Context, Transform
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.lateness import LatenessFollower
from jobs.runtime.settings import Settings
from jobs.runtime.shard_placement import salted
from jobs.runtime.watermarks import WatermarkTracker, watermark_records
from jobs.table import JOBS
from ops.backfill.folds import OUTPUT, Row, ShardFolds, Stage
from ops.replay.registry import Generation
from ops.savepoints.store import Store

PLAN, STATES, NOTES = "plan.json", "states", "steps"
# What a step has made waits on disk, in pieces of so many rows. Java's serializer holds on to a hundred pieces, so with
# Spark's 10,000 rows of some kilobytes each two tasks filled a heap of 1 GB.
_PIECE = "spark.sql.inMemoryColumnarStorage.batchSize", "50"
WRITERS = 2  # tables at once: one is planned, or its commit written, while another's rows are
# Kafka's columns of a record that is written, by their order.
_KAFKA = ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")
_HEADERS = "array<struct<key:string,value:binary>>"
_RECORD = f"topic string, partition int, offset long, timestamp_ms long, key binary, value binary, headers {_HEADERS}"


class Plan(BaseModel):
    """What a backfill reads, cut into steps; it stays the same when it is resumed."""

    model_config = ConfigDict(frozen=True)

    id: str  # of the rows in Delta
    request: dict[str, Any]  # the options
    bounds: list[StoredOffsets]
    records: list[int]


class Note(BaseModel):
    """What is to be known after a step: how far event time has come, and where the topics would end."""

    watermark_ms: int = 0
    newest: StoredOffsets = {}  # of each partition that is read, the newest Kafka timestamp
    ends: StoredOffsets = {}
    written: dict[str, int] = {}  # records by topic


@dataclass(frozen=True)
class Stretch(Context):
    """A job's context whose streams are the archived rows of one step."""

    rows: DataFrame = field(kw_only=True)
    present: frozenset[str] = frozenset()  # the topics of which it has rows

    def stream(self, source: str, topics: Sequence[Topic], *, headers: bool = False, **_: object) -> DataFrame:
        """The rows of these topics, with the columns of Kafka's source; nothing bounds them."""
        names = [topic.name for topic in topics if topic.name in self.present]
        # Spark leaves out what is never true when it plans: so a format without records costs nothing.
        own = F.col("topic").isin(names) if names else F.lit(False)
        columns = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
        return self.rows.where(own).select(*columns, *(["headers"] if headers else []))


class Backfill:
    """The steps of a plan."""

    def __init__(
        self, plan: Plan, archived: DataFrame, generation: Generation, topics: TopicMap, settings: Settings
    ) -> None:
        self.plan, self.archived, self.topics = plan, archived, topics
        self.spark: SparkSession = archived.sparkSession
        self.spark.conf.set(*_PIECE)
        self.settings = settings.model_copy(update={"generation": generation.name})
        self.folder = self.settings.checkpoint_of("backfill")
        first, *others = [JOBS[name] for name in generation.jobs if JOBS[name].is_replayable]
        self.transform: Transform = first.implementation()
        own = load_job_settings(first, generation.changes(first.name))
        self.lateness = LatenessFollower(settings.kafka_bootstrap, topics)
        self.context = Context(self.spark, self.settings, topics, own, lateness=self.lateness)
        self.each_batch: BatchTransform = self.transform.each_batch(self.context)
        self.events = topics[first.watermarks or first.writes[0]]
        stages = [Stage.of(job, load_job_settings(job, generation.changes(job.name)), topics) for job in others]
        self.stages = [stage for stage in stages if not stage.whole_topic]
        self.whole = [stage for stage in stages if stage.whole_topic]
        # A partition without records holds no watermark back, but its topic's lateness counts as through Kafka.
        self.nothing = {(topic.name, number): 0 for topic in first.inputs(topics) for number in range(topic.partitions)}
        self.partitions = {topic.name: topic.partitions for topic in topics}

    def run(self, report: Callable[[int, Note], None]) -> Note:
        """Run the steps that are not done; `report` gets the number of each that is. Returns the last one's note."""
        store = Store.of(self.folder)
        done = store.batches(NOTES)
        note = Note.model_validate_json((store / NOTES).read(str(done[-1]))) if done else Note()
        for step in range(len(done), len(self.plan.records)):
            note = self._step(step, note)
            (store / NOTES).write(str(step), note.model_dump_json().encode())
            if step:
                (store / f"{STATES}/{step - 1}").remove()  # what a step that is repeated needs is kept
            report(step, note)
        return note

    def _step(self, step: int, before: Note) -> Note:
        ends: Counter[Partition] = Counter(before.ends)
        enriched = self._enriched(step, ends)
        watermark, tracker = self._watermark(step, before, enriched.frame)
        rows = watermark_records(self.events, watermark) if watermark else []
        marks = self._part([(*row[:5], []) for row in rows], ends)
        folded = self._folded(step, [enriched, marks], ends)
        parts = [enriched, marks, folded, *(self._whole(step, stage, folded, ends) for stage in self.whole)]
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda table: self._append(step, table, parts), tables(self.topics)))
        for part in (enriched, folded):
            part.frame.unpersist()
        written = Counter(before.written)
        for part in parts:
            written.update(part.counts)
        return Note(watermark_ms=tracker.watermark_ms, newest=tracker.newest, ends=dict(ends), written=dict(written))

    def _enriched(self, step: int, ends: Counter[Partition]) -> "_Part":
        """What the first job makes of the step's rows."""
        begin, end = self.plan.bounds[step], self.plan.bounds[step + 1]
        ranges = {place: (begin[place], offset) for place, offset in end.items() if offset > begin[place]}
        rows = self.archived.where(_inside(ranges)).withColumn("timestampType", F.lit(0))
        present = frozenset(topic for topic, _ in ranges)
        context = Stretch(**vars(self.context), rows=rows, present=present)
        frame = self.each_batch(self.transform.build(context))
        ready = frame.withColumns(
            {
                "key": F.col("key").cast("binary"),
                "value": F.col("value").cast("binary"),
                "timestamp_ms": F.greatest("timestamp_ms", F.lit(1)),
            }
        )
        return self._numbered(ready, ends, ("timestamp_ms", F.col("key").asc_nulls_last(), "value"))

    def _watermark(self, step: int, before: Note, enriched: DataFrame) -> tuple[int | None, WatermarkTracker]:
        read = enriched.where("source_topic is not null").groupBy("source_topic", "source_partition")
        times = read.agg(F.min("source_oldest_ms"), F.max("source_newest_ms")).collect()
        spans = {(row[0], row[1]): Span(row[2], row[3]) for row in times}
        tracker = WatermarkTracker(self.lateness.allowed, dict(before.newest), before.watermark_ms)
        end, latest = (self.nothing | self.plan.bounds[at] for at in (step + 1, -1))
        return tracker.advance(end, latest, spans), tracker

    def _folded(self, step: int, read: "list[_Part]", ends: Counter[Partition]) -> "_Part":
        """What the folds make of the records of each shard."""
        columns = ("partition", "offset", "value", "timestamp_ms")
        frames = [part.frame.where(F.col("topic") == self.events.name).select(*columns) for part in read]
        # A shard without records takes its state along: a row that is none for each of them.
        none = [(number, -1, None, 0) for number in range(self.events.partitions)]
        frames.append(self.spark.createDataFrame(none, "partition int, offset long, value binary, timestamp_ms long"))
        shard = F.col("partition").alias("shard")
        rows = reduce(DataFrame.unionByName, frames).select(shard, salted(F.col("partition")), *columns)
        folds = ShardFolds(self.stages, f"{self.folder}/{STATES}", step)
        frame = rows.groupBy("shard", "salt").applyInArrow(_grouped(folds), OUTPUT)
        return self._numbered(frame, ends, ("shard", "place"))

    def _whole(self, step: int, stage: Stage, folded: "_Part", ends: Counter[Partition]) -> "_Part":
        """What a fold makes of all partitions of a topic of few records."""
        rows = folded.frame.where(F.col("topic") == stage.reads).orderBy("partition", "offset")
        read = [
            Row(stage.reads, row.partition, row.key, bytes(row.value), row.timestamp_ms, [])
            for row in rows.select("partition", "key", "value", "timestamp_ms").collect()
        ]
        folds = ShardFolds([stage], f"{self.folder}/{STATES}", step)
        return self._part(list(folds.fold(0, read)), ends)

    def _numbered(self, frame: DataFrame, ends: Counter[Partition], order: tuple[Any, ...]) -> "_Part":
        """The records with partition and offset, as they would stand behind those of the steps before; on disk."""
        partition = F.coalesce("partition", _partition(self.partitions)(F.col("topic"), F.col("key")))
        places = [one for (topic, at), end in ends.items() for one in (F.lit(f"{topic}/{at}"), F.lit(end).cast("long"))]
        first = F.try_element_at(F.create_map(*places), F.concat_ws("/", "topic", "partition")) if places else F.lit(0)
        place = Window.partitionBy("topic", "partition", "salt").orderBy(*order)
        offset = (F.coalesce(first, F.lit(0)) + F.row_number().over(place) - 1).cast("long")
        # By the hash of topic and partition, all partitions of a topic fell to one of two tasks.
        placed = frame.withColumn("partition", partition).withColumn("salt", salted(F.col("partition")))
        numbered = placed.repartition("partition", "salt").withColumn("offset", offset).drop("salt")
        kept = numbered.persist(StorageLevel.DISK_ONLY)
        counts = Counter({(row[0], row[1]): row[2] for row in kept.groupBy("topic", "partition").count().collect()})
        ends.update(counts)
        return _Part.of(kept, counts)

    def _part(self, rows: Sequence[tuple[Any, ...]], ends: Counter[Partition]) -> "_Part":
        """The same of records that the driver holds."""
        placed, counts = [], Counter[Partition]()
        for topic, partition, key, value, timestamp_ms, headers in rows:
            place = topic, partition_of(key, self.partitions[topic]) if partition is None else partition
            placed.append((*place, ends[place], timestamp_ms, key, value, headers))
            ends[place] += 1
            counts[place] += 1
        return _Part.of(self.spark.createDataFrame(placed, _RECORD), counts)

    def _append(self, step: int, table: Table, parts: "Sequence[_Part]") -> None:
        names = [topic.name for topic in table.topics]
        frames = [part.frame.select(*_KAFKA) for part in parts if part.counts.keys() & {*names}]
        if not frames:
            return
        rows = reduce(DataFrame.unionByName, frames).where(F.col("topic").isin(names))
        kafka = rows.withColumn("timestamp", F.timestamp_millis("timestamp_ms")).drop("timestamp_ms")
        application = f"{self.settings.query_of('backfill')}.{self.plan.id}"
        append(table_rows(kafka, table), self.settings.delta_of(table.name), application, step, table.partition_by)


@dataclass(frozen=True)
class _Part:
    """Records of one step with their places, and how many there are of each topic."""

    frame: DataFrame
    counts: Counter[str]

    @classmethod
    def of(cls, frame: DataFrame, counts: Mapping[Partition, int]) -> "_Part":
        by_topic: Counter[str] = Counter()
        for (topic, _), count in counts.items():
            by_topic[topic] += count
        return cls(frame, by_topic)


def _inside(ranges: Mapping[Partition, tuple[int, int]]) -> Column:
    """Whether a row is in one of these ranges of offsets."""
    each = [
        (F.col("topic") == topic) & (F.col("partition") == number) & F.col("offset").between(first, last - 1)
        for (topic, number), (first, last) in ranges.items()
    ]
    return reduce(or_, each, F.lit(False))


def _partition(partitions: Mapping[str, int]) -> Callable[[Column, Column], Column]:
    """The partition of a record by its key, as Kafka's clients choose it."""

    @arrow_udf("int", ArrowUDFType.SCALAR)
    def by_key(topics: pa.Array, keys: pa.Array) -> pa.Array:
        return partitions_of(topics, keys, partitions)

    return by_key


def _grouped(folds: ShardFolds) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """As Spark takes it: it counts the arguments of a function, and an object has one more."""

    def fold(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        return folds.of_table(key, table)

    return fold

"""What a job does, in Spark's terms: a transform or a fold, from which the runtime makes streaming queries.

A row of the job table (`jobs/table.py`) names one of these objects by its `code`. They are declarations: nothing is
read or started when one is made.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import structlog
from pydantic_settings import BaseSettings
from pyspark.sql import DataFrame, SparkSession

from connectors.kafka.sizes import filled_topics, largest_mean_bytes
from connectors.sinks.kafka import SinkSettings, TransactionalSink, WriteSummary
from infra.contract.jobs import Job
from infra.contract.lateness import AllowedLateness
from infra.contract.topics import Topic, TopicMap
from jobs.runtime import rehearsal
from jobs.runtime.checkpoint import Checkpoint
from jobs.runtime.fold import fold_partitions, fold_topic, to_records
from jobs.runtime.lateness import LatenessFollower
from jobs.runtime.queryable import Question
from jobs.runtime.replay import Replay
from jobs.runtime.settings import Settings
from jobs.runtime.shard_state import Opener

log = structlog.get_logger()

# A micro-batch reads what is there. After it, the consumer asks for what comes next, and by default the broker answers
# half a second later: until then, it would answer nothing else on that connection, such as where a partition ends.
_AT_ONCE: Mapping[str, str | int] = {"kafka.fetch.max.wait.ms": 10}
# Spark's source for Kafka, by which few new records don't wait until a long backlog of another partition is read, and
# which can gather records for a job that emits at steps of event time, such as windows' ends.
# The real-time mode, whose reading isn't bounded, takes none but Spark's own.
_FAIR_KAFKA = "kappa.FairKafka"


@dataclass(frozen=True)
class Context:
    """What a job gets to make its queries: Spark, settings, the map of topics, and a way to read topics."""

    spark: SparkSession
    settings: Settings
    topics: TopicMap
    own: BaseSettings | None = None  # of the job's settings class
    filled_streams: int = 1  # of the query's streams, those that have records: they share a batch's bytes
    lateness: LatenessFollower | None = None  # of a job that reads telemetry

    def without_replay(self) -> "Context":
        """The context that reads topics from their beginning: for those that a replay doesn't bound."""
        return replace(self, settings=self.settings.model_copy(update={"replay": Replay()}))

    def stream(
        self,
        source: str,
        topics: Sequence[Topic],
        *,
        headers: bool = False,
        bounded: bool = True,
        seconds: float = 0,
        step: int | None = None,
    ) -> DataFrame:
        """A stream of Kafka's rows of `topics`, committed records only: all of them, or the part that a replay reads.

        Args:
            source: the name of the source in the checkpoint, so that others can be added later.
            topics: the topics to read.
            headers: whether the rows have Kafka's headers.
            bounded: whether a micro-batch has at most settings.max_offsets_per_trigger records, and about
                its share of settings.batch_bytes.
            seconds: the trigger interval, if not settings.trigger_seconds; the bound is larger in proportion.
            step: if given, records are gathered for settings.trigger_seconds, or until a watermark record among them
                passes a multiple of so many ns.
        """
        settings, replay = self.settings, self.settings.replay
        names = replay.subscribed([topic.name for topic in topics])
        limit = {**_AT_ONCE, "maxOffsetsPerTrigger": self._batch_records(names, seconds)} if bounded else {}
        if step:
            limit |= {"gatherMillis": int(settings.trigger_seconds * 1000), "stepNanos": step}
        rows = (
            self.spark.readStream.format(_FAIR_KAFKA if bounded else "kafka")
            .name(source)
            .option("kafka.bootstrap.servers", settings.kafka_bootstrap)
            .option("subscribe", ",".join(names))
            .option("startingOffsets", replay.starting_offsets(names))
            .options(**limit)
            .option("includeHeaders", headers or bool(replay.restored))
            .options(**settings.spark())
            .option("kafka.isolation.level", "read_committed")
            # After each so many records Spark asks the broker for the partition's end and fetches again.
            .option("kafka.max.poll.records", "5000")
            # Records that retention deleted before they were read are lost: an operator must decide what to do.
            .option("failOnDataLoss", "true")
            .load()
        )
        return replay.part(rows, topics)

    def _batch_records(self, names: Sequence[str], seconds: float) -> int:
        settings, seconds = self.settings, seconds or self.settings.trigger_seconds
        largest = math.ceil(settings.max_offsets_per_trigger * max(1, seconds / settings.trigger_seconds))
        return min(settings.replay.batch_records(names, largest, seconds), self._affordable(names, largest))

    def _affordable(self, names: Sequence[str], largest: int) -> int:
        """How many records of these topics a batch may hold by their bytes."""
        bound = self.settings.batch_bytes / self.filled_streams
        mean = largest_mean_bytes(self.settings.kafka_bootstrap, names)
        records = max(1, int(bound / mean)) if mean else largest
        if records < largest:
            log.info("batches bounded by bytes", topics=names, mean_bytes=round(mean), records=records)
        return records


class Sink(Protocol):
    """Writes the micro-batches of a query, idempotently: it skips what it has written before."""

    def write(self, frame: DataFrame, batch_id: int) -> WriteSummary:
        """Write the rows of a micro-batch and return what was written."""


BatchTransform = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Query:
    """The declaration of a streaming query.

    Attributes:
        name: the job's, or one that begins with the job's and a dot.
        frame: the stream.
        sink: makes the sink, once the checkpoint has an id.
        each_batch: transforms a micro-batch before it is written; it may use what changes between micro-batches.
        watermarks: the topic for which it writes watermark records.
        lateness: how late events may be, if it writes watermark records; it decides on that.
        trigger_seconds: the trigger interval.
        sources: the topics of each of its streams by name, if these may change from one start to the next.
        questions: what can be asked of its state while it runs.
        rehearsal: makes the same stream of records that are none, if its first micro-batch is worth a rehearsal.
        phase_seconds: how long after the begin of a trigger interval a micro-batch is written at the earliest.
        rests_within_seconds: a micro-batch that takes half of a trigger interval or more is followed by a rest as long,
            but both together are no longer than this.
    """

    name: str
    frame: DataFrame
    sink: Callable[[SinkSettings], Sink]
    trigger_seconds: float
    each_batch: BatchTransform | None = None
    watermarks: Topic | None = None
    lateness: AllowedLateness | None = None
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    questions: Sequence[Question] = ()
    rehearsal: Callable[[], DataFrame] | None = None
    phase_seconds: float = 0.0
    rests_within_seconds: float = 0.0

    @property
    def job(self) -> str:
        """The name of the query's job."""
        return job_of(self.name)


def job_of(query: str) -> str:
    """The job of a query that is named `<job>` or `<job>.<part>`."""
    return query.partition(".")[0]


Sources = Mapping[str, tuple[Topic, ...]]


class Implementation(Protocol):
    """The protocol of the `code` of a row of the job table, for a job that uses Spark."""

    def check_settings(self, own: BaseSettings | None, topics: TopicMap) -> None:
        """Raises UserError if the job's own settings make no sense."""

    def sources(self, job: Job, topics: TopicMap) -> Sources:
        """The topics of each stream that the job reads, by the stream's name in the checkpoint."""

    def queries(self, job: Job, context: Context) -> list[Query]:
        """The streaming queries of the job."""


@dataclass(frozen=True)
class Transform:
    """The implementation of a job without state; its own settings, if it has any, are the context's `own`.

    Attributes:
        streams: the topics of each stream that `build` reads, by the stream's name in the checkpoint.
        build: makes the stream of the job's query.
        each_batch: makes the transform of a micro-batch; its result has the columns of connectors.sinks.kafka.
    """

    streams: Callable[[TopicMap], Sources]
    build: Callable[[Context], DataFrame]
    each_batch: Callable[[Context], BatchTransform]

    def check_settings(self, own: BaseSettings | None, topics: TopicMap) -> None:
        """Does nothing: the fields of the settings class check themselves, and there is no state to open."""

    def sources(self, job: Job, topics: TopicMap) -> Sources:
        """The declared streams."""
        return self.streams(topics)

    def queries(self, job: Job, context: Context) -> list[Query]:
        """One query with the name of the job."""
        read = context.settings.replay.subscribed
        sources = {
            name: read([topic.name for topic in topics]) for name, topics in self.streams(context.topics).items()
        }
        lateness = LatenessFollower(context.settings.kafka_bootstrap, context.topics) if job.watermarks else None
        context = replace(context, filled_streams=self._filled(sources, context.settings), lateness=lateness)
        return [
            Query(
                job.name,
                self.build(context),
                # As many transactions as cores, not as source partitions.
                partial(TransactionalSink, tasks=context.settings.shuffle_partitions),
                context.settings.look_seconds,
                self.each_batch(context),
                context.topics[job.watermarks] if job.watermarks else None,
                lateness.allowed if lateness else None,
                sources,
                rests_within_seconds=context.settings.trigger_seconds,
            )
        ]

    def _filled(self, sources: Mapping[str, Sequence[str]], settings: Settings) -> int:
        """How many of the streams read topics that hold records."""
        filled = filled_topics(settings.kafka_bootstrap, {name for names in sources.values() for name in names})
        return max(1, sum(not filled.isdisjoint(names) for names in sources.values()))


@dataclass(frozen=True)
class Fold:
    """The implementation of a job with state: it folds its topic record by record, in the order of each partition.

    Attributes:
        opener: makes the function that opens a shard's state: plain Python, without Spark.
        whole_topic: whether all partitions are one shard, for a topic of few records; else each partition is a shard,
            and its results go to the partition of the same number.
        check: raises UserError if the state in a checkpoint doesn't fit; called before the query is made.
        questions: makes what can be asked of its state while it runs, over HTTP.
        step: how far event time must go, in ns, until it is worth a micro-batch at once, if its topic gets records more
            often; else a micro-batch gathers what comes in a trigger interval.
    """

    opener: Callable[[BaseSettings | None, TopicMap], Opener]
    whole_topic: bool = False
    check: Callable[[Context, Checkpoint], None] | None = None
    questions: Callable[[BaseSettings | None], Sequence[Question]] = lambda _: ()
    step: Callable[[BaseSettings | None], int | None] = lambda _: None

    def check_settings(self, own: BaseSettings | None, topics: TopicMap) -> None:
        """Raises UserError if no shard can be opened with these settings."""
        self.opener(own, topics)

    def sources(self, job: Job, topics: TopicMap) -> Sources:
        """One stream, with the name of the topic that it reads, in the letters that Spark takes for a source."""
        return {re.sub(r"\W", "_", str(job.reads[0])): job.inputs(topics)}

    def queries(self, job: Job, context: Context) -> list[Query]:
        """One query with the name of the job; it writes to the first of its topics unless a record names another."""
        checkpoint = Checkpoint(context.spark, context.settings.checkpoint_of(job.name))
        if self.check:
            self.check(context, checkpoint)
        ((source, read),) = self.sources(job, context.topics).items()
        fold = fold_topic if self.whole_topic else fold_partitions
        opener, written = self.opener(context.own, context.topics), checkpoint.written()
        names = {key: context.topics[key].name for key in job.writes}
        step = self.step(context.own)

        def records(rows: DataFrame, initial: DataFrame | None = None) -> DataFrame:
            folded = fold(rows, opener, written=written, initial=initial)
            return to_records(folded, names, same_partition=not self.whole_topic)

        return [
            Query(
                job.name,
                records(context.stream(source, read, headers=True, step=step), checkpoint.initial()),
                TransactionalSink,
                context.settings.look_seconds,
                questions=self.questions(context.own),
                rehearsal=lambda: records(rehearsal.rows(context.spark, read[0].name)),
            )
        ]

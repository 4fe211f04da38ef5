"""What a job does, in Spark's terms: a transform or a fold, from which the runtime makes streaming queries.

A row of the job table (`jobs/table.py`) names one of these objects by its `code`. They are declarations: nothing is
read or started when one is made.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic_settings import BaseSettings
from pyspark.sql import DataFrame, SparkSession

from connectors.sinks.kafka import SinkSettings, TransactionalSink, WriteSummary
from infra.contract.jobs import Job
from infra.contract.topics import Topic, TopicMap
from jobs.runtime.checkpoint import Checkpoint
from jobs.runtime.fold import fold_partitions, fold_topic, to_records
from jobs.runtime.replay import Replay
from jobs.runtime.settings import Settings
from jobs.runtime.shard_state import Opener


@dataclass(frozen=True)
class Context:
    """What a job may know when its queries are made: the map, the settings, its own ones, how to read a topic."""

    spark: SparkSession
    settings: Settings
    topics: TopicMap
    own: BaseSettings | None = None  # of the job's settings class

    def without_replay(self) -> "Context":
        """The same for topics that belong to this generation: all of them, whatever part of others it replays."""
        return replace(self, settings=self.settings.model_copy(update={"replay": Replay()}))

    def stream(
        self, source: str, topics: Sequence[Topic], *, headers: bool = False, bounded: bool = True, seconds: float = 0
    ) -> DataFrame:
        """Kafka's rows of `topics`, committed records only: from their beginning, or what a replay takes of them.

        Args:
            source: the name by which the checkpoint knows the source, so that others can be added beside it later.
            topics: what is read.
            headers: whether the rows have Kafka's headers.
            bounded: whether a batch has at most as many records as the settings say.
            seconds: how often a batch comes, if not as often as the settings say: its bound is larger in proportion.
        """
        settings, replay = self.settings, self.settings.replay
        names, seconds = replay.subscribed([topic.name for topic in topics]), seconds or settings.trigger_seconds
        most = math.ceil(settings.max_offsets_per_trigger * max(1, seconds / settings.trigger_seconds))
        largest = replay.batch_records(names, most, seconds)
        rows = (
            self.spark.readStream.format("kafka")
            .name(source)
            .option("kafka.bootstrap.servers", settings.kafka_bootstrap)
            .option("subscribe", ",".join(names))
            .option("startingOffsets", replay.starting_offsets(names))
            .options(**({"maxOffsetsPerTrigger": largest} if bounded else {}))
            .option("includeHeaders", headers or bool(replay.restored))
            .options(**settings.spark())
            .option("kafka.isolation.level", "read_committed")
            # Spark asks the broker for a partition's ends, and fetches anew, each time that it has taken so many.
            .option("kafka.max.poll.records", "5000")
            # What retention took before it was read is a loss that a person must decide on.
            .option("failOnDataLoss", "true")
            .load()
        )
        return replay.part(rows, topics)


class Sink(Protocol):
    """Takes the micro-batches of a query, each once: it recognises a batch that it has."""

    def write(self, frame: DataFrame, batch_id: int) -> WriteSummary:
        """Write the rows of a batch."""


BatchTransform = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Query:
    """A streaming query that is ready to be started.

    Attributes:
        name: the job's, or one that begins with the job's and a dot.
        frame: the stream.
        sink: makes the sink from the identity of the checkpoint, once there is one.
        each_batch: what is done to a micro-batch before it is written, for what changes between batches.
        watermarks: the topic for which it writes watermark records.
        trigger_seconds: how often it looks for new records.
    """

    name: str
    frame: DataFrame
    sink: Callable[[SinkSettings], Sink]
    trigger_seconds: float
    each_batch: BatchTransform | None = None
    watermarks: Topic | None = None

    @property
    def job(self) -> str:
        """The name of its job."""
        return job_of(self.name)


def job_of(query: str) -> str:
    """The job of a query that is named `<job>` or `<job>.<part>`."""
    return query.partition(".")[0]


Sources = Mapping[str, tuple[Topic, ...]]


class Implementation(Protocol):
    """What the `code` of a row is, for a job of Spark's."""

    def check_settings(self, own: BaseSettings | None, topics: TopicMap) -> None:
        """Raises UserError if the job's own settings make no sense."""

    def sources(self, job: Job, topics: TopicMap) -> Sources:
        """The topics of each stream that it reads, by the name under which a checkpoint knows the stream."""

    def queries(self, job: Job, context: Context) -> list[Query]:
        """The queries that do the job's work."""


@dataclass(frozen=True)
class Transform:
    """A job without state.

    Attributes:
        streams: the topics of each stream that `build` reads, by the name under which a checkpoint knows it.
        build: gives the stream of the job's query.
        each_batch: gives what is done to each micro-batch of it; its result has the columns of connectors.sinks.kafka,
            addressed to the job's topics.
    """

    streams: Callable[[TopicMap], Sources]
    build: Callable[[Context], DataFrame]
    each_batch: Callable[[Context], BatchTransform]

    def check_settings(self, own: BaseSettings | None, topics: TopicMap) -> None:
        """It has none."""

    def sources(self, job: Job, topics: TopicMap) -> Sources:
        """As declared."""
        return self.streams(topics)

    def queries(self, job: Job, context: Context) -> list[Query]:
        """One query of the job's name."""
        finish, partitions = self.each_batch(context), context.settings.shuffle_partitions
        return [
            Query(
                job.name,
                self.build(context),
                TransactionalSink,
                context.settings.trigger_seconds,
                # As many transactions as cores, not as source partitions; by key, so that a repeated batch falls alike.
                lambda frame: finish(frame).repartition(partitions, "key"),
                context.topics[job.watermarks] if job.watermarks else None,
            )
        ]


@dataclass(frozen=True)
class Fold:
    """A job with state: its first topic is folded record by record, in the order of the log, by event time.

    Attributes:
        opener: makes what opens a shard's state: plain Python, without Spark.
        whole_topic: whether all partitions are one shard, for a topic of few records; else each partition is one, and
            its results go into the partition of the same number.
        check: raises UserError if the state in a checkpoint doesn't fit; called before the query is made.
    """

    opener: Callable[[BaseSettings | None, TopicMap], Opener]
    whole_topic: bool = False
    check: Callable[[Context, Checkpoint], None] | None = None

    def check_settings(self, own: BaseSettings | None, topics: TopicMap) -> None:
        """Raises UserError if no shard can be opened with these settings."""
        self.opener(own, topics)

    def sources(self, job: Job, topics: TopicMap) -> Sources:
        """One, named as the topic that it reads."""
        return {str(job.reads[0]): job.inputs(topics)}

    def queries(self, job: Job, context: Context) -> list[Query]:
        """One query of the job's name, which writes to the first of its topics unless a record names another."""
        if self.check:
            self.check(context, Checkpoint(context.spark, context.settings.checkpoint_of(job.name)))
        ((source, read),) = self.sources(job, context.topics).items()
        rows = context.stream(source, read)
        fold = fold_topic if self.whole_topic else fold_partitions
        folded = fold(rows, self.opener(context.own, context.topics))
        records = to_records(folded, context.topics[job.writes[0]].name, same_partition=not self.whole_topic)
        return [Query(job.name, records, TransactionalSink, context.settings.trigger_seconds)]

"""Runs a streaming query: its sink writes each micro-batch, then the micro-batch is committed."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from connectors.kafka.client import make_admin
from connectors.kafka.offsets import Log, latest_offsets
from connectors.kafka.security import client_config
from connectors.kafka.transactions import Row
from connectors.sinks.kafka import SinkSettings, Span
from infra.contract.offsets import Offsets, Partition
from infra.contract.topics import Topic
from jobs.runtime import metrics
from jobs.runtime.checkpoint import Checkpoint
from jobs.runtime.commits import BatchCommitter
from jobs.runtime.gate import Gate
from jobs.runtime.job import Context, Query, Sink
from jobs.runtime.kill_points import reach
from jobs.runtime.rehearsal import rehearse
from jobs.runtime.scratch import scratch_of_this_process
from jobs.runtime.settings import Settings
from jobs.runtime.source_changes import settle_sources
from jobs.runtime.watermarks import WatermarkTracker, lateness_by_topic, watermark_records


def start_query(query: Query, context: Context, gate: Gate) -> StreamingQuery:
    """Start a query from its checkpoint; the gate can hold back its micro-batches."""
    run = QueryRun(query, context, gate)
    run.take_over()
    return run.start()


class QueryRun:
    """One query of a process: takes over from another copy of the job, then starts. Both may be repeated."""

    def __init__(self, query: Query, context: Context, gate: Gate) -> None:
        self.query, self.context, self.gate = query, context, gate
        self.writer: BatchWriter | None = None

    def take_over(self, *, yields: bool = True) -> None:
        """Become the copy that writes; see BatchCommitter for `yields`.

        Raises ProgressError if the checkpoint isn't the one that was written from.
        """
        self.writer = BatchWriter(self.query, self.context, yields=yields)

    def rehearse(self) -> None:
        """Do without effect what a first micro-batch of this JVM takes so long for, if the query says how."""
        if self.query.rehearsal:
            rehearse(self.query.rehearsal(), scratch_of_this_process(self.context.settings.home))

    def start(self) -> StreamingQuery:
        """Start from the checkpoint, which no other copy can plan far beyond since `take_over`.

        Raises UserError if a batch that was begun can't be ended with the sources that the query has now.
        """
        assert self.writer
        query, settings = self.query, self.context.settings
        name = settings.query_of(query.name)
        if query.sources:
            committed = self.writer.committer.committed
            settle_sources(name, query.sources, self.writer.checkpoint, committed, Log(settings.kafka_bootstrap))
        return (
            query.frame.writeStream.queryName(name)
            .option("checkpointLocation", settings.checkpoint_of(query.name))
            .trigger(processingTime=f"{int(query.trigger_seconds * 1000)} milliseconds")
            .foreachBatch(self.gate.guard(query.name, self.writer.write))
            .start()
        )

    def check_owner(self) -> None:
        """Raises TakenOverError if another copy of the job has begun since."""
        assert self.writer
        self.writer.committer.check_owner()


class BatchWriter:
    """Writes and commits the micro-batches of one query, idempotently: a retried one changes nothing."""

    def __init__(self, query: Query, context: Context, *, yields: bool) -> None:
        self.query, self.context = query, context
        self.checkpoint = Checkpoint(context.spark, context.settings.checkpoint_of(query.name))
        self.watermarks = WatermarkWriter(query.job, context, query.watermarks) if query.watermarks else None
        identity = sink_settings(query.name, self.checkpoint, context.settings)
        self.committer = BatchCommitter(identity, self.checkpoint.planned, yields=yields)
        self.sink: Sink = query.sink(identity)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write one micro-batch and commit it; sink and committer both skip what an earlier attempt has done."""
        self.committer.check(batch_id)
        summary = self.sink.write(self.query.each_batch(frame) if self.query.each_batch else frame, batch_id)
        reach("written")
        end = self.checkpoint.end_offsets(batch_id)
        watermarks = self.watermarks.after(end, summary.sources) if self.watermarks else ()
        self.committer.commit(batch_id, end, watermarks)
        reach("committed")
        metrics.observe_write(self.query.job, summary.rows_by_topic, summary.rows_by_note, summary.skipped_tasks)
        metrics.observe_sites(summary.newest_by_origin)


def sink_settings(query: str, checkpoint: Checkpoint, settings: Settings) -> SinkSettings:
    """What a sink needs of a query: broker, query name, run id, transaction timeout, client configuration."""
    return SinkSettings(
        settings.kafka_bootstrap,
        settings.query_of(query),
        checkpoint.begin(),
        transaction_timeout_ms=settings.transaction_timeout_seconds * 1000,
        client=settings.client(),
        java_client=settings.java(),
    )


class WatermarkWriter:
    """Makes the watermark records of a job that reads telemetry, for the topic that it writes."""

    def __init__(self, job: str, context: Context, topic: Topic) -> None:
        self.job, self.topic = job, topic
        self.admin = make_admin(client_config(context.settings.kafka_bootstrap))
        self.replay = context.settings.replay
        self.tracker = WatermarkTracker(lateness_by_topic(context.topics))

    def after(self, end: Offsets, read: Mapping[Partition, Span]) -> list[Row]:
        """The watermark records after a micro-batch that ends at the offsets `end`; none if the watermark hasn't moved.

        `read` has the Kafka timestamps, ms, of what the micro-batch read of each partition.
        """
        latest = latest_offsets(self.admin, end)
        watermark = self.tracker.advance(self.replay.original(end), self.replay.original(latest), read)
        if watermark is None:
            return []
        metrics.observe_watermark(self.job, watermark)
        metrics.WATERMARK_MARGIN.labels(self.job).set(self.tracker.skew.margin_ms / 1000)
        return watermark_records(self.topic, watermark)

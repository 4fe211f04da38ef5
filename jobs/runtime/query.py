"""Runs a streaming query: its sink writes each micro-batch, then the micro-batch is committed."""

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from connectors.kafka.client import make_admin
from connectors.kafka.offsets import latest_offsets
from connectors.kafka.security import client_config
from connectors.kafka.transactions import Row
from connectors.sinks.kafka import SinkSettings
from infra.contract.offsets import Offsets
from infra.contract.topics import Topic
from jobs.runtime import metrics
from jobs.runtime.checkpoint import Checkpoint
from jobs.runtime.commits import BatchCommitter
from jobs.runtime.gate import Gate
from jobs.runtime.job import Context, Query, Sink
from jobs.runtime.kill_points import reach
from jobs.runtime.settings import Settings
from jobs.runtime.watermarks import WatermarkTracker, lateness_by_topic, watermark_records


def start_query(query: Query, context: Context, gate: Gate) -> StreamingQuery:
    """Start a query from its checkpoint; the gate can hold back its micro-batches."""
    settings = context.settings
    return (
        query.frame.writeStream.queryName(settings.query_of(query.name))
        .option("checkpointLocation", settings.checkpoint_of(query.name))
        .trigger(processingTime=f"{int(query.trigger_seconds * 1000)} milliseconds")
        .foreachBatch(gate.guard(query.name, BatchWriter(query, context).write))
        .start()
    )


class BatchWriter:
    """Writes and commits the micro-batches of one query, idempotently: a retried one changes nothing."""

    def __init__(self, query: Query, context: Context) -> None:
        self.query, self.context = query, context
        self.checkpoint = Checkpoint(context.spark, context.settings.checkpoint_of(query.name))
        self.watermarks = WatermarkWriter(query.job, context, query.watermarks) if query.watermarks else None
        self._opened: tuple[Sink, BatchCommitter] | None = None

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write one micro-batch and commit it; sink and committer both skip what an earlier attempt has done."""
        sink, committer = self._open()
        committer.check(batch_id)
        summary = sink.write(self.query.each_batch(frame) if self.query.each_batch else frame, batch_id)
        reach("written")
        end = self.checkpoint.end_offsets(batch_id)
        watermarks = self.watermarks.after(end, summary.source_timestamps) if self.watermarks else ()
        committer.commit(batch_id, end, watermarks)
        reach("committed")
        metrics.observe_write(self.query.job, summary.rows_by_topic, summary.rows_by_note, summary.skipped_tasks)

    def _open(self) -> tuple[Sink, BatchCommitter]:
        """Sink and committer, opened at the first micro-batch: only then has Spark given the checkpoint its id."""
        if self._opened is None:
            identity = sink_settings(self.query.name, self.checkpoint, self.context.settings)
            committer = BatchCommitter(identity)  # before the sink: it fences another copy of this job
            self._opened = self.query.sink(identity), committer
        return self._opened


def sink_settings(query: str, checkpoint: Checkpoint, settings: Settings) -> SinkSettings:
    """What a sink needs of a query: broker, query name, run id, transaction timeout, client configuration."""
    return SinkSettings(
        settings.kafka_bootstrap,
        settings.query_of(query),
        checkpoint.run(),
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

    def after(self, end: Offsets, newest: Offsets) -> list[Row]:
        """The watermark records after a micro-batch that ends at the offsets `end`; none if the watermark hasn't moved.

        `newest` is the newest Kafka timestamp, ms, that the micro-batch read of each partition.
        """
        latest = latest_offsets(self.admin, end)
        watermark = self.tracker.advance(self.replay.original(end), self.replay.original(latest), newest)
        if watermark is None:
            return []
        metrics.observe_watermark(self.job, watermark)
        return watermark_records(self.topic, watermark)

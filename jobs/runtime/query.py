"""Runs a streaming query: its sink writes each micro-batch, then the micro-batch is committed."""

import time

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from connectors.kafka.client import make_admin
from connectors.kafka.offsets import Log, latest_offsets
from connectors.kafka.security import client_config
from connectors.kafka.transactions import Row
from connectors.sinks.kafka import SinkSettings, WriteSummary
from infra.contract import lateness
from infra.contract.lateness import Decision
from infra.contract.offsets import Offsets
from jobs.runtime import metrics
from jobs.runtime.checkpoint import Checkpoint
from jobs.runtime.commits import BatchCommitter
from jobs.runtime.gate import Gate
from jobs.runtime.job import Context, Query, Sink
from jobs.runtime.kill_points import reach
from jobs.runtime.lateness import LatenessLearner
from jobs.runtime.rehearsal import rehearse
from jobs.runtime.scratch import scratch_of_this_process
from jobs.runtime.settings import Settings
from jobs.runtime.source_changes import settle_sources
from jobs.runtime.watermarks import WatermarkTracker, watermark_records


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
            .foreachBatch(
                self.gate.guard(
                    query.name,
                    self.writer.write,
                    pause=lambda: pause_seconds(query, time.time()),
                    rest=lambda took: rest_seconds(query, took),
                )
            )
            .start()
        )

    def check_owner(self) -> None:
        """Raises TakenOverError if another copy of the job has begun since."""
        assert self.writer
        self.writer.committer.check_owner()


def pause_seconds(query: Query, now: float) -> float:
    """How long a batch of the query waits that begins at `now`, in s since the epoch: until the phase has come.

    Spark begins trigger intervals at multiples of them. A batch that begins later, as the one before it took so long,
    doesn't wait.
    """
    return max(0.0, query.phase_seconds - now % query.trigger_seconds)


def rest_seconds(query: Query, took: float) -> float:
    """How long the query rests after a batch that took so many seconds: as long, if it took half of an interval.

    Batches become fewer, and the other jobs get their cores, before a machine has no more to give.
    """
    if took <= query.trigger_seconds / 2:
        return 0.0
    return max(0.0, min(took, query.rests_within_seconds - took))


class BatchWriter:
    """Writes and commits the micro-batches of one query, idempotently: a retried one changes nothing."""

    def __init__(self, query: Query, context: Context, *, yields: bool) -> None:
        self.query, self.context = query, context
        self.checkpoint = Checkpoint(context.spark, context.settings.checkpoint_of(query.name))
        self.watermarks = WatermarkWriter(query, context) if query.watermarks else None
        identity = sink_settings(query.name, self.checkpoint, context.settings)
        self.committer = BatchCommitter(identity, self.checkpoint.planned, yields=yields)
        self.sink: Sink = query.sink(identity)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write one micro-batch and commit it; sink and committer both skip what an earlier attempt has done."""
        self.committer.check(batch_id)
        summary = self.sink.write(self.query.each_batch(frame) if self.query.each_batch else frame, batch_id)
        reach("written")
        end = self.checkpoint.end_offsets(batch_id)
        watermarks = self.watermarks.after(end, summary) if self.watermarks else ()
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
    """Makes the watermark records of a job that reads telemetry, and decides how late events may be from then on."""

    HEAD_SECONDS = 15.0  # by the clock: who has read further than that must have been told of a decision

    def __init__(self, query: Query, context: Context) -> None:
        assert query.watermarks and query.lateness
        self.job, self.topic, self.decisions = query.job, query.watermarks, context.topics[lateness.TOPIC].name
        self.admin = make_admin(client_config(context.settings.kafka_bootstrap))
        self.replay = context.settings.replay
        self.allowed = query.lateness
        self.tracker = WatermarkTracker(self.allowed)
        self.learner = LatenessLearner(self.allowed)

    def after(self, end: Offsets, summary: WriteSummary) -> list[Row]:
        """The records that go with a micro-batch that ends at the offsets `end`; none if nothing has moved."""
        decision = self._decision(summary)
        if decision:
            self.allowed.decide([decision])
        latest = latest_offsets(self.admin, end)
        watermark = self.tracker.advance(self.replay.original(end), self.replay.original(latest), summary.sources)
        if self.allowed.learned:
            metrics.ALLOWED_LATENESS.labels(self.job).set(self.allowed.latest_ms / 1000)
        found: list[Row] = []
        if decision:
            found = [(self.decisions, 0, decision.key(), decision.value(), decision.from_ms, None)]
        if watermark is None:
            return found
        metrics.observe_watermark(self.job, watermark)
        metrics.WATERMARK_MARGIN.labels(self.job).set(self.tracker.skew.margin_ms / 1000)
        return found + watermark_records(self.topic, watermark)

    def _decision(self, summary: WriteSummary) -> Decision | None:
        """What follows from the delays of a micro-batch; nothing far from the log's end, where others may be ahead."""
        if not summary.sources:
            return None
        spans = summary.sources.values()
        newest_ms = max(span.newest for span in spans)
        self.learner.observe(summary.delays, max(span.oldest for span in spans), newest_ms)
        if abs(time.time() - newest_ms / 1000) > self.HEAD_SECONDS:
            return None
        return self.learner.decision(newest_ms)

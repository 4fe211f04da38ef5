"""Runs one job: source, transform, sink, progress, metrics, and an orderly stop."""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import structlog
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from connectors.kafka.client import client_config
from connectors.sinks.kafka import ProgressError, Row, SinkSettings, TransactionalSink
from infra.contract.topics import Topic, TopicMap
from infra.errors import UserError
from jobs.runtime import metrics
from jobs.runtime.checkpoint import Checkpoint, Offsets
from jobs.runtime.commits import BatchCommitter
from jobs.runtime.job import Context, Job
from jobs.runtime.kill_points import reach
from jobs.runtime.metrics import MetricsServer
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings
from jobs.runtime.watermarks import WatermarkTracker, lateness_by_topic, latest_offsets, watermark_records

log = structlog.get_logger()

Queries = dict[str, StreamingQuery]
BatchWriter = Callable[[DataFrame, int], None]


def run_job(job: Job, settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Run `job` until `stop` is set or it fails. Blocks.

    Raises what a batch failed with for good: the process should end and be started again.
    """

    run_queries(job.name, partial(start_job, job), settings, topics, stop)


def start_job(job: Job, context: Context, gate: "Gate") -> Queries:
    """Start the query of a job that writes to Kafka."""
    return {job.name: ChainQuery(job, context).start(gate)}


def run_queries(
    job: str,
    start: Callable[[Context, "Gate"], Queries],
    settings: Settings,
    topics: TopicMap,
    stop: threading.Event,
) -> None:
    """Start a job's queries, watch them until `stop`, let their batches end. Raises what a query failed with."""
    queries: Queries = {}
    with MetricsServer(settings, lambda: _sick(queries)) as server:
        spark = open_session(settings.query_of(job), settings)
        gate = Gate()
        try:
            queries.update(start(Context(spark, settings, topics), gate))
            log.info("started", job=job, metrics=server.url)
            watch = Watch(gate)
            while not stop.wait(0.5):
                for name, query in queries.items():
                    watch.look(name, query)
            _drain(job, queries, gate, settings)
        finally:
            gate.release()
            spark.stop()


def _sick(queries: Mapping[str, StreamingQuery]) -> str | None:
    if not queries:
        return "starting"
    dead = [name for name, query in queries.items() if not query.isActive]
    return f"not running: {', '.join(dead)}" if dead else None


class StoppedError(Exception):
    """A batch that came after the signal to stop."""


class DroppedRowsError(Exception):
    """Spark dropped rows as late, which would not show in any output."""


class Gate:
    """Lets running batches end and the next ones not begin, so that a stop never cuts a batch."""

    def __init__(self) -> None:
        self._closing = threading.Event()
        self._released = threading.Event()
        self.held: set[str] = set()  # queries whose next batch waits here
        self.failure: Exception | None = None

    def guard(self, query: str, write: BatchWriter) -> BatchWriter:
        """`write`, but held back once the gate closes."""

        def guarded(frame: DataFrame, batch_id: int) -> None:
            if self._closing.is_set():
                self.held.add(query)
                self._released.wait()
                # Never return: Spark would commit a batch that nobody has written.
                raise StoppedError("the job stops; this batch is for its next start")
            try:
                write(frame, batch_id)
            except Exception as error:
                self.failure = error  # Spark would only hand on its text
                raise

        return guarded

    def close(self) -> None:
        """Hold back the batches that have not begun."""
        self._closing.set()

    def release(self) -> None:
        """Let the held batches fail: stopping their query would wait for them for ever."""
        self._released.set()


class ChainQuery:
    """The streaming query of a job that writes to Kafka."""

    def __init__(self, job: Job, context: Context) -> None:
        self.job, self.context = job, context
        self.name = context.settings.query_of(job.name)
        self.checkpoint = Checkpoint(context.spark, context.settings.checkpoint_of(job.name))
        self.finish = job.finish(context) if job.finish else None
        self.watermarks = Watermarks(job.name, context, context.topics[job.watermarks]) if job.watermarks else None
        self.sink: TransactionalSink | None = None
        self.committer: BatchCommitter | None = None

    def start(self, gate: "Gate") -> StreamingQuery:
        """Start it from its checkpoint."""
        return start_query(
            self.job.name, self.job.build(self.context), gate.guard(self.job.name, self.write), self.context
        )

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """One micro-batch: its records, then its commit. Both know a batch that they have seen."""
        sink, committer = self._open()
        committer.check(batch_id)
        summary = sink.write(self._records(frame), batch_id)
        reach("written")
        end = self.checkpoint.end_offsets(batch_id)
        watermarks = self.watermarks.after(end, summary.source_timestamps) if self.watermarks else ()
        committer.commit(batch_id, end, watermarks)
        reach("closed")
        metrics.observe_write(self.job.name, summary.rows_by_topic, summary.rows_by_note, summary.skipped_tasks)

    def _records(self, frame: DataFrame) -> DataFrame:
        if self.finish is None:
            return frame
        # As many transactions as cores, not as source partitions; by key, so that a repeated batch falls alike.
        return self.finish(frame).repartition(self.context.settings.shuffle_partitions, "key")

    def _open(self) -> tuple[TransactionalSink, BatchCommitter]:
        """Not before the first batch: only then has Spark given the checkpoint its identity."""
        if self.sink is None or self.committer is None:
            settings = sink_settings(self.name, self.checkpoint, self.context.settings)
            self.committer = BatchCommitter(settings)  # first: it fences another copy of this job
            self.sink = TransactionalSink(settings)
        return self.sink, self.committer


def sink_settings(query: str, checkpoint: Checkpoint, settings: Settings) -> SinkSettings:
    """The transactions of a query."""
    timeout = settings.transaction_timeout_seconds * 1000
    return SinkSettings(
        settings.kafka_bootstrap,
        query,
        checkpoint.run(),
        transaction_timeout_ms=timeout,
        client=settings.client(),
        java_client=settings.java(),
    )


class Watermarks:
    """Event-time progress of a job that reads telemetry, for the topic that it fills."""

    def __init__(self, job: str, context: Context, topic: Topic) -> None:
        self.job, self.topic = job, topic
        self.admin = AdminClient(client_config(context.settings.kafka_bootstrap))
        self.replay = context.settings.replay
        self.watermark_tracker = WatermarkTracker(lateness_by_topic(context.topics))

    def after(self, end: Offsets, newest: Mapping[tuple[str, int], int]) -> list[Row]:
        """The watermark records that a batch allows: none if event time has not moved."""
        latest = latest_offsets(self.admin, end)
        watermark = self.watermark_tracker.advance(self.replay.original(end), self.replay.original(latest), newest)
        if watermark is None:
            return []
        metrics.observe_watermark(self.job, watermark)
        return watermark_records(self.topic, watermark)


def start_query(
    name: str, frame: DataFrame, write: BatchWriter, context: Context, seconds: float = 0
) -> StreamingQuery:
    """Start `frame` as query `name`; `write` is called for each micro-batch."""
    settings = context.settings
    return (
        frame.writeStream.queryName(settings.query_of(name))
        .option("checkpointLocation", settings.checkpoint_of(name))
        .trigger(processingTime=f"{int((seconds or settings.trigger_seconds) * 1000)} milliseconds")
        .foreachBatch(write)
        .start()
    )


def job_of(query: str) -> str:
    """The job of a query that is named `<job>` or `<job>.<part>`."""
    return query.partition(".")[0]


class Watch:
    """Takes each finished batch into the metrics and the log, once."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.seen: dict[str, int] = {}

    def look(self, name: str, query: StreamingQuery) -> None:
        """Raises what the query failed with."""
        if (failure := query.exception()) is None:
            return self._note(name, query)
        if isinstance(self.gate.failure, ProgressError):
            raise UserError(str(self.gate.failure)) from self.gate.failure
        raise self.gate.failure or failure

    def _note(self, name: str, query: StreamingQuery) -> None:
        last, seen = query.lastProgress, self.seen.get(name, -1)
        # To ask for all that Spark keeps at each look took a tenth of the chain's CPU time.
        if last is None or last["batchId"] <= seen:
            return
        for progress in query.recentProgress:
            if progress["batchId"] <= seen or "triggerExecution" not in progress["durationMs"]:
                continue
            self.seen[name] = progress["batchId"]
            metrics.observe_progress(job_of(name), name, progress)
            if dropped := metrics.dropped_rows(progress):
                raise DroppedRowsError(
                    f"{name}: Spark's watermark dropped {dropped} rows of batch {progress['batchId']}: event time is "
                    "judged by watermark records (docs/explanation/event-time.md); take the watermark out of the "
                    "query, or raise its delay"
                )
            if progress["numInputRows"]:
                self._log(name, progress)

    def _log(self, name: str, progress: Any) -> None:
        log.info(
            "batch",
            job=job_of(name),
            query=name,
            batch=progress["batchId"],
            rows=progress["numInputRows"],
            milliseconds=progress["durationMs"],
        )


def _drain(job: str, queries: Mapping[str, StreamingQuery], gate: Gate, settings: Settings) -> None:
    """Let each running batch end, then stop."""
    gate.close()
    began = time.monotonic()
    while time.monotonic() - began < settings.drain_seconds and any(
        _is_busy(name, query, gate) for name, query in queries.items()
    ):
        time.sleep(0.1)
    gate.release()
    for query in queries.values():
        query.stop()
    log.info("stopped", job=job, waited_seconds=round(time.monotonic() - began, 1))


def _is_busy(name: str, query: StreamingQuery, gate: Gate) -> bool:
    return bool(query.isActive and query.status["isTriggerActive"] and name not in gate.held)

"""Runs one job: source, transform, sink, progress, metrics, and an orderly stop."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from connectors.sinks.kafka import SinkSettings, TransactionalSink
from infra.topics import TopicMap
from jobs.runtime import metrics
from jobs.runtime.checkpoint import Checkpoint, Offsets
from jobs.runtime.job import Context, Job
from jobs.runtime.progress import GroupOffsets, Ticker, TickWriter, lateness_by_topic, latest_offsets
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings

log = structlog.get_logger()

BatchWriter = Callable[[DataFrame, int], None]


def run_job(job: Job, settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Run `job` until `stop` is set or it fails. Blocks.

    Raises StreamingQueryException if a batch failed for good: the process should end and be started again.
    """
    spark = open_session(settings.query_of(job.name), settings)
    try:
        context = Context(spark, settings, topics)
        query = ChainQuery(job, context)
        run_queries(job.name, {job.name: query.start()}, query.gate, settings, stop)
    finally:
        spark.stop()


class Gate:
    """Lets a running batch end and the next one not begin, so that a stop never cuts a batch."""

    def __init__(self) -> None:
        self._closing = threading.Event()
        self._closed = threading.Event()
        self.reached = threading.Event()

    def guard(self, write: BatchWriter) -> BatchWriter:
        """`write`, but held back once the gate closes."""

        def guarded(frame: DataFrame, batch_id: int) -> None:
            if self._closing.is_set():
                self.reached.set()
                self._closed.wait()
                return
            write(frame, batch_id)

        return guarded

    def close(self) -> None:
        """Hold back the batches that have not begun."""
        self._closing.set()

    def release(self) -> None:
        """Let the held threads end, after their query was stopped."""
        self._closed.set()


class ChainQuery:
    """The streaming query of a job that writes to Kafka."""

    def __init__(self, job: Job, context: Context) -> None:
        self.job, self.context, self.gate = job, context, Gate()
        settings = context.settings
        self.name = settings.query_of(job.name)
        self.checkpoint = Checkpoint(context.spark, settings.checkpoint_of(job.name))
        self.group = GroupOffsets(settings.kafka_bootstrap, self.name)
        self.finish = job.finish(context) if job.finish else None
        self.sink: TransactionalSink | None = None
        self.ticks: Ticks | None = None

    def start(self) -> StreamingQuery:
        """Start it from its checkpoint."""
        return start_query(self.job.name, self.job.build(self.context), self.gate.guard(self.write), self.context)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """One micro-batch: records, then ticks, then the group's offsets. Each can be repeated without harm."""
        if self.sink is None:
            self._open_sinks()
        assert self.sink is not None
        records = self.finish(frame) if self.finish else frame
        summary = self.sink.write(records, batch_id)
        metrics.SKIPPED_TASKS.labels(self.job.name, self.job.name).inc(summary.skipped_tasks)
        for target, rows in summary.rows_by_topic.items():
            metrics.OUTPUT_ROWS.labels(self.job.name, target).inc(rows)
        end = self.checkpoint.end_offsets(batch_id)
        if self.ticks:
            self.ticks.write(end, summary.source_timestamps, batch_id)
        self.group.commit(end)

    def _open_sinks(self) -> None:
        """In the first batch: only then has Spark given the checkpoint its identity."""
        settings, run = self.context.settings, self.checkpoint.run()
        sink = SinkSettings(
            settings.kafka_bootstrap, self.name, run, transaction_timeout_ms=settings.transaction_timeout_seconds * 1000
        )
        self.sink = TransactionalSink(sink)
        if self.job.ticks:
            self.ticks = Ticks(self.job, self.context, run)


class Ticks:
    """Event-time progress of a job that reads telemetry, written to the topic that it fills."""

    def __init__(self, job: Job, context: Context, run: str) -> None:
        assert job.ticks
        settings, topic = context.settings, context.topics[job.ticks]
        self.job = job.name
        self.admin = AdminClient({"bootstrap.servers": settings.kafka_bootstrap})
        self.ticker = Ticker(lateness_by_topic(context.topics))
        sink = SinkSettings(settings.kafka_bootstrap, f"{settings.query_of(job.name)}.ticks", run)
        self.writer = TickWriter(topic.name, topic.partitions, sink)

    def write(self, end: Offsets, newest: Mapping[tuple[str, int], int], batch_id: int) -> None:
        """Write the tick that this batch allows, if event time has moved."""
        tick = self.ticker.advance(end, latest_offsets(self.admin, end), newest)
        if tick is None:
            return
        self.writer.write(tick, batch_id)
        metrics.observe_tick(self.job, tick)


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


def run_queries(
    job: str, queries: dict[str, StreamingQuery], gate: Gate, settings: Settings, stop: threading.Event
) -> None:
    """Watch the queries until `stop`, then let their batches end. Raises what a query failed with."""
    server = metrics.MetricsServer(settings.metrics_host, settings.metrics_port, lambda: _sick(queries))
    log.info("started", job=job, metrics=f"http://{settings.metrics_host}:{server.port}/metrics")
    watch = Watch(job)
    try:
        while not stop.wait(0.5):
            for name, query in queries.items():
                watch.look(name, query)
        _drain(job, queries, gate, settings)
    finally:
        gate.release()
        server.close()


def _sick(queries: Mapping[str, StreamingQuery]) -> str | None:
    dead = [name for name, query in queries.items() if not query.isActive]
    return f"not running: {', '.join(dead)}" if dead else None


class Watch:
    """Takes each finished batch into the metrics and the log, once."""

    def __init__(self, job: str) -> None:
        self.job = job
        self.seen: dict[str, int] = {}

    def look(self, name: str, query: StreamingQuery) -> None:
        """Raises the query's exception if it has failed."""
        if (failure := query.exception()) is not None:
            raise failure
        for progress in query.recentProgress:
            if progress["batchId"] <= self.seen.get(name, -1) or "triggerExecution" not in progress["durationMs"]:
                continue
            self.seen[name] = progress["batchId"]
            metrics.observe_progress(self.job, name, progress)
            if progress["numInputRows"]:
                self._log(name, progress)

    def _log(self, name: str, progress: Any) -> None:
        log.info(
            "batch",
            job=self.job,
            query=name,
            batch=progress["batchId"],
            rows=progress["numInputRows"],
            milliseconds=progress["durationMs"]["triggerExecution"],
        )


def _drain(job: str, queries: Mapping[str, StreamingQuery], gate: Gate, settings: Settings) -> None:
    """Let each running batch end, then stop."""
    gate.close()
    idle = threading.Event()
    waited = 0.0
    while waited < settings.drain_seconds and any(_is_busy(query, gate) for query in queries.values()):
        waited += 0.0 if idle.wait(0.1) else 0.1
    for query in queries.values():
        query.stop()
    log.info("stopped", job=job, waited_seconds=round(waited, 1))


def _is_busy(query: StreamingQuery, gate: Gate) -> bool:
    return bool(query.isActive and query.status["isTriggerActive"] and not gate.reached.is_set())

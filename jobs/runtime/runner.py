"""Runs the jobs of an application: starts their queries, watches them, and stops them in order."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import structlog
from pydantic_settings import BaseSettings
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from connectors.kafka.markers import ProgressError, ProgressSettings
from connectors.kafka.security import client_config
from infra.contract.jobs import Job
from infra.contract.topics import TopicMap
from infra.errors import UserError
from jobs.runtime import metrics
from jobs.runtime.arrival import Arrival
from jobs.runtime.copies import Copies
from jobs.runtime.gate import Gate
from jobs.runtime.health import HEALTH
from jobs.runtime.job import Context, Implementation, job_of
from jobs.runtime.lag import LagWatch, Watched
from jobs.runtime.metrics import MetricsServer
from jobs.runtime.query import QueryRun
from jobs.runtime.queryable import Questions
from jobs.runtime.replay import check_condition
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings
from jobs.runtime.surroundings import observe_settings, observe_surroundings

log = structlog.get_logger()

# What Spark says when records are gone that it was to read (failOnDataLoss).
_DATA_LOSS = re.compile("DATA_LOSS|failOnDataLoss|some data may have been lost|OffsetOutOfRange", re.IGNORECASE)

BACKOFF_SECONDS = (1, 2, 5, 10, 30)  # of a service that failed beside Spark's queries

Queries = dict[str, StreamingQuery]
Starter = Callable[[SparkSession, Gate], Queries]
Restart = Callable[[str, Exception], StreamingQuery | None]


_DENIED = re.compile(r"\b(?:Topic|Group|TransactionalId|Cluster)AuthorizationException: ([^\n]+)")


@dataclass(frozen=True)
class PlannedJob:
    """A job to run, with the runtime's settings and its own ones (`own`), both as its generation's plan sets them."""

    job: Job
    settings: Settings
    own: BaseSettings | None = None

    def check(self, topics: TopicMap) -> None:
        """Raises UserError if its settings or the plan's condition make no sense, before Spark is started for it."""
        if where := self.settings.replay.where:
            check_condition(where, self.job.inputs(topics))
        if self.job.uses_spark:
            self.job.implementation().check_settings(self.own, topics)


def run_application(
    name: str, jobs: Sequence[PlannedJob], settings: Settings, topics: TopicMap, stop: threading.Event
) -> None:
    """Run jobs in this process until `stop`: Spark's as queries of one application, each other one in a thread.

    Each query has its own checkpoint, so a job can move to another application between two starts.

    Raises the exception of the first job that failed: the process should end and be restarted.
    """
    observe_surroundings(settings)
    for planned in jobs:
        observe_settings(planned.job.name, planned.own)
    _Application(name, jobs, settings, topics, stop).run()


class _Application:
    """The jobs of one process: Spark's queries, the services beside them, and what is measured and asked of both."""

    def __init__(
        self, name: str, jobs: Sequence[PlannedJob], settings: Settings, topics: TopicMap, stop: threading.Event
    ) -> None:
        self.name, self.settings, self.topics, self.stop = name, settings, topics, stop
        self.streaming = [one for one in jobs if one.job.uses_spark]
        self.services = [one for one in jobs if not one.job.uses_spark]
        self.queries: Queries = {}
        self.refused: dict[str, str] = {}  # services that ended with a UserError, while the queries go on
        self.questions = Questions()
        watched = [one for planned in jobs for one in _watched(planned, topics)]
        self.lag = LagWatch(client_config(settings.kafka_bootstrap), watched)

    def run(self) -> None:
        """Run until `stop`, or until a job fails."""
        # Before anything takes long: of copies that begin at once, the last goes on.
        arrival = _arrival(self.streaming, self.topics) if self.streaming else None
        self.lag.check_retention()
        with (
            MetricsServer(self.settings, self._unhealthy, self.questions, readiness=self._unready),
            self.lag,
            ThreadPoolExecutor(len(self.services) or 1) as threads,
        ):
            refused = self.refused if self.streaming else None
            running = [threads.submit(_serve, one, self.topics, self.stop, refused) for one in self.services]
            try:
                if arrival:
                    self._run_queries(arrival)
            except Exception as failure:
                if _DATA_LOSS.search(str(failure)):
                    self.lag.check_retention()  # which says what is lost
                raise
            finally:
                if self.streaming:
                    self.stop.set()
            for service in running:
                service.result()

    def _run_queries(self, arrival: Arrival) -> None:
        copies = Copies()

        def start(spark: SparkSession, gate: Gate) -> Queries:
            arrival.stand_back(self.stop)  # once more: Spark has taken long to start
            runs = [run for one in self.streaming for run in _runs(one, spark, self.topics, gate)]
            started = copies.start(runs, another_works=arrival.another_works())
            for run in runs:
                self.questions.open(spark, started[run.query.name], run.query.questions)
            return started

        arrival.stand_back(self.stop)
        run_queries(self.name, start, self.settings, self.queries, self.stop, restart=copies.restart)

    def _unhealthy(self) -> str | None:
        found = unhealthy(self.queries, self.refused) if self.streaming else None
        return found or HEALTH.stalled(self.settings.stall_seconds)

    def _unready(self) -> str | None:
        return self._unhealthy() or HEALTH.unready()


def _arrival(jobs: Sequence[PlannedJob], topics: TopicMap) -> Arrival:
    queries = {query: one.settings for one in jobs for query in one.job.reads_of(topics)}
    first = min(queries)
    settings = queries[first]
    return Arrival(
        ProgressSettings(settings.kafka_bootstrap, settings.query_of(first), run="", client=settings.client())
    )


def _watched(planned: PlannedJob, topics: TopicMap) -> Iterator[Watched]:
    """The queries of a job, as their progress is measured."""
    job, settings = planned.job, planned.settings
    queries = job.reads_of(topics)
    if job.uses_spark and len(queries) == 1:  # with what it reads beside its input, such as retried records
        sources = job.implementation().sources(job, topics).values()
        queries = {name: tuple(topic for some in sources for topic in some) for name in queries}
    for name, read in queries.items():
        yield Watched(
            name,
            job.name,
            settings.query_of(name),
            read,
            settings.replay,
            from_end=job.sink == "people",  # what was before its first start is no news to them
            stops_at_gaps=job.uses_spark,  # the others notice gaps themselves
        )


def _serve(planned: PlannedJob, topics: TopicMap, stop: threading.Event, refused: dict[str, str] | None) -> None:
    """Run a job that doesn't use Spark; when it ends, the application stops.

    With `refused`, queries run beside it, which nothing of it may end: it is started again after a failure, and if it
    ends for what a person must decide, `refused` says why it doesn't run.
    """
    run = planned.job.implementation()
    try:
        if refused is None:
            run(planned.settings, topics, stop)
        else:
            _keep_serving(lambda: run(planned.settings, topics, stop), planned.job.name, stop)
    except UserError as error:
        if refused is None:
            raise
        refused[planned.job.name] = str(error)
        metrics.REFUSED.labels(planned.job.name).set(1)
        log.error("job stays down", job=planned.job.name, reason=str(error))
        raise
    finally:
        if refused is None:
            stop.set()


def _keep_serving(run: Callable[[], None], job: str, stop: threading.Event) -> None:
    pauses = chain(BACKOFF_SECONDS, repeat(BACKOFF_SECONDS[-1]))
    while not stop.is_set():
        try:
            run()
        except UserError:
            raise
        except Exception:
            pause = next(pauses)
            log.exception("job failed; the others go on", job=job, restart_in_seconds=pause)
            stop.wait(pause)


def _runs(planned: PlannedJob, spark: SparkSession, topics: TopicMap, gate: Gate) -> list[QueryRun]:
    context = Context(spark, planned.settings, topics, planned.own)
    implementation: Implementation = planned.job.implementation()
    return [QueryRun(query, context, gate) for query in implementation.queries(planned.job, context)]


def _none(_name: str, _failure: Exception) -> None:
    """Restarts no query."""


def run_queries(
    application: str,
    start: Starter,
    settings: Settings,
    queries: Queries,
    stop: threading.Event,
    *,
    restart: Restart = _none,
) -> None:
    """Start an application's queries, watch them until `stop`, then let their micro-batches end.

    `queries` is filled with the started queries, for the health check. `restart` may start a failed one again. Raises
    the exception that a query failed with.
    """
    spark = open_session(settings.query_of(application), settings)
    gate = Gate()
    try:
        queries.update(start(spark, gate))
        log.info("started", application=application, queries=sorted(queries))
        watch = ProgressWatch(gate)
        tasks = TaskWatch(spark)
        while not stop.wait(0.5):
            for name, query in list(queries.items()):
                try:
                    watch.check(name, query)
                    tasks.look(name, query)
                except Exception as failure:
                    again = restart(name, failure)
                    if again is None:
                        raise
                    gate.failure, queries[name] = None, again
        _drain(application, queries, gate, settings)
    finally:
        gate.release()
        spark.stop()


def unhealthy(queries: Mapping[str, StreamingQuery], refused: Mapping[str, str] = {}) -> str | None:
    """Why the application isn't healthy: it has not started its queries, or some have ended; None if it is.

    `refused` are jobs beside them that have ended for what a person must decide.
    """
    if not queries:
        return "starting"
    dead = [name for name, query in queries.items() if not query.isActive]
    reasons = [
        *([f"not running: {', '.join(dead)}"] if dead else []),
        *(f"{job}: {why}" for job, why in refused.items()),
    ]
    return "; ".join(reasons) or None


class TaskWatch:
    """Counts it as progress when a task ends, of a query that has been at one batch for a while."""

    QUIET_SECONDS = 30.0  # of a query whose tasks are looked at, and between two looks

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._seen: dict[str, tuple[int, int]] = {}  # by query: its newest Spark job, and how many tasks of it are done
        self._due: dict[str, float] = {}

    def look(self, name: str, query: StreamingQuery) -> None:
        """Look at a query's tasks, if that is due."""
        now = time.monotonic()
        if HEALTH.quiet_seconds(name) < self.QUIET_SECONDS or now < self._due.get(name, 0.0):
            return
        self._due[name] = now + self.QUIET_SECONDS
        done = self._done(str(query.runId))
        if done != self._seen.get(name):
            self._seen[name] = done
            HEALTH.beat(name)

    def _done(self, run: str) -> tuple[int, int]:
        newest = max(self._tracker.getJobIdsForGroup(run), default=-1)
        job = self._tracker.getJobInfo(newest)
        stages = [self._tracker.getStageInfo(stage) for stage in job.stageIds] if job else []
        return newest, sum(stage.numCompletedTasks for stage in stages if stage)


class DroppedRowsError(Exception):
    """Raised when Spark's own watermark dropped rows as late: these would be lost without a trace."""


class ProgressWatch:
    """Adds the progress of each finished micro-batch to the metrics and the log, once."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.seen: dict[str, int] = {}

    def check(self, name: str, query: StreamingQuery) -> None:
        """Observe the micro-batches that have finished since the last call; raises the exception of a failed query."""
        if (failure := query.exception()) is None:
            return self._observe(name, query)
        cause = self.gate.failure or failure
        if isinstance(cause, ProgressError):
            raise UserError(str(cause)) from cause
        if refusal := _refusal(str(cause)):
            raise UserError(f"{name}: {refusal}") from cause
        raise cause

    def _observe(self, name: str, query: StreamingQuery) -> None:
        last, seen = query.lastProgress, self.seen.get(name, -1)
        # To ask for all recent progress at each check took a tenth of the chain's CPU time.
        if last is None or last["batchId"] <= seen:
            return
        for progress in query.recentProgress:
            if progress["batchId"] <= seen or "triggerExecution" not in progress["durationMs"]:
                continue
            self.seen[name] = progress["batchId"]
            worked = _worked(progress, self.gate.waited(name, progress["batchId"]))
            metrics.observe_progress(job_of(name), name, worked)
            if dropped := metrics.dropped_rows(progress):
                raise DroppedRowsError(
                    f"{name}: Spark's watermark dropped {dropped} rows of batch {progress['batchId']}: event time is "
                    "judged by watermark records (docs/explanation/event-time.md); take the watermark out of the "
                    "query, or raise its delay"
                )
            if progress["numInputRows"]:
                self._log(name, worked)

    def _log(self, name: str, progress: Any) -> None:
        log.info(
            "batch",
            job=job_of(name),
            query=name,
            batch=progress["batchId"],
            rows=progress["numInputRows"],
            milliseconds=progress["durationMs"],
        )


def _worked(progress: Mapping[str, Any], waited: float) -> dict[str, Any]:
    """A micro-batch's progress without the seconds in which it did nothing, within `foreachBatch`."""
    spent = progress["durationMs"]
    worked = {
        part: max(0, spent[part] - round(1000 * waited)) for part in ("addBatch", "triggerExecution") if part in spent
    }
    return {**progress, "durationMs": {**spent, **worked}}


def _refusal(failure: str) -> str | None:
    """What only a person can mend, out of the text of Spark's error: what a fold has refused in a Python worker by a
    UserError, or a right that the Kafka clients of the JVM lack."""
    if denied := _DENIED.search(failure):
        return f"lacks a right in Kafka: {denied[1]}; `kappa acl` lists what each job needs"
    kinds: list[type[Exception]] = [UserError, *_subclasses(UserError)]
    names = "|".join(kind.__name__ for kind in kinds)
    found = re.search(rf"\b(?:{names}): (.+)", failure)
    return found[1] if found else None


def _subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


def _drain(application: str, queries: Mapping[str, StreamingQuery], gate: Gate, settings: Settings) -> None:
    """Stop the queries once their running micro-batches have ended, at the latest after settings.drain_seconds."""
    gate.close()
    began = time.monotonic()
    while time.monotonic() - began < settings.drain_seconds and any(
        _is_busy(name, query, gate) for name, query in queries.items()
    ):
        time.sleep(0.1)
    gate.release()
    for query in queries.values():
        query.stop()
    log.info("stopped", application=application, waited_seconds=round(time.monotonic() - began, 1))


def _is_busy(name: str, query: StreamingQuery, gate: Gate) -> bool:
    return bool(query.isActive and query.status["isTriggerActive"] and name not in gate.held)

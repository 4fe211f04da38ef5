"""The view of the chain: its jobs as a graph and a table, with the lag and what is wrong."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from infra.contract.jobs import Job
from infra.contract.topics import TopicMap
from jobs.table import JOBS
from ops.console.reads import SourceDown
from ops.console.running_jobs import Sample
from ops.console.sources import Sources
from ops.console.views.graph import Graph, layout
from ops.console.views.health import JobMetrics, problems
from ops.console.views.sites import sites
from ops.job_addresses import ALL

View = dict[str, Any]


def chain(sources: Sources) -> View:
    """Each query of the running jobs, with its last hour; `down` names the sources that can't be read."""
    view = now(sources)
    return view | {"queries": [row | sources.history.of(row["query"]) for row in view["queries"]]}


def now(sources: Sources) -> View:
    """Each query of the running jobs, and each site, as it is now."""
    topics = sources.topics()
    jobs = [JOBS[name] for name in JOBS.enabled(sources.settings.optional_jobs)]
    down: list[dict[str, str]] = []
    # Together: each that hangs takes its whole patience.
    with ThreadPoolExecutor() as threads:
        lag = threads.submit(_lags, sources, down)
        samples = dict(threads.map(lambda name: (name, _samples(sources, name, down)), sources.running.applications))
        lags = lag.result()
    found = sites(samples.get(_process(sources, JOBS["statistics"])) or [])
    rows = [row for job in jobs for row in _rows(job, topics, lags, samples.get(_process(sources, job)))]
    return {
        "generation": sources.settings.generation,
        "queries": rows,
        "sites": found,
        "wrong": sum(bool(one["problems"]) for one in (*rows, *found)),
        "down": sorted(down, key=lambda one: one["source"]),
    }


def graph(view: View, topics: TopicMap) -> Graph:
    """The chain's graph: a node for each job of the view."""
    names = list(dict.fromkeys(row["job"] for row in view["queries"]))
    return layout([JOBS[name] for name in names], topics)


def _process(sources: Sources, job: Job) -> str:
    """The application whose `/metrics` has a job."""
    return ALL if ALL in sources.running.applications else job.runs_in


def _lags(sources: Sources, down: list[dict[str, str]]) -> dict[str, int]:
    try:
        return sources.lags()
    except SourceDown as error:
        down.append({"source": error.source, "reason": error.reason})
        return {}


def _samples(sources: Sources, application: str, down: list[dict[str, str]]) -> list[Sample] | None:
    try:
        return sources.running.samples(application)
    except SourceDown as error:
        down.append({"source": error.source, "reason": error.reason})
        return None


def _rows(job: Job, topics: TopicMap, lags: dict[str, int], samples: list[Sample] | None) -> list[View]:
    return [_row(job, query, topics, lags.get(query), samples) for query in job.reads_of(topics)]


def _row(job: Job, query: str, topics: TopicMap, lag: int | None, samples: list[Sample] | None) -> View:
    metrics = None if samples is None else JobMetrics.of(samples, job.runs_in, job.name, query, job.sink)
    last = metrics.last_batch if metrics else None
    return {
        "job": job.name,
        "query": query,
        "application": job.runs_in,
        "reads": [topic.name for topic in job.reads_of(topics)[query]],
        "writes": [topics[key].name for key in job.writes] if job.sink == "kafka" else [job.sink],
        "lag": lag,
        "metrics": metrics and asdict(metrics),
        "last_batch_age": None if last is None else max(0.0, time.time() - last),
        "problems": [one.as_dict() for one in problems(lag, metrics)],
    }

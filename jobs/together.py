"""All jobs in one process, for a small machine: one JVM and one set of Python workers in place of four."""

import threading
from collections import ChainMap
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

from jobs.chain import topics_of
from jobs.indexer import indexer
from jobs.runtime.job import Context
from jobs.runtime.preflight import check_surroundings
from jobs.runtime.runner import Gate, Queries, run_queries
from jobs.runtime.settings import Settings

SPARK_JOBS = ("enrichment", "statistics", "detector", "archive")


def run(settings: Settings, stop: threading.Event) -> None:
    """Run Spark's jobs as queries of one application, and the indexer in a thread, until `stop`.

    Checkpoints are those of the jobs run apart, so a chain can change between the two. Raises what the first of them
    failed with; UserError if their surroundings are not fit.
    """

    def index() -> None:
        try:
            indexer.run(settings, topics, stop)
        finally:
            stop.set()

    topics = topics_of(settings)
    check_surroundings(settings, topics, stop)
    with ThreadPoolExecutor(1) as beside:
        indexing = beside.submit(index)
        try:
            run_queries("all", _start, settings, topics, stop)
        finally:
            stop.set()
    indexing.result()


def _start(context: Context, gate: Gate) -> Queries:
    """The queries of all jobs, each named after its job."""
    return dict(ChainMap(*(import_module(f"jobs.{job}.job").start(context, gate) for job in SPARK_JOBS)))

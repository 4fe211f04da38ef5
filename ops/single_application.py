"""All jobs in one process, for a small machine: one JVM and one set of Python workers in place of four."""

import threading
from collections import ChainMap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib import import_module

from infra.contract.topics import load_topics
from jobs.indexer import indexer
from jobs.runtime.job import Context
from jobs.runtime.preflight import check_surroundings
from jobs.runtime.runner import Gate, Queries, run_queries
from jobs.runtime.settings import Settings
from ops.launcher import planned, registry_for
from ops.replay.registry import Registry

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

    registry = registry_for(settings, stop)
    topics = registry.topics(settings.generation, load_topics(settings.topics_file))
    check_surroundings(settings, topics, stop)
    with ThreadPoolExecutor(1) as beside:
        indexing = beside.submit(index)
        try:
            run_queries("all", partial(_start, registry), settings, topics, stop)
        finally:
            stop.set()
    indexing.result()


def _start(registry: Registry, context: Context, gate: Gate) -> Queries:
    """The queries of all jobs of the generation, each named after its job."""
    generation = registry.generations.get(context.settings.generation)
    jobs = [job for job in SPARK_JOBS if generation is None or job in generation.jobs]
    contexts = {job: replace(context, settings=planned(job, context.settings, registry)) for job in jobs}
    return dict(ChainMap(*(import_module(f"jobs.{job}.job").start(contexts[job], gate) for job in jobs)))

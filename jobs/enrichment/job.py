"""The declaration of the enrichment job."""

from collections import defaultdict
from collections.abc import Callable
from functools import partial, reduce
from importlib import import_module

from pyspark.sql import DataFrame

from jobs.enrichment.inventory import InventoryTable
from jobs.enrichment.transform import enrich
from jobs.runtime.job import Context, Job
from jobs.runtime.runner import run_job


def _build(context: Context) -> DataFrame:
    """Each format's topics through its decoder, all in one stream."""
    by_format: dict[str, list[str]] = defaultdict(list)
    for topic in context.topics.telemetry:
        assert topic.format
        by_format[topic.format].append(topic.name)
    decoded = [_decoder(name)(context.stream(*topics)) for name, topics in by_format.items()]
    return reduce(DataFrame.unionByName, decoded)


def _decoder(name: str) -> Callable[[DataFrame], DataFrame]:
    decode: Callable[[DataFrame], DataFrame] = import_module(f"connectors.sources.{name}").decode
    return decode


def _finish(context: Context) -> Callable[[DataFrame], DataFrame]:
    inventory = InventoryTable(context.spark, context.settings.kafka_bootstrap, context.topics["inventory"].name)
    return lambda decoded: enrich(decoded, inventory.frame(), context.topics)


JOB = Job(
    name="enrichment",
    reads=lambda topics: (*(topic.name for topic in topics.telemetry), "inventory"),
    writes=("events", "events.late", "events.rejected"),
    build=_build,
    finish=_finish,
    ticks="events",
)

run = partial(run_job, JOB)

"""The declaration of the enrichment job."""

from collections import defaultdict
from functools import partial, reduce

from pyspark.sql import DataFrame

from connectors.sources import decoder
from jobs.enrichment.inventory import InventoryTable
from jobs.enrichment.transform import enrich
from jobs.runtime.job import Context, Finish, Job
from jobs.runtime.runner import run_job, start_job


def _build(context: Context) -> DataFrame:
    """Each format's topics as a source of its own, through its decoder. One without new records costs nothing."""
    by_format: dict[str, list[str]] = defaultdict(list)
    for topic in context.topics.telemetry:
        assert topic.format
        by_format[topic.format].append(topic.name)
    decoded = [decoder(name)(context.stream(name, *topics)) for name, topics in by_format.items()]
    return reduce(DataFrame.unionByName, decoded)


def _finish(context: Context) -> Finish:
    topics = context.topics
    inventory = InventoryTable(context.spark, context.settings.kafka_bootstrap, topics["inventory"].name)
    return lambda decoded: enrich(decoded, inventory.frame(), topics)


JOB = Job(
    name="enrichment",
    reads=lambda topics: (*(topic.name for topic in topics.telemetry), "inventory"),
    writes=("events", "events.late", "events.rejected"),
    build=_build,
    finish=_finish,
    ticks="events",
)

start = partial(start_job, JOB)
run = partial(run_job, JOB)

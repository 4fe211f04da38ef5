"""The declaration of the enrichment job."""

from collections.abc import Mapping
from functools import partial, reduce

from pyspark.sql import DataFrame

from connectors.decoders.registry import decoder_of
from infra.contract.topics import TopicMap
from jobs.enrichment.coalesce import gathered
from jobs.enrichment.inventory import InventoryTable
from jobs.enrichment.retry import TOPIC as RETRY
from jobs.enrichment.retry import decode_retried, topics_by_format
from jobs.enrichment.transform import enrichment
from jobs.runtime.job import Context, Finish, Job
from jobs.runtime.runner import run_job, start_job


def _build(context: Context) -> DataFrame:
    """Each format's topics as a source of its own, through its decoder. One without new records costs nothing."""
    sources, formats = _sources(context.topics), topics_by_format(context.topics.telemetry)
    decoded = [decoder_of(name).decode(context.stream(name, *sources[name])) for name in formats]
    own = context.own()  # what was sent again

    def retried(name: str) -> DataFrame:
        source = f"retry_{name}"
        return own.stream(source, *sources[source], headers=True)

    rows = [*(frame.drop("headers") for frame in decoded), decode_retried(retried, context.topics)]
    return reduce(DataFrame.unionByName, rows)


def _finish(context: Context) -> Finish:
    topics = context.topics
    inventory = InventoryTable(context.spark, context.settings.kafka_bootstrap, topics["inventory"].name)
    enrich = enrichment(topics, gathered)
    return lambda decoded: enrich(decoded, inventory.frame())


def _sources(topics: TopicMap) -> Mapping[str, tuple[str, ...]]:
    by_format = {name: tuple(names) for name, names in topics_by_format(topics.telemetry).items()}
    return {**by_format, **{f"retry_{name}": (topics[RETRY].name,) for name in (*by_format, "events")}}


JOB = Job(
    name="enrichment",
    sources=_sources,
    build=_build,
    finish=_finish,
    watermarks="events",
)

start = partial(start_job, JOB)
run = partial(run_job, JOB)

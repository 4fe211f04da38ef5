"""The declaration of the enrichment job."""

from collections import defaultdict
from collections.abc import Set as AbstractSet
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.sources import decoder
from infra.topics import TopicMap
from jobs.enrichment.inventory import InventoryTable
from jobs.enrichment.transform import enrich
from jobs.runtime.job import Context, Finish, Job
from jobs.runtime.runner import run_job


def _build(context: Context) -> DataFrame:
    """All telemetry as one source: by topic, its offsets stay valid when a format is added to the map."""
    return context.stream(*(topic.name for topic in context.topics.telemetry))


def _finish(context: Context) -> Finish:
    topics = context.topics
    inventory = InventoryTable(context.spark, context.settings.kafka_bootstrap, topics["inventory"].name)

    def finish(kafka: DataFrame, present: frozenset[str]) -> DataFrame:
        return enrich(decode(kafka, topics, present), inventory.frame(), topics)

    return finish


def decode(kafka: DataFrame, topics: TopicMap, present: AbstractSet[str]) -> DataFrame:
    """Kafka's rows through their topics' decoders. Only formats that are present cost anything.

    Each of them reads the batch again: reading is cheap beside decoding.
    """
    present = present or {topics.telemetry[0].name}  # Spark's first batch may be empty
    by_format: dict[str, list[str]] = defaultdict(list)
    for topic in topics.telemetry:
        if topic.format and topic.name in present:
            by_format[topic.format].append(topic.name)
    frames = [decoder(name)(kafka.where(F.col("topic").isin(*names))) for name, names in by_format.items()]
    return reduce(DataFrame.unionByName, frames)


JOB = Job(
    name="enrichment",
    reads=lambda topics: (*(topic.name for topic in topics.telemetry), "inventory"),
    writes=("events", "events.late", "events.rejected"),
    build=_build,
    finish=_finish,
    ticks="events",
)

run = partial(run_job, JOB)

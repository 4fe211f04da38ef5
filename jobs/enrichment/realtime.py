"""`kappa run enrichment --realtime`: events within milliseconds instead of a micro-batch later, at least once.

Spark's real-time trigger keeps its tasks running over a long batch and writes each record as it comes. It runs neither
Python nor `foreachBatch`, so this mode has only the decoders that need no Python (no protobuf), the same
transform, and Spark's own Kafka sink: at least once, without watermark records, and with the time of writing as Kafka
timestamp. docs/explanation/real-time.md says what follows from it.
"""

import threading
from collections.abc import Mapping, Sequence
from functools import reduce

import orjson
from pydantic_settings import BaseSettings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType

from connectors.decoders.registry import decoder_of
from infra.contract.topics import Topic, TopicMap
from jobs.enrichment.identity import has_headers, with_principal
from jobs.enrichment.inventory import SCHEMA, Fact, read_facts, rows
from jobs.enrichment.retry import topics_by_format
from jobs.enrichment.settings import EnrichmentSettings
from jobs.enrichment.transform import enrichment
from jobs.runtime.job import Context
from jobs.runtime.metrics import MetricsServer
from jobs.runtime.runner import Queries, run_queries, unhealthy
from jobs.runtime.settings import Settings

NAME = "enrichment-realtime"


def run(settings: Settings, topics: TopicMap, stop: threading.Event, own: BaseSettings | None) -> None:
    """Run the real-time query until `stop` is set. Blocks. Raises the exception that the query failed with."""
    settings = _with_a_core_for_each_partition(settings, topics)
    queries: Queries = {}
    with MetricsServer(settings, lambda: unhealthy(queries)):
        run_queries(NAME, lambda spark, _: start(Context(spark, settings, topics, own)), settings, queries, stop)


def start(context: Context) -> Queries:
    """Start the query of this mode; returns it by its name."""
    settings = context.settings
    writer = (
        records(context)
        .writeStream.queryName(settings.query_of(NAME))
        .format("kafka")
        .option("kafka.bootstrap.servers", settings.kafka_bootstrap)
        .options(**settings.spark())
        .option("kafka.compression.type", "lz4")
        .option("kafka.max.request.size", 10_000_000)
        .option("checkpointLocation", settings.checkpoint_of(NAME))
        .outputMode("update")
        .trigger(realTime=f"{settings.realtime_batch_seconds} seconds")  # type: ignore[call-overload]
    )
    return {NAME: writer.start()}


def records(context: Context) -> DataFrame:
    """The enriched records as Spark's Kafka sink takes them: columns topic, key, value, headers."""
    read = readable(context.topics)
    decoded = [
        with_principal(
            decoder_of(name).decode(context.stream(name, topics, headers=has_headers(topics), bounded=False)), read
        )
        for name, topics in topics_by_format(read).items()
    ]
    facts = read_facts(context.settings.kafka_bootstrap, context.topics["inventory"].name)
    assert isinstance(context.own, EnrichmentSettings)
    enrich = enrichment(context.topics, settings=context.own)
    # Without decisions on lateness: what runs for ever can't take new ones.
    enriched = enrich(reduce(DataFrame.unionByName, decoded), inventory(context.spark, facts))
    return enriched.select("topic", "key", "value", "headers")


def readable(topics: TopicMap) -> list[Topic]:
    """The telemetry topics whose decoder needs no Python: those that this mode can read."""
    return [topic for topic in topics.telemetry if topic.format and not decoder_of(topic.format).needs_python]


def inventory(spark: SparkSession, facts: Mapping[str, Sequence[Fact]]) -> DataFrame:
    """The inventory (columns: SCHEMA) as a literal in the plan: the real-time mode can't join with a cached table."""
    parsed = F.from_json(F.lit(orjson.dumps(rows(facts)).decode()), ArrayType(from_arrow_schema(SCHEMA)))
    return spark.range(1).select(F.inline(parsed))


def _with_a_core_for_each_partition(settings: Settings, topics: TopicMap) -> Settings:
    """The settings with a thread for each partition on a local master: a real-time task reads a single partition."""
    if not settings.spark_master.startswith("local"):
        return settings
    partitions = sum(topic.partitions for topic in readable(topics))
    return settings.model_copy(update={"spark_master": f"local[{partitions + 1}]"})

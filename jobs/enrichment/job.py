"""The declaration of the enrichment job: its streams, and what is made of each micro-batch of their records."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.prepared import Prepared
from infra.contract.retries import TOPIC as RETRY
from infra.contract.topics import Topic, TopicMap
from jobs.enrichment.coalesce import coalesced
from jobs.enrichment.decode import BatchDecoder
from jobs.enrichment.identity import has_headers
from jobs.enrichment.inventory import InventoryTable
from jobs.enrichment.retry import topics_by_format
from jobs.enrichment.settings import EnrichmentSettings
from jobs.enrichment.transform import enrichment
from jobs.runtime.job import BatchTransform, Context, Transform

_KAFKA = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
_RETRIED = "retry_events"


def _streams(topics: TopicMap) -> dict[str, tuple[Topic, ...]]:
    """The topics of each stream by its name: one for each wire format, and one of retried dead letters.

    So the backlog of one format doesn't hold up the others: each stream has its part of a micro-batch.
    """
    return {**topics_by_format(topics.telemetry), _RETRIED: (topics[RETRY],)}


def _build(context: Context) -> DataFrame:
    """The records of all streams as they stand in Kafka.

    They are decoded in each micro-batch, by plans that are kept: as part of the streams, the decoders of all formats
    would be planned for each micro-batch anew.
    """
    streams = _streams(context.topics)
    retried = context.without_replay().stream(_RETRIED, streams.pop(_RETRIED), headers=True)
    rows = [context.stream(name, topics, headers=has_headers(topics)) for name, topics in streams.items()]
    return reduce(DataFrame.unionByName, [_with_headers(frame) for frame in (*rows, retried)])


def _with_headers(rows: DataFrame) -> DataFrame:
    """Kafka's columns; headers that nobody needs are null."""
    if "headers" not in rows.columns:
        rows = rows.withColumn("headers", F.lit(None).cast("array<struct<key:string,value:binary>>"))
    return rows.select(*_KAFKA)


def _each_batch(context: Context) -> BatchTransform:
    """The transform of a micro-batch: decode the rows, and enrich them by inventory and lateness as they are now."""
    topics, lateness = context.topics, context.lateness
    inventory = InventoryTable(context.spark, context.settings.kafka_bootstrap, topics["inventory"].name)
    assert isinstance(context.own, EnrichmentSettings) and lateness
    decode = BatchDecoder(topics, context.settings.replay.subscribed)
    enrich = enrichment(topics, coalesced, context.own, Prepared)
    return lambda rows: enrich(decode(rows), inventory.frame(), lateness.catch_up().decisions)


TRANSFORM = Transform(_streams, _build, _each_batch)

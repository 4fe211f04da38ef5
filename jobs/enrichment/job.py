"""The declaration of the enrichment job: its streams, how they are decoded, and the transform of each micro-batch."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.decoders.registry import decoder_of
from connectors.prepared import Prepared
from infra.contract.dead_letters import REJECTED_BYTES
from infra.contract.retries import TOPIC as RETRY
from infra.contract.topics import TopicMap
from jobs.enrichment.coalesce import coalesced
from jobs.enrichment.identity import has_headers, with_principal
from jobs.enrichment.inventory import InventoryTable
from jobs.enrichment.retry import decode_retried, topics_by_format
from jobs.enrichment.settings import EnrichmentSettings
from jobs.enrichment.transform import enrichment
from jobs.runtime.job import BatchTransform, Context, Sources, Transform


def _streams(topics: TopicMap) -> Sources:
    """The topics of each stream by its name.

    There is one for each wire format. Retried dead letters have one for each format, and one for those that had been
    decoded before they were rejected.
    """
    by_format = topics_by_format(topics.telemetry)
    return {**by_format, **{f"retry_{name}": (topics[RETRY],) for name in (*by_format, "events")}}


def _build(context: Context) -> DataFrame:
    """Decode each stream by its format and unite them; a stream without new records costs nothing."""
    streams, telemetry = _streams(context.topics), context.topics.telemetry
    decoded = [
        decoder_of(name).decode(context.stream(name, streams[name], headers=has_headers(topics)))
        for name, topics in topics_by_format(telemetry).items()
    ]
    retries = context.without_replay()

    def retried(name: str) -> DataFrame:
        source = f"retry_{name}"
        return retries.stream(source, streams[source], headers=True)

    rows = [*decoded, decode_retried(retried, context.topics)]
    return reduce(DataFrame.unionByName, [_lighter(with_principal(frame, telemetry)) for frame in rows])


def _lighter(decoded: DataFrame) -> DataFrame:
    """With as many bytes of a record that could not be decoded as its dead letter has.

    Each step that follows holds a copy or two of them.
    """
    return decoded.withColumn("value", F.substring("value", 1, REJECTED_BYTES))


def _each_batch(context: Context) -> BatchTransform:
    """The transform of a micro-batch: enrich the decoded rows with the inventory as it is now."""
    topics = context.topics
    inventory = InventoryTable(context.spark, context.settings.kafka_bootstrap, topics["inventory"].name)
    assert isinstance(context.own, EnrichmentSettings)
    enrich = enrichment(topics, coalesced, context.own, Prepared)
    return lambda decoded: enrich(decoded, inventory.frame())


TRANSFORM = Transform(_streams, _build, _each_batch)

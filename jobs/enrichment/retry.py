"""The redrive of dead letters: how enrichment reads what `kappa rejected retry` has written to `events.retry`.

Each record of that topic has the Kafka timestamp of the original record, and headers with the original topic, partition
and offset. So ids and lateness come out as they would have at first. Only `kappa rejected retry` writes the topic: on
the telemetry topics, such headers would let any collector choose its own clock.
"""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from connectors.decoders import columns
from connectors.decoders.registry import decoder_of
from infra.contract.retries import EVENTS_ONLY, PART, SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC
from infra.contract.schemas import DECODED, EVENTS
from infra.contract.topics import Topic, TopicMap


def decode_retried(sent: DataFrame, topics: TopicMap) -> DataFrame:
    """The rows of `events.retry`, decoded as if they came from their original topics: Kafka's columns, schemas.DECODED.

    `sent` are the topic's rows, with headers; each decoder reads them once, and they are few.
    """
    rows = _restored(sent)
    formats = [
        decoder_of(name).decode(rows.where(~_is_events() & F.col("topic").isin(names_of(spoken))))
        for name, spoken in topics_by_format(topics.telemetry).items()
    ]
    known = F.coalesce(F.col("topic").isin(names_of(topics.telemetry)), F.lit(False))
    others = _events(rows.where(_is_events() | ~known), known)
    part = _header(PART).try_cast("int")
    wanted = part.isNull() | F.col("batch").isNull() | (F.col("batch") == part)
    return (
        reduce(DataFrame.unionByName, [*formats, others])
        .where(wanted)
        .withColumn("retried", F.lit(True))
        .drop("headers")
    )


def _restored(df: DataFrame) -> DataFrame:
    """Kafka's columns as the original record had them, from the headers."""
    return df.select(
        "key",
        "value",
        F.coalesce(_header(SOURCE_TOPIC), F.col("topic")).alias("topic"),
        F.coalesce(_header(SOURCE_PARTITION).try_cast("int"), F.col("partition")).alias("partition"),
        F.coalesce(_header(SOURCE_OFFSET).try_cast("bigint"), F.col("offset")).alias("offset"),
        "timestamp",
        "timestampType",
        "headers",
    )


def _is_events() -> Column:
    return _header(EVENTS_ONLY).isNotNull()


def topics_by_format(telemetry: Iterable[Topic]) -> dict[str, tuple[Topic, ...]]:
    """The telemetry topics of each wire format, by the format's name."""
    found: dict[str, tuple[Topic, ...]] = {}
    for topic in telemetry:
        assert topic.format
        found[topic.format] = (*found.get(topic.format, ()), topic)
    return found


def names_of(topics: Iterable[Topic]) -> list[str]:
    """The names of topics, in their order."""
    return [topic.name for topic in topics]


def _header(name: str) -> Column:
    return F.try_element_at(F.map_from_entries("headers"), F.lit(name)).cast("string")


def _events(df: DataFrame, known: Column) -> DataFrame:
    """Rows of dead letters that had been decoded; one that `kappa rejected retry` did not write gets an error code."""
    batch = F.from_json(F.col("value").cast("string"), EVENTS.simpleString())
    decoded = {
        "batch": F.element_at(F.split(batch["id"], "-"), -1).try_cast("int"),
        "machine": batch["machine"],
        "kind": batch["kind"],
        "resource": batch["resource"],
        "events": F.when(known & batch["events"].isNotNull(), columns.event_rows(batch["events"])),
        "error": F.when(~known, "not_telemetry").when(batch["events"].isNull(), "not_events"),
    }
    return df.select(
        *df.columns,
        *(decoded.get(name, F.lit(None)).cast(DECODED[name].dataType).alias(name) for name in DECODED.names),
    )

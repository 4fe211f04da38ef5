"""What the same records cost if nothing is done with them: the distance of each stage to the limit."""

import time
from collections.abc import Callable

from confluent_kafka.admin import NewTopic
from pyspark.sql import DataFrame

from connectors.decoders.registry import decoder_of
from connectors.kafka.admin import connect
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings

TARGET = "bench.limit"


def measure(settings: Settings, topic: str, wire_format: str) -> dict[str, float]:
    """Seconds to read all of `topic` with Spark: plain, decoded, and decoded and written by Spark's sink."""
    admin = connect(settings.kafka_bootstrap)
    admin.create_topics([NewTopic(TARGET, 4)])[TARGET].result(30)
    spark = open_session("bench.limit", settings)
    try:
        kafka = (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", settings.kafka_bootstrap)
            .option("subscribe", topic)
            .load()
        )
        decoded = decoder_of(wire_format).decode(kafka)
        ways: dict[str, Callable[[], None]] = {
            "read": lambda: drop(kafka),
            "read, decode": lambda: drop(decoded),
            "read, decode, write": lambda: write(decoded, settings.kafka_bootstrap),
        }
        drop(decoded)  # warms up
        return {name: timed(way) for name, way in ways.items()}
    finally:
        spark.stop()


def drop(frame: DataFrame) -> None:
    """Compute every column and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def write(decoded: DataFrame, bootstrap: str) -> None:
    """The events, as they are rendered, to a topic by Spark's own sink."""
    (
        decoded.selectExpr("machine AS key", "coalesce(json, to_json(events)) AS value")
        .write.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.compression.type", "lz4")
        .option("topic", TARGET)
        .save()
    )


def timed(way: Callable[[], None]) -> float:
    """Seconds."""
    began = time.monotonic()
    way()
    return time.monotonic() - began

"""The enrichment job inside a test: its query on topics of the test's own, and what it wrote."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import orjson
from pyspark.sql import SparkSession

from connectors.kafka.admin import apply, connect
from connectors.kafka.reader import read_topic
from infra.contract.topics import TopicMap, load_topics
from jobs.enrichment.job import TRANSFORM
from jobs.enrichment.settings import EnrichmentSettings
from jobs.runtime.gate import Gate
from jobs.runtime.job import Context
from jobs.runtime.query import start_query
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from tests.waiting import until

DEADLINE_SECONDS = 200
T = TypeVar("T")


@contextmanager
def own_map(bootstrap: str, partitions: int = 1, **telemetry: object) -> Iterator[TopicMap]:
    """The whole map under a prefix, created on the broker; `telemetry` are changes of the collectors' topics."""
    prefix, declared = f"test-{uuid.uuid4().hex[:8]}.", load_topics()
    mapped = TopicMap(
        {
            key: topic.model_copy(
                update={"name": prefix + topic.name, "partitions": partitions, **(telemetry if topic.format else {})}
            )
            for key, topic in declared.topics.items()
        }
    )
    admin = connect(bootstrap)
    apply(admin, mapped)
    apply(admin, TopicMap({"sink.progress": declared["sink.progress"]}))  # the sinks know it by this name
    yield mapped
    for deletion in admin.delete_topics([topic.name for topic in mapped]).values():
        deletion.result()


@contextmanager
def running_enrichment(spark: SparkSession, bootstrap: str, topics: TopicMap, home: Path) -> Iterator[str]:
    """The job, until the block ends; with the same `home` it goes on where it stopped. Gives its consumer group."""
    generation = f"t{uuid.uuid5(uuid.NAMESPACE_URL, str(home)).hex[:8]}"
    settings = Settings(kafka_bootstrap=bootstrap, home=home, generation=generation, trigger_seconds=0.2)
    context = Context(spark, settings, topics, EnrichmentSettings())
    (declared,) = TRANSFORM.queries(JOBS["enrichment"], context)
    query = start_query(declared, context, Gate())
    try:
        yield settings.query_of(declared.name)
    finally:
        query.stop()


def records_of(bootstrap: str, topic: str) -> list[dict]:
    """The topic's records as they stand, watermarks left out."""
    records = [orjson.loads(message.value()) for message in read_topic(bootstrap, topic)]
    return [record for record in records if "watermark_unix_nano" not in record]


def wait_for(found: Callable[[], T]) -> T:
    """What `found` gives once it is true."""
    return until(found, DEADLINE_SECONDS, "it did not come")

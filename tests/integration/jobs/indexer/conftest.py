"""A generation for a test of the indexer, and what Kafka and Elasticsearch hold of it."""

import multiprocessing
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from elasticsearch import Elasticsearch

from connectors.kafka import admin
from connectors.sinks.elasticsearch import connect
from infra.contract.columnar import to_columns
from infra.contract.topics import TopicMap, load_topics
from jobs.indexer.index_names import index_of
from jobs.indexer.indexer import run
from jobs.indexer.settings import IndexerSettings
from jobs.runtime.settings import Settings
from jobs.table import JOBS

DEADLINE_SECONDS = 120.0
SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND


def window(machine: str, number: int, **fields: Any) -> dict[str, Any]:
    """A statistics record with two series."""
    end = START + (number + 1) * 10 * SECOND
    series = [
        {"series": "load", "name": "load", "kind": "metric", "count": 4, "sum": 2.0, "mean": 0.5, **fields},
        {
            "series": "cpu{state=idle}",
            "name": "cpu",
            "kind": "metric",
            "attributes": {"state": "idle"},
            "count": 4,
            "mean": 0.25,
        },
    ]
    return {
        "id": f"{machine}-{number}",
        "machine": machine,
        "inventory": {"known": True, "type": "virtual", "site": "north", "hypervisor": "hv-1", "role": "amf"},
        "window": {
            "kind": "tumbling",
            "size_seconds": 60.0,
            "start_unix_nano": end - 60 * SECOND,
            "end_unix_nano": end,
        },
        "statistics": to_columns(series),
    }


class Chain:
    """A generation of its own: its topics, its indices, and an indexer between them."""

    def __init__(self, bootstrap: str, elasticsearch_url: str) -> None:
        self.generation = f"idx-test-{uuid.uuid4().hex[:8]}"
        self.settings = Settings(
            kafka_bootstrap=bootstrap, elasticsearch_url=elasticsearch_url, generation=self.generation
        )
        self.own = IndexerSettings()
        self.topics: TopicMap = JOBS.topics_in(load_topics(), self.generation)
        self.producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 10_000_000})
        self.elasticsearch: Elasticsearch = connect(elasticsearch_url)
        self.written = list(self.topics.indexed)
        admin.apply(admin.connect(bootstrap), self.written)
        poll_until(self._led, "each partition has its leader")

    def send(self, topic: str, *records: Any, key: str | None = None) -> None:
        """Write records; raw bytes go as they are."""
        for record in records:
            value = record if isinstance(record, bytes) else orjson.dumps(record)
            self.producer.produce(self.topics[topic].name, value=value, key=key or record["machine"])
        assert self.producer.flush(30) == 0

    @property
    def environment(self) -> dict[str, str]:
        """What `kappa run indexer` needs to work on it."""
        return {
            "KAPPA_KAFKA_BOOTSTRAP": self.settings.kafka_bootstrap,
            "KAPPA_ELASTICSEARCH_URL": self.settings.elasticsearch_url,
            "KAPPA_GENERATION": self.generation,
            "KAPPA_METRICS_PORT": "0",
        }

    @contextmanager
    def indexer(self) -> Iterator[Future[None]]:
        """An indexer at work; when the block ends it is told to stop and must end in order."""
        stop = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run, self.settings, self.own, self.topics, stop)
            try:
                yield running
            finally:
                stop.set()
                running.result(DEADLINE_SECONDS)

    @contextmanager
    def process(self) -> Iterator[BaseProcess]:
        """An indexer in a process of its own, killed by SIGKILL when the block ends."""
        spawning = multiprocessing.get_context("spawn")
        never = spawning.Event()  # a name of its own: the child finds it only while it lives here
        process = spawning.Process(target=run, args=(self.settings, self.own, self.topics, never))
        process.start()
        try:
            yield process
        finally:
            process.kill()
            process.join()

    def forget_positions(self) -> None:
        """Set the group back to the beginning of every topic."""
        with reader(self.settings.kafka_bootstrap, self.settings.query_of("indexer")) as consumer:
            places = [place for topic in self.written for place in partitions(consumer, topic.name)]
        group = ConsumerGroupTopicPartitions(self.settings.query_of("indexer"), places)
        administrator = admin.connect(self.settings.kafka_bootstrap)

        def altered() -> bool:
            (answer,) = administrator.alter_consumer_group_offsets([group]).values()
            return answer.exception() is None

        poll_until(altered, "the group is empty")

    def documents(self, kind: str) -> dict[str, dict[str, Any]]:
        """All documents of a kind by id."""
        index = index_of(kind, self.generation)
        if not self.elasticsearch.indices.exists(index=index):
            return {}
        self.elasticsearch.indices.refresh(index=index)
        found = self.elasticsearch.search(index=index, size=10_000, version=True)["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in found}

    def count(self, kind: str) -> int:
        """How many documents of a kind there are."""
        index = index_of(kind, self.generation)
        self.elasticsearch.indices.refresh(index=index)
        return int(self.elasticsearch.count(index=index)["count"])

    def settled(self) -> bool:
        """Whether the indexer has committed everything up to the end of each topic."""
        try:
            return not any(self.lags())
        except KafkaException:  # the broker is on its way
            return False

    def _led(self) -> bool:
        try:
            return bool(self.lags())
        except KafkaException:
            return False

    def lags(self) -> list[int]:
        with reader(self.settings.kafka_bootstrap, self.settings.query_of("indexer")) as consumer:
            places = [place for topic in self.written for place in partitions(consumer, topic.name)]
            committed = consumer.committed(places, timeout=30)
            ends = [consumer.get_watermark_offsets(place, timeout=30)[1] for place in places]
        return [end - max(0, place.offset) for place, end in zip(committed, ends, strict=True)]

    def ends(self, topic: str) -> list[TopicPartition]:
        """The end of each partition of a topic, by its name on the broker."""
        with reader(self.settings.kafka_bootstrap, uuid.uuid4().hex) as consumer:
            return [
                TopicPartition(topic, place.partition, consumer.get_watermark_offsets(place, timeout=30)[1])
                for place in partitions(consumer, topic)
            ]

    def records(self, topic: str) -> list[dict[str, Any]]:
        """Every committed record of a topic."""
        with reader(self.settings.kafka_bootstrap, uuid.uuid4().hex) as consumer:
            places = partitions(consumer, self.topics[topic].name)
            consumer.assign(places)
            found, open_ends = [], len(places)
            while open_ends:
                message = consumer.poll(30)
                assert message is not None, "the topic's end was not reached"
                if message.error():
                    assert message.error().code() == KafkaError._PARTITION_EOF
                    open_ends -= 1
                else:
                    found.append(orjson.loads(message.value()))
        return found


@contextmanager
def reader(bootstrap: str, group: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def partitions(consumer: Consumer, topic: str) -> list[Any]:
    return [TopicPartition(topic, number, 0) for number in consumer.list_topics(topic, 30).topics[topic].partitions]


def poll_until(condition: Callable[[], Any], what: str, seconds: float = DEADLINE_SECONDS) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)
    return found


@pytest.fixture
def chain(servers) -> Chain:
    return Chain(servers.bootstrap, servers.elasticsearch_url)

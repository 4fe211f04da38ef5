"""How long after its time a record's documents are in Elasticsearch."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import orjson
from confluent_kafka import OFFSET_END, KafkaException, Message, TopicPartition

from connectors.kafka.client import fetch_committed, make_consumer
from connectors.kafka.security import client_config
from infra.contract.topics import Topic
from infra.jars import default_jars
from infra.local.elasticsearch import Elasticsearch
from jobs.indexer.settings import IndexerSettings
from ops.job_addresses import ALL
from tests.bench.background import Background
from tests.bench.chain.lab import PORT, Lab
from tests.bench.chain.latency import MILLI, quantiles
from tests.waiting import until

INDEXER = "indexer"
ELASTICSEARCH_PORT = PORT + 20


class IndexedLab(Lab):
    """A lab that has Elasticsearch, too, and the indexer."""

    def __init__(self, home: Path, settings: Mapping[str, str]) -> None:
        self.elasticsearch = Elasticsearch(home / "elasticsearch", ELASTICSEARCH_PORT, jars=default_jars())
        super().__init__(home, settings | {"KAPPA_ELASTICSEARCH_URL": self.elasticsearch.address})

    def move_to(self, generation: str) -> None:
        """From now on, jobs of this generation, the indexer among them."""
        super().move_to(generation)
        one = next(iter(self.jobs.values()))
        self.jobs[INDEXER] = one if one.name == ALL else self._job(INDEXER, one.environment)

    @contextmanager
    def up(self) -> Iterator["IndexedLab"]:
        """Broker and Elasticsearch; the indexer runs, as it needs no Spark."""
        self.elasticsearch.spawn()
        try:
            with super().up():
                until(self.elasticsearch.ready, 120, "Elasticsearch does not start")
                yield self
        finally:
            self.elasticsearch.stop()


class Indexed(Background):
    """Takes the age of each record of a topic's first partition that becomes documents, when the indexer committed it.

    The documents are written before; Elasticsearch shows them to searches at its next refresh.
    """

    def __init__(self, lab: Lab, topic: Topic) -> None:
        super().__init__()
        assert topic.index
        self._kind, self._lifecycles = topic.index, IndexerSettings().lifecycles({topic.index})
        self._seconds: list[float] = []
        self._waiting: deque[tuple[int, float]] = deque()  # offset and time of what isn't committed yet
        self._place = TopicPartition(topic.name, 0, OFFSET_END)
        connection = client_config(lab.broker.address)
        self._reader = make_consumer(connection, "bench.indexed", {"isolation.level": "read_committed"})
        self._reader.assign([self._place])
        self._group = make_consumer(connection, lab.settings.query_of(INDEXER), {"isolation.level": "read_uncommitted"})

    def run(self) -> None:
        """Until the block ends."""
        while not self.over.is_set():
            for message in self._reader.consume(1000, 0.1):
                if message.error():
                    raise KafkaException(message.error())
                if self._is_indexed(message):
                    self._waiting.append((message.offset(), message.timestamp()[1] / MILLI))
            (done,) = fetch_committed(self._group, [self._place])
            while self._waiting and self._waiting[0][0] < done.offset:
                self._seconds.append(time.time() - self._waiting.popleft()[1])

    def _is_indexed(self, message: Message) -> bool:
        if message.key() is None:  # a watermark has none
            return False
        return self._lifecycles.of(self._kind, orjson.loads(message.value())) is not None

    def quantiles(self) -> dict[str, float]:
        """p50, p99 and maximum, s; nothing if there was no record."""
        return quantiles(self._seconds)

    def close(self) -> None:
        """Close its consumers."""
        self._reader.close()
        self._group.close()

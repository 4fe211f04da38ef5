"""A generation for a test of the notifier: its topics, real receivers, and notifiers that may be killed."""

import multiprocessing
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer, TopicPartition

from connectors.kafka import admin
from connectors.kafka.client import fetch_committed, open_consumer
from connectors.kafka.offsets import Log, missing
from connectors.kafka.reader import read_records
from connectors.kafka.retries import retrying
from infra.contract.topics import TopicMap, load_topics
from infra.jars import default_jars
from infra.local.kafka import KafkaBroker
from jobs.notifier.notifier import run
from jobs.notifier.routes import Routing
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from tests.integration.conftest import free_ports
from tests.unit.jobs.notifier.receivers import MailServer, WebServer
from tests.waiting import until

DEADLINE_SECONDS = 90
READ = ("incidents", "alerts", "novelties")


class Office:
    """Topics, a mail server and a web server of its own, and a notifier between them."""

    def __init__(self, bootstrap: str, mail: MailServer, web: WebServer) -> None:
        self.bootstrap, self.mail, self.web = bootstrap, mail, web
        generation = f"office-{uuid.uuid4().hex[:8]}"
        self.settings = Settings(kafka_bootstrap=bootstrap, generation=generation, drain_seconds=10)
        self.topics: TopicMap = JOBS.topics_in(load_topics(), generation)
        self.log = Log(bootstrap)
        self._producer = Producer({"bootstrap.servers": bootstrap})
        admin.apply(admin.connect(bootstrap), [self.topics[key] for key in JOBS["notifier"].reads])
        admin.apply(admin.connect(bootstrap), [self.topics[key] for key in JOBS["notifier"].writes])

    def routing(self, *routes: dict[str, Any], **fields: Any) -> Routing:
        """Routes to the channels `mail` and `web`; by default everything to both."""
        channels = {
            "mail": {
                "kind": "mail", "host": "127.0.0.1", "port": self.mail.port, "encryption": "none",
                "from": "kappa@example.net", "to": ["ops@example.net"],
            },
            "web": {"kind": "webhook", "url": self.web.url},
        }  # fmt: skip
        everything = {"name": "all", "topics": READ, "channels": ["mail", "web"]}
        return Routing.model_validate({"channels": channels, "routes": [*routes] or [everything], **fields})

    @contextmanager
    def notifier(self, routing: Routing) -> Iterator[Future[None]]:
        """A notifier at work that has begun; when the block ends it is told to stop and must end in order."""
        stop = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run, self.settings, self.topics, routing, stop)
            try:
                self.wait_for_begin(routing)
                yield running
            finally:
                stop.set()
                running.result(DEADLINE_SECONDS)

    def process(self, routing: Routing) -> BaseProcess:
        """A notifier in a process of its own, for the test to kill."""
        spawning = multiprocessing.get_context("spawn")
        self._never = spawning.Event()  # kept: the child finds it only while it lives here
        process = spawning.Process(target=run, args=(self.settings, self.topics, routing, self._never))
        process.start()
        return process

    def wait_for_begin(self, routing: Routing) -> None:
        """What is written from now on is told: the offsets of a first start are committed, also of empty partitions."""
        partitions = self.log.partitions([self.topics[topic].name for topic in routing.topics])
        wanted = [TopicPartition(*partition) for partition in partitions]

        def has_begun() -> bool:
            with open_consumer({"bootstrap.servers": self.bootstrap}, self.settings.query_of("notifier")) as consumer:
                return all(one.offset >= 0 for one in retrying(30)(lambda: fetch_committed(consumer, wanted)))

        until(has_begun, DEADLINE_SECONDS, "the notifier does not begin", pause=0.1)

    def _offsets(self, partitions: Any) -> dict[Any, int]:
        return self.log.committed(self.settings.query_of("notifier"), partitions)

    def send(self, topic: str, *records: Any) -> None:
        """Write records; raw bytes go as they are."""
        for record in records:
            value = record if isinstance(record, bytes) else orjson.dumps(record)
            key = None if isinstance(record, bytes) else record.get("id")
            self._producer.produce(self.topics[topic].name, value=value, key=key)
        assert self._producer.flush(30) == 0

    def states(self) -> dict[str, list[str]]:
        """The states of each delivery, `channel/id`, in their order."""
        found: dict[str, list[str]] = {}
        for _, record in read_records(self.bootstrap, self.topics["notifications"].name):
            found.setdefault(f"{record['channel']}/{record['id']}", []).append(record["state"])
        return found

    def counts(self) -> Counter[str]:
        """How many deliveries are in which state now."""
        return Counter(states[-1] for states in self.states().values())

    def is_done(self, deliveries: int) -> bool:
        """Whether all has been read and so many deliveries are sent or dead, and no others are known."""
        topics = [self.topics[topic].name for topic in READ]
        lag = missing(self._offsets(self.log.partitions(topics)), self.log.ends(topics))
        counts = self.counts()
        return lag == 0 and counts["sent"] + counts["dead"] == counts.total() == deliveries

    def wait_until_done(self, deliveries: int) -> None:
        until(lambda: self.is_done(deliveries), DEADLINE_SECONDS, f"{deliveries} deliveries", pause=0.2)

    def rejected(self) -> list[dict[str, Any]]:
        return [record for _, record in read_records(self.bootstrap, self.topics["events.rejected"].name)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker alone: nothing here needs Elasticsearch."""
    broker = KafkaBroker(tmp_path_factory.mktemp("notifier") / "broker", free_ports(4), jars=default_jars())
    broker.spawn()
    try:
        until(broker.ready, 60, "the broker does not answer")
        yield broker
    finally:
        broker.stop()


@pytest.fixture
def office(broker) -> Iterator[Office]:
    with MailServer() as mail, WebServer() as web:
        yield Office(broker.address, mail, web)

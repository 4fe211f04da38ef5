"""Second copies of the indexer, started at random moments: one stays at work, and each document is there once.

Two starts; `make test-copies` has 25.
"""

import base64
import threading
from collections import Counter
from pathlib import Path

import orjson
import pytest
from elasticsearch.helpers import scan

from jobs.indexer.index_names import index_of
from tests.chaos.processes import Job
from tests.integration.copies import PAUSE_SECONDS, START_SECONDS, STARTS, report, start_copies
from tests.integration.jobs.indexer.conftest import START, Chain, partitions, reader, window
from tests.waiting import until

MACHINES = 8  # whose records lie on several partitions
REFUSED_EVERY = 5  # Elasticsearch refuses a series of each fifth window: of all machines in turn


class Feed(threading.Thread):
    """Numbered windows of a few machines, ten a second until `stop`."""

    def __init__(self, chain: Chain) -> None:
        super().__init__(daemon=True)
        self.chain, self.over, self.sent = chain, threading.Event(), 0

    def run(self) -> None:
        while not self.over.wait(0.1):
            refused = {"severity_number": 1000} if is_refused(self.sent) else {}
            self.chain.send("statistics", window(machine_of(self.sent), self.sent, **refused))
            self.sent += 1

    def stop(self) -> None:
        """It sends no more, and what it has sent is in the log."""
        self.over.set()
        self.join()


def machine_of(number: int) -> str:
    return f"vm-{number % MACHINES}"


def is_refused(number: int) -> bool:
    return number % REFUSED_EVERY == 0


class Copies:
    """Every process of the indexer that was started, and how far they have come."""

    def __init__(self, chain: Chain, home: Path) -> None:
        self.chain, self.home = chain, home
        self.started: list[Job] = []

    def start(self) -> Job:
        log = self.home / f"indexer-{len(self.started)}.log"
        self.started.append(Job("indexer", ("run", "indexer"), self.chain.environment, log))
        self.started[-1].start()
        return self.started[-1]

    def indexed(self) -> int:
        """How many records of `statistics` are committed."""
        with reader(self.chain.settings.kafka_bootstrap, self.chain.settings.query_of("indexer")) as consumer:
            places = partitions(consumer, self.chain.topics["statistics"].name)
            return sum(max(0, place.offset) for place in consumer.committed(places, timeout=30))


@pytest.fixture
def copies(chain, tmp_path):
    copies = Copies(chain, tmp_path)
    yield copies
    for copy in copies.started:
        copy.clean()


@pytest.mark.slow
@pytest.mark.timeout(300 + 120 * STARTS)
def test_one_copy_stays_at_work_and_each_document_is_there_once(chain, copies):
    feed = Feed(chain)
    feed.start()
    first = copies.start()
    until(lambda: copies.indexed() > 0, START_SECONDS, "the indexer commits nothing")
    _, pauses = start_copies("indexer", first, copies.start, copies.indexed, "another indexer took over")
    feed.stop()
    until(chain.settled, START_SECONDS, "the indexer does not catch up")
    report("indexer", {"starts": STARTS, "windows": feed.sent, "pause_seconds": pauses})
    assert indexed(chain) == Counter(series for n in range(feed.sent) for series in expected(n))
    assert rejected(chain) == Counter(f"{machine_of(n)}-{n}" for n in range(feed.sent) if is_refused(n))
    assert max(pauses) < PAUSE_SECONDS, pauses


def expected(number: int) -> list[tuple[str, int, str]]:
    """The machine, the end in milliseconds and the series of each document of a window."""
    place = machine_of(number), START // 1_000_000 + 10_000 * (number + 1)
    return [(*place, series) for series in ("load", "cpu{state=idle}") if series != "load" or not is_refused(number)]


def indexed(chain: Chain) -> Counter[tuple[str, int, str]]:
    """What `expected` gives, of the documents that are there."""
    index = index_of("statistics", chain.generation)
    chain.elasticsearch.indices.refresh(index=index)
    found = (hit["_source"] for hit in scan(chain.elasticsearch, index=index))
    return Counter((document["machine"], document["window"]["end"], document["series"]) for document in found)


def rejected(chain: Chain) -> Counter[str]:
    """The windows of which a dead letter was written, by their ids."""
    letters = (record for record in chain.records("events.rejected") if record)
    return Counter(orjson.loads(base64.b64decode(letter["value"]))["id"] for letter in letters)

"""A centre fails over to another cluster and back: jobs, a reader and the site's mirror go on at their places."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError

from ops.savepoints import chain as sets
from ops.savepoints import savepoints
from ops.savepoints.saved import ChainSavepoint
from ops.site.failover import failover
from ops.site.mirror import everything, mirrored
from tests.chaos.processes import Job
from tests.chaos.reading import read_topic
from tests.integration.conftest import free_ports
from tests.integration.ops.records import assert_same, by_machine, each_event
from tests.integration.ops.site.mirroring import Arrivals, between, mirror_maker
from tests.integration.ops.small_chain import PATIENCE, SECONDS, SmallChain
from tests.replay.report import Report

OVER, BACK = 120, 150  # seconds of the simulation: in the midst of a hog, and of a silence
JOBS = ("enrichment", "statistics", "detector", "incidents", "archive")
FORMS = {"events": each_event, "statistics": by_machine, "novelties": by_machine, "incidents": by_machine}
READER = "billing"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(9 * PATIENCE)]


def records(chain: SmallChain, topic: str):
    return read_topic(chain.settings.kafka_bootstrap, topic)


def count(chain: SmallChain, topics) -> int:
    return sum(len(records(chain, topic.name)) for topic in topics)


@contextmanager
def mirroring(name: str, source: SmallChain, target: SmallChain, topics, folder: Path) -> Iterator[Job]:
    """A mirror that runs; it is killed at the end, as whatever happens to a centre would."""
    mirror = mirror_maker(between(name, source, target), topics, free_ports(1), folder)
    mirror.start()
    try:
        yield mirror
    finally:
        mirror.clean()


def bring(site: SmallChain, centre: SmallChain, second: int, folder: Path) -> None:
    """Send what is before this second at the site, and have its mirror bring it to the centre, once."""
    topics, arrivals = mirrored(centre.topics), Arrivals(centre, mirrored(centre.topics))
    try:
        with mirroring("dc1", site, centre, topics, folder):
            site.feed_until(second)
            arrivals.wait_for(count(site, topics))
    finally:
        arrivals.close()


def work(centre: SmallChain) -> None:
    centre.start()
    centre.stop()


def read_on(centre: SmallChain, most: int = 1_000_000) -> list[tuple[bytes | None, bytes]]:
    """What a reader of the statistics gets from its place on; its place is behind that afterwards."""
    own = {"group.id": READER, "isolation.level": "read_committed", "enable.auto.commit": False}
    eof = {"auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": centre.settings.kafka_bootstrap, **own, **eof})
    consumer.subscribe(["statistics"])
    found, ended = list[tuple[bytes | None, bytes]](), set[int]()
    while len(found) < most and len(ended) < centre.topics["statistics"].partitions:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF
            ended.add(message.partition())
        else:
            found.append((message.key(), message.value()))
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def hand_over(here: SmallChain, there: SmallChain, back: str, folder: Path) -> float:
    """All that is done to fail over, while the mirror of everything runs; returns the seconds that it takes."""
    began = time.monotonic()
    saved = sets.create(f"to-{there.home.name}", here.settings, JOBS, here.topics, here.spark)
    file = folder / f"{saved.name}.tgz"
    savepoints.export(saved, here.settings, file)
    taken = savepoints.take_in(file, None, there.settings)
    assert isinstance(taken, ChainSavepoint)
    source = here.settings.kafka_bootstrap
    done = failover(taken, source, back, there.settings, patience=PATIENCE, tell=lambda left: None)
    assert done.jobs == JOBS and done.readers == (READER,) and done.mirrors == ("dc1",)
    return time.monotonic() - began


def test_a_centre_fails_over_and_back_and_nobody_notices(new_chain, report: Report, tmp_path: Path):
    site, east, west = new_chain("site"), new_chain("east"), new_chain("west")
    whole, read, seconds = everything(east.topics), list[tuple[bytes | None, bytes]](), list[float]()

    bring(site, east, OVER, tmp_path)
    work(east)
    read += read_on(east, 20)
    with mirroring("east", east, west, whole, tmp_path):
        seconds.append(hand_over(east, west, "west", tmp_path))

    bring(site, west, BACK, tmp_path)
    work(west)
    read += read_on(west, 40)
    with mirroring("west", west, east, whole, tmp_path):
        seconds.append(hand_over(west, east, "east", tmp_path))

    bring(site, east, SECONDS, tmp_path)
    work(east)
    read += read_on(east)

    for topic in mirrored(east.topics):
        assert_same_records(topic.name, site, east)
    # What a chain says that has seen the same, and was never moved.
    work(site)
    compared = {}
    for topic, form in FORMS.items():
        expected = form(records(site, topic))
        assert_same(topic, expected, form(records(east, topic)))
        compared[topic] = expected.total()
    assert_same("read", Counter((one.key, one.value) for one in records(east, "statistics")), Counter(read))
    took = [round(one, 1) for one in seconds]
    report.add("failed over and back", failover_s=max(took), each_s=took, records=compared, lost=0, duplicated=0)


def assert_same_records(topic: str, one: SmallChain, other: SmallChain) -> None:
    """The same in each partition, in the same order, with the same times."""
    expected, found = (
        [(record.place.partition, record.timestamp_ms, record.key, record.value) for record in records(chain, topic)]
        for chain in (one, other)
    )
    assert found == expected, topic

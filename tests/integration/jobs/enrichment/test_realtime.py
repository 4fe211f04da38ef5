"""The real-time mode on a real broker: it writes what a micro-batch would; a restart writes duplicates of known ids."""

import time

import orjson
import pytest
from confluent_kafka import Producer

from infra.contract.topics import TopicMap
from jobs.enrichment.deduplicate import Deduplicator
from jobs.enrichment.realtime import NAME, start
from jobs.enrichment.settings import EnrichmentSettings
from jobs.runtime.job import Context
from jobs.runtime.settings import Settings
from tests.integration.enrichment import own_map, records_of, wait_for

COUNT = 20


@pytest.fixture
def topics(servers):
    """Two topics to read, control events and one of telemetry: the session has two cores, and a partition takes one."""
    read = ("telemetry.lines", "detector.control")
    with own_map(servers.bootstrap) as mapped:
        yield TopicMap({key: topic for key, topic in mapped.topics.items() if not topic.format or key in read})


def send(bootstrap, topics, first, machine="vm-1"):
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in range(first, first + COUNT):
        line = {"time_unix_nano": time.time_ns(), "machine": machine, "name": "n", "value": value}
        producer.produce(topics["telemetry.lines"].name, orjson.dumps(line))
    producer.produce(topics["telemetry.lines"].name, b"{broken")
    assert producer.flush(30) == 0


def test_a_restart_repeats_and_the_source_offset_removes_it(spark, servers, topics, tmp_path):
    bootstrap = servers.bootstrap
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topics["inventory"].name, orjson.dumps({"machine": "vm-1", "site": "dc1"}), "vm-1")
    assert producer.flush(30) == 0
    settings = Settings(
        kafka_bootstrap=bootstrap, home=tmp_path, generation=f"rt{time.time_ns()}", realtime_batch_seconds=600
    )

    def values():
        return [r["events"]["value"][0] for r in records_of(bootstrap, topics["events"].name)]

    for first in (0, COUNT):
        query = start(Context(spark, settings, topics, EnrichmentSettings()))[NAME]
        try:
            send(bootstrap, topics, first)
            wait_for(
                lambda first=first, query=query: query.exception() or max(values(), default=-1) == first + COUNT - 1
            )
            assert query.exception() is None
        finally:
            query.stop()  # within its batch: what it has read isn't noted
    records = records_of(bootstrap, topics["events"].name)
    assert len(records) > 2 * COUNT
    deduplicator = Deduplicator()
    kept = [record for record in records if deduplicator.is_new(record)]
    assert [record["events"]["value"][0] for record in kept] == list(range(2 * COUNT))
    assert len({record["id"] for record in records}) == 2 * COUNT
    assert {record["inventory"]["site"] for record in kept} == {"dc1"}
    rejected = records_of(bootstrap, topics["events.rejected"].name)
    assert {record["code"] for record in rejected} == {"not_json"}
    assert len({record["id"] for record in rejected}) == 2

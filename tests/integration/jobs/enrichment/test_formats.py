"""Formats that go and come back between two starts of the job, on a real broker: nothing is doubled or left out."""

import time

import orjson
import pytest
from confluent_kafka import Producer

from connectors.kafka.offsets import Log, missing
from infra.contract.topics import TopicMap
from jobs.detector.control import reset
from tests.integration.enrichment import own_map, records_of, running_enrichment, wait_for

LINES, CONTROL = "telemetry.lines", "detector.control"


@pytest.fixture
def whole(servers):
    with own_map(servers.bootstrap) as mapped:
        yield mapped


def with_formats_of(topics, *keys):
    return TopicMap({key: topic for key, topic in topics.topics.items() if not topic.format or key in keys})


def test_a_format_that_is_taken_out_and_put_back_goes_on_where_it_was(spark, servers, whole, tmp_path):
    bootstrap = servers.bootstrap
    producer, log = Producer({"bootstrap.servers": bootstrap}), Log(servers.bootstrap)

    def send(value):
        line = {"time_unix_nano": time.time_ns(), "machine": "vm-1", "name": "n", "value": value}
        producer.produce(whole[LINES].name, orjson.dumps(line))
        producer.produce(whole[CONTROL].name, orjson.dumps(reset("*", "vm-1")))
        assert producer.flush(30) == 0

    def run(*keys):
        """The job with these topics, until it has read all that they hold."""
        with running_enrichment(spark, bootstrap, with_formats_of(whole, *keys), tmp_path) as group:
            ends = log.ends([whole[key].name for key in keys])
            wait_for(lambda: not missing(log.committed(group, ends), ends))

    # Two batches without it: Spark goes by the last two of its plans.
    for value, keys in enumerate([(LINES, CONTROL), (CONTROL,), (CONTROL,), (LINES, CONTROL)]):
        send(value)
        run(*keys)
    metrics = [record["events"] for record in records_of(bootstrap, whole["events"].name) if record["kind"] == "metric"]
    assert sorted(value for events in metrics for value in events["value"]) == [0, 1, 2, 3]

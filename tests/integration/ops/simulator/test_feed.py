import json
import os
import signal
import sys
import time
from collections import defaultdict

import pytest
from confluent_kafka import KafkaException

from connectors.kafka.producer import CollectorProducer
from infra.errors import UserError
from ops.simulator import feed
from ops.simulator.faults import SECOND, parse
from ops.simulator.simulation import Settings, Simulation
from ops.simulator.truth import Truth
from tests.integration.connectors.reading import own_topics, read_all, running, wait_for_records

START = (time.time_ns() // SECOND - 3600) * SECOND
FAULTS = tuple(parse(f"{kind}:vm-03@+5s/20s") for kind in ("late", "malformed"))


@pytest.fixture
def prefix(servers):
    """Of topics on the broker's clock, as collectors have them."""
    with own_topics(servers.bootstrap) as prefix:
        yield prefix


@pytest.fixture
def sender_clock_prefix(servers):
    """Of topics that keep the sender's time."""
    with own_topics(servers.bootstrap, timestamp="CreateTime") as prefix:
        yield prefix


def test_compressed_every_record_is_there_once_in_order_with_its_time(servers, sender_clock_prefix):
    simulation = Simulation(Settings(START, 60 * SECOND, faults=FAULTS, topic_prefix=sender_clock_prefix))
    feed.run(simulation, CollectorProducer(servers.bootstrap, simulation.topics()), live=False)
    expected = defaultdict(list)
    for record in simulation.records():
        expected[record.topic, record.key].append((record.value, record.timestamp_ms))
    found = defaultdict(list)
    for message in read_all(servers.bootstrap, *simulation.topics()):
        found[message.topic(), message.key()].append((message.value(), message.timestamp()[1]))
    assert found == expected


def test_compressed_partitions_stay_within_a_simulated_second(servers, sender_clock_prefix):
    simulation = Simulation(Settings(START, 60 * SECOND, topic_prefix=sender_clock_prefix))
    feed.run(simulation, CollectorProducer(servers.bootstrap, simulation.topics()), live=False)
    partitions = defaultdict(list)
    for message in read_all(servers.bootstrap, sender_clock_prefix + "telemetry.otlp.metrics"):
        partitions[message.partition()].append(message.timestamp()[1])
    assert len(partitions) == 4
    assert all(times == sorted(times) for times in partitions.values())


def test_live_the_truth_follows_the_brokers_clock(servers, prefix, tmp_path):
    settings = Settings(time.time_ns(), 3 * SECOND, scrape_interval=SECOND, jitter=SECOND // 2, topic_prefix=prefix)
    simulation = Simulation(settings)
    with Truth(tmp_path, simulation) as truth:
        feed.run(simulation, CollectorProducer(servers.bootstrap, simulation.topics()), truth)
    metrics = read_all(servers.bootstrap, prefix + "telemetry.otlp.metrics")
    assert len(metrics) == 3 * len(simulation.machines)
    assert truth.totals.accepted == truth.totals.as_dict()["produced"] > 3 * 28 * 29
    for message in metrics:
        scope = json.loads(message.value())["resourceMetrics"][0]["scopeMetrics"][0]
        time_ms = int(scope["metrics"][0]["gauge"]["dataPoints"][0]["timeUnixNano"]) / 1_000_000
        assert 0 <= message.timestamp()[1] - time_ms < 2000


def test_on_topics_of_the_brokers_clock_an_old_hour_is_late(servers, prefix, tmp_path):
    simulation = Simulation(Settings(START, 10 * SECOND, topic_prefix=prefix))
    with Truth(tmp_path, simulation) as truth:
        feed.run(simulation, CollectorProducer(servers.bootstrap, simulation.topics()), truth, live=False)
    assert truth.totals.late == truth.totals.as_dict()["produced"] > 0


def test_sigterm_ends_a_live_run_with_the_whole_truth(servers, prefix, tmp_path):
    command = [
        sys.executable,
        "-m",
        "ops.cli",
        "simulate",
        "--json",
        "--scrape-interval=1s",
    ]
    command += [f"--bootstrap={servers.bootstrap}", f"--topic-prefix={prefix}", f"--truth={tmp_path}"]
    with running(command) as process:
        wait_for_records(servers.bootstrap, prefix + "telemetry.otlp.metrics", 50)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    totals = json.loads((tmp_path / "totals.json").read_text())
    printed = json.loads(output)
    assert {name: printed[name] for name in totals} == totals
    points = 29 * len(read_all(servers.bootstrap, prefix + "telemetry.otlp.metrics"))
    windows = [json.loads(line) for line in (tmp_path / "windows.jsonl").read_text().splitlines()]
    counted = sum(f["count"] for w in windows if w["kind"] == "metric" for f in w["series"].values())
    assert counted == points


def test_a_missing_topic_is_refused_at_the_start(servers):
    with pytest.raises(UserError, match=r"topic 'not\.there' is not on"):
        CollectorProducer(servers.bootstrap, ["not.there"])


def test_a_record_that_kafka_refuses_is_an_error(servers, prefix):
    producer = CollectorProducer(servers.bootstrap, [], **{"message.max.bytes": 20_000_000})
    producer.send(prefix + "telemetry.otlp.logs", b"key", os.urandom(12_000_000), 0)
    with pytest.raises(KafkaException):
        producer.flush()

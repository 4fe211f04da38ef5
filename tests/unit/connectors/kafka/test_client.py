import ast
import threading
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from connectors.kafka import client
from connectors.kafka.client import make_consumer, topic_partitions

ROOT = Path(__file__).parents[4]
CLIENTS = {"Consumer", "Producer", "AdminClient", "_Consumer", "_Producer"}


def test_nobody_else_makes_a_client_by_hand():
    """Each would need its own thought about security. infra/ lies below: its local broker asks for none."""
    makers = {
        str(file.relative_to(ROOT))
        for floor in ("ops", "jobs", "connectors")
        for file in (ROOT / floor).rglob("*.py")
        if makes_client(file)
    }
    assert makers == {str(Path(client.__file__).relative_to(ROOT))}


def makes_client(file):
    calls = (node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Name) and called.id in CLIENTS for called in calls)


def test_offsets_as_confluent_kafka_takes_them():
    found = topic_partitions({("events", 1): 7, ("events", 0): 5})
    assert found == [TopicPartition("events", 1), TopicPartition("events", 0)]
    assert [at.offset for at in found] == [7, 5]


NOBODY = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def test_a_closed_consumer_is_one():
    consumer = make_consumer(NOBODY, "g")
    consumer.close()
    with pytest.raises(RuntimeError, match="closed"):
        consumer.poll(0)


def test_a_consumer_that_does_not_end_is_left_behind(monkeypatch, caplog):
    """As librdkafka's may, whose threads wait for each other."""
    release = threading.Event()

    class Endless(confluent_kafka.Consumer):
        def close(self):
            release.wait()

    class Ours(client._Consumer, Endless):
        pass

    monkeypatch.setattr(client, "CLOSE_SECONDS", 0.05)
    Ours({**NOBODY, "group.id": "g"}).close()
    release.set()
    assert "did not end within 0.05 s" in caplog.text

import ast
from pathlib import Path

from confluent_kafka import TopicPartition

from connectors.kafka import client
from connectors.kafka.client import topic_partitions

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

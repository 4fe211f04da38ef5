"""Few topics of a test's own, and reading them back."""

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Message

from connectors.kafka.admin import apply, connect
from connectors.kafka.reader import read_topic
from infra.contract.topics import TopicMap, load_topics
from tests.waiting import until

COLLECTED = ("telemetry.otlp.metrics", "telemetry.otlp.logs", "inventory")


@contextmanager
def own_topics(bootstrap: str, **changes: str) -> Iterator[str]:
    """What collectors write to, as in the map but for the changes, under the prefix that this gives."""
    prefix, declared = f"test-{uuid.uuid4().hex[:8]}.", load_topics()
    topics = {name: declared[name].model_copy(update={"name": prefix + name, **changes}) for name in COLLECTED}
    admin = connect(bootstrap)
    apply(admin, TopicMap(topics))
    yield prefix
    for deletion in admin.delete_topics([topic.name for topic in topics.values()]).values():
        deletion.result()


def read_all(bootstrap: str, *topics: str) -> list[Message]:
    """Every record that the topics hold now, partition by partition in order of offset."""
    messages = [message for topic in topics for message in read_topic(bootstrap, topic)]
    return sorted(messages, key=lambda message: (message.topic(), message.partition(), message.offset()))


def wait_for_records(bootstrap: str, topic: str, count: int) -> list[Message]:
    """All records of the topic, once there are so many."""

    def enough() -> list[Message]:
        found = read_all(bootstrap, topic)
        return found if len(found) >= count else []

    return until(enough, 60, f"{topic} has fewer than {count} records", pause=0.1)


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the test."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()

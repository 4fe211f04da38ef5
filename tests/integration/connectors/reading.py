"""Few topics of a test's own, and reading them back."""

import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from infra.admin import apply, connect
from infra.topics import TopicMap, load_topics

COLLECTED = ("telemetry.otlp.metrics", "telemetry.otlp.logs", "inventory")


@contextmanager
def own_topics(bootstrap: str, **changes: str) -> Iterator[str]:
    """What collectors write to, as in the map but for the changes, under the prefix that this gives."""
    prefix, declared = f"test-{uuid.uuid4().hex[:8]}.", load_topics()
    topics = {name: declared[name].model_copy(update={"name": prefix + name, **changes}) for name in COLLECTED}
    admin = connect(bootstrap)
    apply(admin, TopicMap(topics))
    until(lambda: _readable(bootstrap, [topic.name for topic in topics.values()]), "own topics have no leaders")
    yield prefix
    for deletion in admin.delete_topics([topic.name for topic in topics.values()]).values():
        deletion.result()


def read_all(bootstrap: str, *topics: str) -> list[Message]:
    """Every record that the topics hold now, partition by partition in order of offset."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reading", "isolation.level": "read_committed"})
    found = consumer.list_topics(timeout=10).topics
    partitions = [TopicPartition(t, p, OFFSET_BEGINNING) for t in topics for p in found[t].partitions]
    left = sum(high - low for low, high in (consumer.get_watermark_offsets(p, 10) for p in partitions))
    consumer.assign(partitions)
    messages, deadline = [], time.monotonic() + 60
    while len(messages) < left and time.monotonic() < deadline:
        messages += consumer.consume(10_000, 1)
    consumer.close()
    assert len(messages) >= left  # more, if somebody writes meanwhile
    return sorted(messages, key=lambda message: (message.topic(), message.partition(), message.offset()))


def wait_for_records(bootstrap: str, topic: str, count: int) -> list[Message]:
    """All records of the topic, once there are so many."""
    until(lambda: len(read_all(bootstrap, topic)) >= count, f"{topic} has fewer than {count} records")
    return read_all(bootstrap, topic)


def until(condition: Callable[[], bool], otherwise: str) -> None:
    """Returns once it holds; raises TimeoutError after a minute."""
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the test."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def _readable(bootstrap: str, topics: list[str]) -> bool:
    try:
        read_all(bootstrap, *topics)
    except (KeyError, KafkaException):
        return False
    return True

"""The size of records as a real broker has them: compressed, large only in a part of the log, or hostile."""

import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from connectors.kafka.admin import connect
from connectors.kafka.sizes import UNPACKED_BYTES, filled_topics, largest_mean_bytes
from tests.waiting import until


@pytest.fixture
def topic(servers):
    name = f"sizes-{uuid.uuid4().hex[:8]}"
    admin = connect(servers.bootstrap)  # kept: its answers end with it
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(30)
    until(lambda: name in admin.list_topics().topics, 30, "the brokers tell of the topic")
    return name


def send(servers, topic, values, **settings):
    producer = Producer({"bootstrap.servers": servers.bootstrap, "message.max.bytes": 50_000_000, **settings})
    for value in values:
        producer.produce(topic, value, key=b"key", partition=0)
    assert producer.flush(60) == 0


def test_an_empty_topic_has_no_size(servers, topic):
    assert largest_mean_bytes(servers.bootstrap, [topic]) == 0
    assert filled_topics(servers.bootstrap, [topic]) == set()


def test_where_records_are_largest_counts_and_unpacked(servers, topic):
    send(
        servers,
        topic,
        [b"x" * 100] * 200 + [b"\0" * 100_000] * 100 + [b"x" * 100] * 100,
        **{"compression.type": "zstd"},
    )
    assert largest_mean_bytes(servers.bootstrap, [topic]) == pytest.approx(100_003)
    assert filled_topics(servers.bootstrap, [topic]) == {topic}


def test_a_few_large_records_in_one_topic_do_not_count_for_all(servers, topic, topics):
    other = topics["events.late"].name
    send(servers, topic, [b"x" * 997] * 990)
    send(servers, other, [b"\0" * 1_000_000] * 10)
    assert largest_mean_bytes(servers.bootstrap, [topic, other]) == pytest.approx(11_000, rel=0.05)


def test_a_decompression_bomb_passes_the_broker_and_its_true_size_is_seen(servers, topic):
    """A broker bounds a batch as it is sent: three times 10 MB of zeros are a few kilobytes."""
    bound = {"compression.type": "zstd", "batch.size": 2**31 - 1, "linger.ms": 2000, "batch.num.messages": 30}
    send(servers, topic, [b"\0" * 10_000_000] * 3, **{**bound, "message.max.bytes": 400_000_000})
    assert size_on_disk(servers, topic) < 1_000_000
    assert largest_mean_bytes(servers.bootstrap, [topic]) == pytest.approx(10_000_003)

    send(servers, topic, [b"\0" * 10_000_000] * 30, **{**bound, "message.max.bytes": 400_000_000})
    assert largest_mean_bytes(servers.bootstrap, [topic]) == UNPACKED_BYTES


def size_on_disk(servers, topic):
    return sum(file.stat().st_size for file in (servers.kafka[0].folder / "data").glob(f"{topic}-*/*.log"))

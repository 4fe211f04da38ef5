"""Where a group stands, on a real broker: offsets, times, watermarks, what retention has taken."""

import time

import pytest
from confluent_kafka import Producer, TopicPartition

from connectors.kafka.admin import connect
from connectors.kafka.client import open_consumer
from connectors.kafka.standing import Standing, Standings
from infra.contract.watermarks import watermark_value
from tests.waiting import until

NOW = int(time.time() * 1000)
GROUP = "test.standing"


@pytest.fixture
def standings(servers):
    found = Standings({"bootstrap.servers": servers.bootstrap})
    yield found
    found.close()


def commit(servers, topic: str, offset: int) -> None:
    with open_consumer({"bootstrap.servers": servers.bootstrap}, GROUP) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)


def test_a_group_stands_where_it_has_committed(servers, topics, standings):
    topic = topics["events"].name
    producer = Producer({"bootstrap.servers": servers.bootstrap})
    for number in range(10):
        producer.produce(topic, b"{}", b"vm-1", partition=0, timestamp=NOW + number)
    producer.produce(topic, watermark_value(5_000_000_000), None, partition=0, timestamp=NOW + 20)
    producer.produce(topic, b"{}", b"vm-1", partition=0, timestamp=NOW + 30)
    producer.produce(topic, b"no JSON, and no key", None, partition=0, timestamp=NOW + 31)
    assert producer.flush(30) == 0
    place = (topic, 0)

    until(lambda: len(standings.look(GROUP, [topic])) == 4, 30, "each partition has its leader")
    found = standings.look(GROUP, [topic], {place: 3})
    assert {other: one.end for other, one in found.items() if other != place} == dict.fromkeys(
        [(topic, 1), (topic, 2), (topic, 3)], 0
    )
    assert found[place] == Standing(3, 0, 13, has_committed=False)
    assert (found[place].lag, found[place].lost) == (10, 0)

    commit(servers, topic, 11)
    timed = standings.with_times(GROUP, standings.look(GROUP, [topic]), {topic})
    assert timed[place] == Standing(11, 0, 13, unread_milli=NOW + 30, watermark_milli=5_000)
    assert standings.with_times(GROUP, standings.look(GROUP, [topic]), ())[place].watermark_milli is None

    commit(servers, topic, 13)
    timed = standings.with_times(GROUP, standings.look(GROUP, [topic]), {topic})
    assert timed[place] == Standing(13, 0, 13, watermark_milli=5_000)

    commit(servers, topic, 2)
    client = connect(servers.bootstrap)
    for deleted in client.delete_records([TopicPartition(topic, 0, 7)]).values():
        deleted.result()
    found = standings.look(GROUP, [topic])
    assert (found[place].start, found[place].lag, found[place].lost) == (7, 6, 5)
    assert standings.with_times(GROUP, found, {topic})[place].unread_milli == NOW + 7


def test_a_topic_that_is_not_there_is_left_out(standings):
    assert standings.look(GROUP, ["test.no-such-topic"]) == {}

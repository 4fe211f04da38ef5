"""Offsets of consumer groups, on a real broker."""

import pytest
from confluent_kafka import TopicPartition

from connectors.kafka.client import open_consumer
from connectors.kafka.offsets import Groups, Log
from tests.waiting import until

GROUP = "test.offsets"


@pytest.fixture
def log(servers):
    return Log(servers.bootstrap)


def test_groups_that_are_asked_again_and_again_are_as_one_that_is_asked_once(servers, topics, log):
    topic, groups = topics["events"].name, Groups(servers.bootstrap)
    places = [*until(lambda: log.ends([topic]), 30, "the topic is there")]
    for offset in (7, 9):
        with open_consumer({"bootstrap.servers": servers.bootstrap}, GROUP) as consumer:
            consumer.commit(offsets=[TopicPartition(topic, 1, offset)], asynchronous=False)
        assert groups.committed(GROUP, places) == {place: offset if place[1] == 1 else 0 for place in places}
        assert groups.committed(GROUP, places) == log.committed(GROUP, places)
    assert groups.committed("test.never", places) == dict.fromkeys(places, 0)

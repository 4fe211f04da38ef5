"""Consumer groups that are asked again and again, on a real broker."""

import pytest
from confluent_kafka import TopicPartition

from connectors.kafka.client import open_consumer
from connectors.kafka.groups import Groups
from connectors.kafka.offsets import Log
from tests.waiting import until

GROUP = "test.groups"


@pytest.fixture
def groups(servers):
    found = Groups({"bootstrap.servers": servers.bootstrap})
    yield found
    found.close()


def test_a_group_that_is_asked_again_says_what_it_has_committed_since(servers, topics, groups):
    topic, log = topics["events"].name, Log(servers.bootstrap)
    places = [*until(lambda: log.ends([topic]), 30, "the topic is there")]
    assert groups.committed(GROUP, places) == {}
    for offset in (7, 9):
        with open_consumer({"bootstrap.servers": servers.bootstrap}, GROUP) as consumer:
            consumer.commit(offsets=[TopicPartition(topic, 1, offset)], asynchronous=False)
        assert groups.committed(GROUP, places) == {(topic, 1): offset}
        assert log.committed(GROUP, places) == {place: offset if place[1] == 1 else 0 for place in places}


def test_a_group_keeps_its_client(groups):
    assert groups.consumer(GROUP) is groups.consumer(GROUP) is not groups.consumer("test.other")

"""Where records stand in a log that has the markers of transactions, too, on a real broker."""

import time

import pytest
from confluent_kafka import Producer

from connectors.kafka.admin import apply, connect, delete
from connectors.kafka.offsets import TAIL, Log
from tests.waiting import until

PARTITIONS = 4
EMPTY = 3  # that one gets no record


@pytest.fixture(scope="module")
def kafka(servers):
    return Log(servers.bootstrap)


@pytest.fixture
def written(servers, topics, kafka):
    """Three transactions of two records in each partition but the last, and one that is aborted; the topic."""
    topic = topics["events"].name
    until(lambda: kafka.ends([topic]), 30, "the topic is not there")
    producer = Producer({"bootstrap.servers": servers.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            for record in range(2 if partition != EMPTY else 0):
                value = f"{partition}.{number}.{record}"
                producer.produce(topic, value, partition=partition, timestamp=1000 * (1 + number) + record)
        producer.flush()  # else what is aborted may never have been sent
        producer.commit_transaction() if number < 3 else producer.abort_transaction()
    return topic


def test_the_last_record_before_each_offset(kafka, written):
    # Two records and a marker of each transaction: 0 1 | 3 4 | 6 7 | (9 10), the markers at 2, 5, 8 and 11.
    places = [((written, partition), end) for partition in range(PARTITIONS) for end in (0, 1, 3, 5, 12, 99)]
    found = {at: message.value().decode() for at, message in kafka.last_before(places).items()}
    ends = {1: "0.0", 3: "0.1", 5: "1.1", 12: "2.1", 99: "2.1"}
    expected = {
        ((written, partition), end): f"{partition}.{last}" for partition in range(EMPTY) for end, last in ends.items()
    }
    assert found == expected


def test_the_newest_time_before_each_offset(kafka, written):
    assert kafka.times({(written, 0): 2, (written, 1): 12, (written, EMPTY): 5}) == {
        (written, 0): 1001,
        (written, 1): 3001,
    }


def test_a_tail_of_nothing_but_markers_ends(servers, topics, kafka):
    topic = topics["statistics"].name
    until(lambda: kafka.ends([topic]), 30, "the topic is not there")
    producer = Producer({"bootstrap.servers": servers.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    for number in range(TAIL + 2):
        producer.begin_transaction()
        producer.produce(topic, b"x", partition=0)
        producer.flush()
        producer.commit_transaction() if number == 0 else producer.abort_transaction()
    end = kafka.ends([topic])[topic, 0]
    assert kafka.last_before([((topic, 0), end)]) == {}
    assert kafka.last_before([((topic, 0), 2)])[(topic, 0), 2].value() == b"x"


def test_many_partitions_take_no_longer_than_a_few(kafka, servers, topics, written):
    """Each was waited for by itself once: a hundred partitions took a minute."""
    began = time.monotonic()
    ends = kafka.ends([topic.name for topic in topics])
    kafka.last_before(ends.items())
    assert len(ends) > 30
    assert time.monotonic() - began < 10


def test_a_topic_that_is_made_anew_is_another_one(servers, topics, kafka):
    both = [topics["alerts"].name, topics["incidents"].name]
    before = kafka.identities([*both, "no.such.topic"])
    assert before.keys() == set(both)
    assert kafka.identities([]) == {}  # of a savepoint of an earlier version
    client = connect(servers.bootstrap)
    delete(client, both[:1])
    until(lambda: both[0] not in client.list_topics(timeout=10).topics, 30, "it is still there")
    apply(client, [topics["alerts"]])
    after = kafka.identities(both)
    assert after[both[0]] != before[both[0]]
    assert after[both[1]] == before[both[1]]

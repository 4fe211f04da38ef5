"""A right that a user lacks is named by what needed it, where librdkafka's call only times out or counts records."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from connectors.kafka.client import fetch_committed, open_consumer
from connectors.kafka.transactions import TransactionalWriter
from jobs.runtime.rights import READ, WRITE, Right

USER = "apprentice"


@pytest.fixture(scope="module")
def user(secured):
    """A user that may write `events` by its own transactions, and nothing else."""
    secured.add(USER)
    secured.allow(USER, Right("topic", "events", WRITE))
    secured.allow(USER, Right("topic", "novelties", READ))
    secured.allow(USER, Right("transactional-id", USER, WRITE))
    return secured.connection(USER)


def test_a_groups_offsets(user):
    with open_consumer(user, "kappa.of-another") as consumer, pytest.raises(KafkaException) as refused:
        fetch_committed(consumer, [TopicPartition("events", 0)])
    assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize("topic", ["statistics", "novelties"], ids=["not even seen", "only read"])
def test_a_topic_among_others_of_a_transaction(user, topic):
    writer = TransactionalWriter(user, USER, {})
    writer.begin()
    writer.produce((name, 0, b"key", b"value", 0, None) for name in ("events", topic, "events"))
    with pytest.raises(KafkaException) as refused:
        writer.commit()
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    writer.abandon()

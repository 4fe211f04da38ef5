"""A record that is written at once: what a user reads if the broker refuses it, early or late."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from connectors.kafka import producer
from connectors.kafka.producer import write_now
from infra.errors import UserError

DENIED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)


class RefusesAtOnce:
    """A producer to which the broker's answer is known before a record is queued."""

    def produce(self, *arguments, **more):
        raise KafkaException(DENIED)

    def flush(self, seconds):
        return 0


class RefusesLate(RefusesAtOnce):
    """A producer that learns of the refusal when the record is sent."""

    def produce(self, topic, value, key, partition, on_delivery):
        on_delivery(DENIED, None)


@pytest.mark.parametrize("refuses", [RefusesAtOnce, RefusesLate])
def test_a_lacking_right_is_said_in_words(monkeypatch, refuses):
    monkeypatch.setattr(producer, "reach", lambda bootstrap: None)
    monkeypatch.setattr(producer, "make_producer", lambda *settings: refuses())
    with pytest.raises(UserError, match=r"'inventory'.* lacks a right"):
        write_now("a:1", "inventory", "key", b"value")

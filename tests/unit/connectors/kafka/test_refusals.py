import time

import pytest
from confluent_kafka import KafkaError

from connectors.kafka.refusals import hear, refusal_since

WRONG_PASSWORD = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: invalid credentials")


@pytest.mark.parametrize(
    ("error", "is_refusal"),
    [
        (WRONG_PASSWORD, True),
        (KafkaError(KafkaError._SSL, "certificate verify failed"), True),
        (KafkaError(KafkaError._TRANSPORT, "Receive failed: ssl/tls alert bad certificate: SSL alert number 42"), True),
        (KafkaError(KafkaError._TRANSPORT, "Connect to ipv4#127.0.0.1:3 failed: Connection refused"), False),
        (KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"), False),
    ],
)
def test_a_refusal_is_told_from_an_absence(error, is_refusal):
    began = time.monotonic()
    hear(error)
    assert (refusal_since(began) is error) == is_refusal
    assert refusal_since(time.monotonic() + 1) is None

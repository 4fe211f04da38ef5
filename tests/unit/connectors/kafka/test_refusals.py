import time

import pytest
from confluent_kafka import KafkaError

from connectors.kafka import refusals
from connectors.kafka.refusals import Hearing, refusal_since

WRONG_PASSWORD = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: invalid credentials")


class Client:
    def __init__(self):
        self.logins = []

    def set_sasl_credentials(self, *login):
        self.logins.append(login)


@pytest.fixture
def login(monkeypatch):
    """What the environment says now."""
    present = ["kappa", "old"]
    monkeypatch.setattr(refusals._heard, "renew", lambda: tuple(present))
    return present


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
    Hearing(None)(error)
    assert (refusal_since(began) is error) == is_refusal
    assert refusal_since(time.monotonic() + 1) is None


def test_a_refused_client_takes_the_password_that_is_there_by_now(login):
    client, hearing = Client(), Hearing(("kappa", "old"))
    hearing.bind(client)
    hearing(WRONG_PASSWORD)
    assert client.logins == []  # it is the same
    login[1] = "new"
    hearing(WRONG_PASSWORD)
    hearing(WRONG_PASSWORD)
    assert client.logins == [("kappa", "new")]


def test_a_client_that_is_gone_is_not_held(login):
    client, hearing = Client(), Hearing(("kappa", "old"))
    hearing.bind(client)
    del client
    login[1] = "new"
    hearing(WRONG_PASSWORD)

"""A process whose password is changed while it runs goes on, without anybody polling its clients."""

import shutil

import pytest
from confluent_kafka import KafkaException

from connectors.kafka.client import make_consumer
from connectors.kafka.security import client_config
from tests.waiting import until

USER = "rotated"
NEW = "a new password"
QUIET = {"log_level": 0}


@pytest.fixture
def secrets(secured, tmp_path, monkeypatch):
    """The folder of this process's user."""
    secured.add(USER)
    folder = shutil.copytree(secured.identities.user(USER), tmp_path / "secrets")
    monkeypatch.setenv("KAPPA_SECRETS", str(folder))
    return folder


def is_let_in(consumer):
    try:
        consumer.list_topics(timeout=5)
    except KafkaException:
        return False
    return True


def test_clients_take_the_password_that_is_there_by_now(secured, secrets):
    connection = client_config(secured.bootstrap)
    secured.add(USER, NEW)
    refused = make_consumer(connection, "g", QUIET)
    assert not is_let_in(refused), "the file has the former password"

    (secrets / "kappa_kafka_sasl_password").write_text(NEW)
    later = make_consumer(connection, "g", QUIET)  # of what a job keeps from its start
    assert is_let_in(later)
    until(lambda: is_let_in(refused), 30, "the client that was refused is still refused")
    for consumer in (refused, later):
        consumer.close()

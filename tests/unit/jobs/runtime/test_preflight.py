"""A start waits for a broker and its topics, for as long as the settings say."""

import re
import threading

import pytest
import structlog
from confluent_kafka import KafkaError, KafkaException

from connectors.kafka.admin import BrokerLimits
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime import preflight
from jobs.runtime.settings import Settings

TOPICS = load_topics()
NO_ANSWER = KafkaException(KafkaError(KafkaError._TIMED_OUT))
ALL = {topic.name: topic.partitions for topic in TOPICS}


@pytest.fixture
def answers(monkeypatch):
    """What the broker says, one after another; the last one again and again."""
    said = []

    def answer(*_):
        found = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(preflight, "reach", lambda *_: None)
    monkeypatch.setattr(preflight, "partitions_of", answer)
    return said


def _check(tmp_path, patience):
    settings = Settings(home=tmp_path, broker_patience_seconds=patience)
    preflight.check_surroundings(settings, TOPICS, threading.Event())


def test_broker_and_topics_are_waited_for(answers, tmp_path):
    answers.extend([NO_ANSWER, UserError("topic 'events': lacks a right"), {}, ALL])
    _check(tmp_path, 30)
    assert answers == [ALL]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (NO_ANSWER, "no broker answers"),
        (UserError("topic 'events': lacks a right"), "topic 'events': lacks a right"),
        ({}, "topic 'alerts' is not on"),
        ({**ALL, "events": 3}, "topic 'events' has 3 partitions, the map says 4"),
    ],
)
def test_what_is_not_there_in_time_is_named(answers, tmp_path, answer, fault):
    answers.append(answer)
    with pytest.raises(UserError, match=fault):
        _check(tmp_path, 0)


# The brokers' limits

EVENTS, TELEMETRY = TOPICS["events"], TOPICS["telemetry.lines"]
BROKER = {"transaction.max.timeout.ms": "900000", "offsets.retention.minutes": "10080"}
TOPIC = {"max.message.bytes": "10485760", "min.insync.replicas": "2", "unclean.leader.election.enable": "false"}


def _faults(topic=EVENTS, broker=(), config=(), replicas=3, **settings):
    limits = BrokerLimits({topic.name: {**TOPIC, **dict(config)}}, {topic.name: replicas}, {**BROKER, **dict(broker)})
    return list(preflight.faults(limits, Settings(**settings), [topic], TOPICS.telemetry))


def test_kafkas_defaults_and_the_maps_topics_keep_every_promise():
    assert _faults() == []
    assert _faults(replicas=1, config={"min.insync.replicas": "1"}) == []
    assert _faults(TELEMETRY, config={"max.message.bytes": "1048588"}) == []  # collectors' own limit


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"config": {"max.message.bytes": "1048588"}},
            "max.message.bytes=1048588, the map says 10485760.*kafka-configs --bootstrap-server 127.0.0.1:9092 --alter "
            "--entity-type topics --entity-name events --add-config max.message.bytes=10485760`",
        ),
        ({"config": {"min.insync.replicas": "4"}}, "=4, but 3 replicas.*--add-config min.insync.replicas=2`"),
        ({"config": {"min.insync.replicas": "1"}}, "=1 with 3 replicas.*--add-config min.insync.replicas=2`"),
        ({"config": {"unclean.leader.election.enable": "true"}}, "can be lost.*unclean.leader.election.enable=false`"),
        (
            {"broker": {"transaction.max.timeout.ms": "60000"}},
            "transaction.max.timeout.ms=60000.*KAPPA_TRANSACTION_TIMEOUT_SECONDS=600.*set it to 600000",
        ),
        (
            {"broker": {"offsets.retention.minutes": "1440"}},
            "offsets.retention.minutes=1440.*the 10080 minutes for which.*set it to 525600",
        ),
    ],
)
def test_a_limit_that_breaks_a_promise_is_named_with_what_mends_it(changes, said):
    (fault,) = _faults(**changes)
    assert re.search(said, fault)


def test_without_the_right_to_ask_there_is_one_warning_that_says_why(monkeypatch):
    def refuse(*_):
        raise KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))

    monkeypatch.setattr(preflight, "read_limits", refuse)
    with structlog.testing.capture_logs() as logged:
        preflight.check_limits(Settings(), [EVENTS], [TELEMETRY])
    (warning,) = logged
    assert "Cluster authorization failed" in warning["reason"] and "DescribeConfigs" in warning["remedy"]


def test_a_fault_ends_the_start(monkeypatch):
    limits = BrokerLimits({"events": {**TOPIC, "max.message.bytes": "5"}}, {"events": 1}, BROKER)
    monkeypatch.setattr(preflight, "read_limits", lambda *_: limits)
    with pytest.raises(UserError, match=r"'events' has max\.message\.bytes=5"):
        preflight.check_limits(Settings(), [EVENTS], [TELEMETRY])

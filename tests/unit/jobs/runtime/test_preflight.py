"""A start waits for a broker and its topics, for as long as the settings say."""

import threading

import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime import preflight
from jobs.runtime.settings import Settings

TOPICS = load_topics()
ALL = {topic.name: topic.partitions for topic in TOPICS}


@pytest.fixture
def answers(monkeypatch):
    """What the broker says, one after another; the last one again and again."""
    said = []
    monkeypatch.setattr(preflight, "_ask", lambda _: said.pop(0) if len(said) > 1 else said[0])
    return said


def _check(tmp_path, patience):
    settings = Settings(home=tmp_path, broker_patience_seconds=patience)
    preflight.check_surroundings(settings, TOPICS, threading.Event())


def test_broker_and_topics_are_waited_for(answers, tmp_path):
    answers.extend([None, {}, ALL])
    _check(tmp_path, 30)
    assert answers == [ALL]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (None, "no broker answers"),
        ({}, "topic 'alerts' is not on"),
        ({**ALL, "events": 3}, "topic 'events' has 3 partitions, the map says 4"),
    ],
)
def test_what_is_not_there_in_time_is_named(answers, tmp_path, answer, fault):
    answers.append(answer)
    with pytest.raises(UserError, match=fault):
        _check(tmp_path, 0)

"""When a watch ends, and what it says then; the time is the test's."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from ops.upgrade import watch as module
from ops.upgrade.looks import Look, Stand
from ops.upgrade.mark import Before, Mark
from ops.upgrade.watch import measure, watch
from tests.clock import Clock

MARK = Mark(mode="checkpoint", taken="now", queries={"detector": Before(owner="old", lag=5)})


@pytest.fixture
def now(monkeypatch):
    """The time, which passes only where the watch waits."""
    clock = Clock(1000.0)
    monkeypatch.setattr(module, "time", clock)
    return clock


def of(now, owner, lag=lambda _: 0):
    def look():
        seconds = now.now - 1000
        return Look(now.now, {"detector": Stand(owner(seconds), int(seconds), lag(seconds), 0)})

    return look


def test_it_ends_as_soon_as_the_new_image_is_ready(now):
    said = []
    found = watch(MARK, of(now, lambda at: "old" if at < 30 else "new"), 600, said.append)
    assert (found.is_ready, found.seconds) == (True, 90)
    assert str(found) == "ready after 90 s: each of 1 queries goes on; their lag is as before, or falls"
    assert said[0] == "detector: no copy of the new image has begun to write"
    assert said[-1] == "detector: has written 58 batches in 58 s"
    assert found.last and found.last.stands["detector"].owner == "new"


def test_it_ends_as_soon_as_it_is_clear_that_it_is_not(now):
    found = watch(MARK, of(now, lambda at: f"new {at // 20}"), 600, lambda _: None)
    assert str(found) == "not ready after 60 s: detector: was started 4 times in 60 s; its log says why it ends"


def test_it_ends_at_the_deadline_with_what_was_waited_for(now):
    found = watch(MARK, of(now, lambda _: "new", lambda at: int(10 * at)), 240, lambda _: None)
    assert str(found) == "not ready after 240 s: detector: its lag does not fall: 2,400 records, 15 are usual"


def test_at_the_deadline_a_lag_that_falls_is_enough(now):
    found = watch(MARK, of(now, lambda _: "new", lambda at: 10_000 - int(30 * at)), 240, lambda _: None)
    assert (found.is_ready, found.seconds) == (True, 240)


def test_a_broker_that_is_started_again_is_waited_for(now):
    good = of(now, lambda _: "new")

    def look():
        if now.now < 1020:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "connection refused"))
        return good()

    said = []
    found = watch(MARK, look, 600, said.append)
    assert said[0] == "Kafka does not answer: connection refused"
    assert (found.is_ready, found.seconds) == (True, 80)


def test_a_broker_that_never_answers_is_named(now):
    def look():
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "connection refused"))

    found = watch(MARK, look, 20, lambda _: None)
    assert str(found) == "not ready after 20 s: Kafka does not answer: connection refused" and found.last is None


def test_what_is_usual_is_measured_for_as_long_as_is_said(now):
    looks = measure(of(now, lambda _: "old"), 60)
    assert (looks[0].at, looks[-1].at) == (1000, 1060)

"""Deliveries on their way: records of their states, order in a thread, retries, and what is forgotten."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from infra.contract.json_schema import json_schema
from infra.contract.schemas import NOTIFICATIONS
from jobs.notifier.deliveries import LONGEST_RETRY_SECONDS, Deliveries, retry_seconds
from jobs.notifier.delivery import from_record
from tests.unit.jobs.notifier.records import SECOND, START, incident, notice, planned, routing

SCHEMA = Draft202012Validator(json_schema("notifications", NOTIFICATIONS))
DAY = 86_400 * SECOND
ALL = routing({"channels": ["mail", "pager"]})
NOW, CLOCK = START + DAY, 1000.0


def of(*records, quiet=(), channels=("mail",)):
    known = Deliveries()
    made = planned(routing({"channels": list(channels), "quiet": list(quiet)}), *map(notice, records), known=known)
    return known, made


def test_every_state_is_a_record_of_its_schema_and_can_be_read_again():
    (one,) = of(incident())[1]
    states = [one, one.begun(), one.begun().failed("HTTP 503"), one.begun().sent(), one.begun().failed("x").dead()]
    for state in states:
        record = orjson.loads(orjson.dumps(state.to_record()))
        SCHEMA.validate(record)
        assert from_record(record) == state
    assert {*states[0].to_record()} | {"reason", "link"} == set(NOTIFICATIONS.names)
    assert [state.attempt for state in states] == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("record", [{}, {"id": "x"}, {"source": {}}])
def test_another_record_is_no_delivery(record):
    with pytest.raises((KeyError, TypeError)):
        from_record(record)


def test_the_oldest_is_due_first_and_of_a_thread_only_the_first():
    known, (start, end, other) = of(incident("i1"), incident("i1", "end", 50), incident("i2", second=10))
    assert known.due("mail", NOW, CLOCK) == start
    known.apply(start.begun().failed("x"))
    known.retry_later(start.begun(), CLOCK)
    assert known.due("mail", NOW, CLOCK) == other  # the end waits for its start
    known.apply(start.begun().begun().sent())
    known.apply(other.begun().sent())
    assert known.due("mail", NOW, CLOCK) == end


def test_channels_know_nothing_of_each_other():
    known, (mail, pager) = of(incident(), channels=("mail", "pager"))
    known.apply(mail.begun().failed("x"))
    known.retry_later(mail.begun(), CLOCK)
    assert known.due("mail", NOW, CLOCK) is None and known.due("pager", NOW, CLOCK) == pager


def test_a_retry_waits_twice_as_long_each_time_up_to_a_bound():
    assert [retry_seconds(attempt) for attempt in (1, 2, 3, 4)] == [1, 2, 4, 8]
    assert retry_seconds(10) == retry_seconds(10**6) == LONGEST_RETRY_SECONDS


def test_a_failure_waits_by_the_clock_and_not_over_a_restart():
    known, (one,) = of(incident())
    failed = one.begun().begun().failed("x")
    known.apply(failed)
    known.retry_later(failed, CLOCK)
    assert known.due("mail", NOW, CLOCK + 1.9) is None
    assert known.due("mail", NOW, CLOCK + 2.0) == failed
    again = Deliveries()
    again.apply(failed)
    assert again.due("mail", NOW, CLOCK) == failed


def test_once_a_channel_works_again_nothing_waits_for_it():
    known, (one, other) = of(incident("i1"), incident("i2"))
    known.retry_later(other.begun(), CLOCK)
    known.apply(one.begun().sent())
    assert known.due("mail", NOW, CLOCK) is None
    known.retry_all("mail")
    assert known.due("mail", NOW, CLOCK) == other


def test_an_attempt_that_a_kill_interrupted_is_due_again():
    _, (one,) = of(incident())
    known = Deliveries()
    for state in (one, one.begun()):
        known.apply(state)
    assert known.due("mail", NOW, CLOCK) == one.begun()


def test_quiet_hours_hold_by_the_wall_clock():
    known, (one,) = of(incident(), quiet=[{"from": "14:00", "to": "15:00"}])
    assert known.due("mail", one.hold_until_unix_nano - 1, CLOCK) is None
    assert known.due("mail", one.hold_until_unix_nano, CLOCK) == one


def test_what_must_not_wait_takes_what_is_before_it_in_its_thread_along():
    known = Deliveries()
    routes = routing({"quiet": [{"from": "14:00", "to": "15:00"}]}, {"severity": "critical"})
    start, _ = planned(routes, notice(incident()), notice(incident(phase="update", second=5, machines=3)), known=known)
    assert known.due("mail", START + 10 * SECOND, CLOCK) == start


def test_it_is_stale_once_event_time_has_passed_it_or_its_quiet_hours():
    known, (one,) = of(incident(), quiet=[{"from": "14:00", "to": "15:00"}])
    known.event_time = one.hold_until_unix_nano + DAY
    assert not known.is_stale(one, DAY)
    known.event_time += 1
    assert known.is_stale(one, DAY)


def test_what_is_finished_is_known_until_it_is_evicted_and_what_is_open_stays():
    known, (old, open_) = of(incident("i1"), incident("i2"))
    known.apply(old.begun().sent())
    known.evict(START)
    assert known.knows(old.key) and known.thread("mail", old.thread)
    known.evict(START + 1)
    assert not known.knows(old.key) and known.thread("mail", old.thread) is None
    assert known.knows(open_.key) and known.thread("mail", open_.thread)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["begin", "sent", "failed", "restart"])), max_size=40))
def test_whatever_fails_or_is_restarted_each_is_sent_once_and_in_order(steps):
    """An attempt is what `due` gave; its outcome may be lost by a restart, and then it is attempted again."""
    records = [incident("i1"), incident("i2", second=1), incident("i1", "end", 5), incident("i2", "end", 6)]
    known, log = Deliveries(), []
    log += planned(ALL, *map(notice, records), known=known)
    sent: dict[str, list[str]] = {"mail": [], "pager": []}
    running: dict[str, object] = {}
    clock = CLOCK

    def write(state):
        known.apply(state)
        log.append(state)

    for number, action in steps + [(n, a) for n in range(2) for a in ("begin", "sent")] * 8:
        channel, clock = ("mail", "pager")[number % 2], clock + 400
        if action == "restart":
            running.clear()
            known = Deliveries()
            for state in log:
                known.apply(state)
        elif action == "begin" and channel not in running:
            if due := known.due(channel, NOW, clock):
                running[channel] = due.begun()
                write(running[channel])
        elif action != "begin" and channel in running:
            attempt = running.pop(channel)
            if action == "sent":
                sent[channel].append(attempt.id)
            write(attempt.sent() if action == "sent" else attempt.failed("x"))
    ids = [notice(record).id for record in records]
    for received in sent.values():
        assert sorted(received) == sorted(ids)
        assert received.index(ids[0]) < received.index(ids[2]) and received.index(ids[1]) < received.index(ids[3])

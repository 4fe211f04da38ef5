"""What is learned from the delays of the last hour, and when it becomes a decision."""

import pytest

from infra.contract.lateness import AllowedLateness, Decision
from infra.contract.topics import Lateness
from jobs.runtime.last_hour import REMEMBERED_MS
from jobs.runtime.lateness import ENOUGH, FIRST_MS, NOTICE_MS, LatenessLearner

METRICS, LOGS = "telemetry.metrics", "telemetry.logs"
START = 1_760_000_000_000
SECOND = 10  # of tenths


def learner(*decided, share=0.01):
    declared = {METRICS: Lateness(max="20s", share=share), LOGS: Lateness(max="20s", share=share)}
    return LatenessLearner(AllowedLateness(declared, decided))


def watch(one, delays, seconds, start=START):
    """These delays each second; the decisions that follow, as soon as they are made."""
    found = []
    for second in range(seconds):
        now = start + 1000 * second
        one.observe(delays, now, now)
        if decision := one.decision(now):
            one.allowed.decide([decision])
            found.append((second, decision))
    return found


def test_after_a_minute_it_is_as_short_as_all_but_the_share_need_and_half_as_much():
    ((second, decision),) = watch(learner(), {METRICS: {10 * SECOND: 1, 2 * SECOND: 100}}, 120)
    assert second == FIRST_MS / 1000
    assert decision == Decision(START + FIRST_MS + NOTICE_MS, 3_000)


def test_what_a_first_batch_has_found_waiting_counts_for_the_minute():
    one = learner()
    one.observe({METRICS: {2 * SECOND: 1000}}, START - 20_000, START)
    ((second, decision),) = watch(one, {METRICS: {2 * SECOND: 100}}, 60)
    assert second == FIRST_MS / 1000 - 20
    assert decision.lateness_ms == 3_000


def test_of_a_share_that_is_exceeded_it_is_the_longer_delay():
    ((_, decision),) = watch(learner(), {METRICS: {10 * SECOND: 2, 2 * SECOND: 100}}, 120)
    assert decision.lateness_ms == 15_000


def test_the_slowest_topic_counts_however_few_records_it_has():
    ((_, decision),) = watch(learner(), {METRICS: {SECOND: 1000}, LOGS: {4 * SECOND: 1}}, 120)
    assert decision.lateness_ms == 6_000


def test_it_is_a_second_at_least_and_never_more_than_the_map_says():
    ((_, shortest),) = watch(learner(), {METRICS: {0: 100}}, 120)
    assert shortest.lateness_ms == 1_000
    assert watch(learner(), {METRICS: {15 * SECOND: 100}}, 120) == []  # which is the 20 s that hold anyway


def test_what_is_late_whatever_is_decided_does_not_count():
    ((_, decision),) = watch(learner(), {METRICS: {SECOND: 100, 40 * SECOND: 50}, "another": {5 * SECOND: 9}}, 120)
    assert decision.lateness_ms == 2_000


def test_few_records_decide_nothing():
    assert watch(learner(), {METRICS: {SECOND: 1}}, ENOUGH - 1) == []


def test_more_is_decided_at_once():
    one = learner(Decision(START, 2_000))
    assert watch(one, {METRICS: {SECOND: 1000}}, 30) == []
    ((second, decision),) = watch(one, {METRICS: {6 * SECOND: 1000}}, 30, start=START + 30_000)
    assert (second, decision) == (0, Decision(START + 30_000 + NOTICE_MS + 7_000, 9_000))


@pytest.mark.parametrize("minutes", [59, 61])
def test_less_is_decided_after_an_hour(minutes):
    one = learner(Decision(START, 9_000))
    found = watch(one, {METRICS: {SECOND: 1000}}, minutes * 60)
    assert [decision.lateness_ms for _, decision in found] == ([2_000] if minutes * 60_000 > REMEMBERED_MS else [])


def test_an_hour_is_forgotten():
    one = learner(Decision(START, 9_000))
    one.observe({METRICS: {6 * SECOND: 5_000}}, START, START)
    assert [decision.lateness_ms for _, decision in watch(one, {METRICS: {SECOND: 1}}, 3_590, START + 1000)] == []
    found = watch(one, {METRICS: {SECOND: 1000}}, 200, START + REMEMBERED_MS + 60_000)
    assert [decision.lateness_ms for _, decision in found] == [2_000]

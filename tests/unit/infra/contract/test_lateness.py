"""How late an event may be: by the map, by decisions, and over the time to come."""

from datetime import timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.contract.lateness import AllowedLateness, Decision
from infra.contract.topics import Lateness, load_topics

LEARNED, FIXED = "telemetry.metrics", "telemetry.fixed"
DECLARED = {LEARNED: Lateness(max="20s", share=0.01), FIXED: Lateness(max="8s")}
decisions = st.lists(st.builds(Decision, st.integers(0, 200), st.integers(0, 30_000)), max_size=6)


def allowed(*decided):
    return AllowedLateness(DECLARED, decided)


def test_without_a_decision_it_is_what_the_map_says():
    assert (allowed().at(LEARNED, 10), allowed().at(FIXED, 10)) == (20_000, 8_000)


def test_a_decision_holds_from_its_time_on_until_the_next():
    one = allowed(Decision(100, 2_000), Decision(200, 5_000))
    assert [one.at(LEARNED, time) for time in (99, 100, 199, 200)] == [20_000, 2_000, 2_000, 5_000]


def test_a_decision_is_never_longer_than_the_map_says_and_holds_only_where_it_is_learned():
    one = allowed(Decision(100, 60_000))
    assert (one.at(LEARNED, 100), one.at(FIXED, 100)) == (20_000, 8_000)


def test_of_two_decisions_for_one_time_the_later_in_the_log_holds():
    assert allowed(Decision(100, 2_000), Decision(100, 3_000)).at(LEARNED, 100) == 3_000


def test_what_was_decided_last_is_known_before_it_holds():
    assert (allowed().latest_ms, allowed(Decision(100, 2_000)).latest_ms) == (20_000, 2_000)


@given(decisions, st.integers(0, 250))
def test_no_later_record_may_have_an_older_event(decided, time):
    one = allowed(*decided)
    assert one.oldest(LEARNED, time) == min(later - one.at(LEARNED, later) for later in range(time, 260))


def test_a_record_of_a_decision_is_read_as_what_was_written():
    decision = Decision(1_760_000_000_000, 2_000)
    assert Decision.of(orjson.loads(decision.value())) == decision
    assert decision.key() == b"1760000000000"


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"from_unix_milli": 1},
        {"from_unix_milli": "1", "lateness_milli": 2},
        {"from_unix_milli": -1, "lateness_milli": 2},
    ],
)
def test_what_is_no_decision_is_none(record):
    assert Decision.of(record) is None


def test_every_telemetry_topic_of_the_map_has_a_lateness_that_is_learned():
    topics = load_topics()
    one = AllowedLateness.of(topics)
    assert {*one.learned} == {topic.name for topic in topics if topic.format}
    assert {declared.max for declared in one.by_topic.values()} == {timedelta(seconds=20)}

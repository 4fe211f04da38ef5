import pytest

from jobs.rules.rule import SECOND, Observation
from tests.unit.jobs.rules.logs import alerts, line, point, record, sequence, shown, watermark


def of(lines, **fields):
    return alerts([sequence(**fields)], record(*(line(*one) for one in lines)), watermark(10_000))


def test_an_event_and_then_another_is_an_alert_at_the_second():
    (alert,) = of([(0, "A 1"), (10, "A 2"), (20, "x"), (40, "B 3"), (41, "B 4")])
    assert shown([alert]) == [("vm-1", "start", 40, 10)]
    assert [one["body"] for one in alert["observed"]] == ["A 2", "B 3"]
    assert alert["text"] == 'A then B: on vm-1 "A 2" and 30 s later "B 3"'


@pytest.mark.parametrize(
    "lines",
    [
        [(0, "B"), (10, "A")],
        [(0, "A"), (30.001, "B")],
        [(5, "A"), (5, "B")],  # of one time: which was first, nobody knows
        [(0, "A")],
        [(0, "xA"), (1, "B")],
    ],
)
def test_anything_else_is_none(lines):
    assert of(lines) == []


def test_both_must_be_of_one_machine():
    values = [record(line(0, "A")), record(line(1, "B"), machine="vm-2"), watermark(100)]
    assert alerts([sequence()], *values) == []


def test_the_same_event_twice_can_be_a_sequence():
    found = of([(0, "A 1"), (10, "A 2"), (15, "A 3")], then={"log": "^A"}, cooldown="1s")
    assert shown(found) == [("vm-1", "start", 10, 0), ("vm-1", "start", 15, 10)]


def test_thresholds_of_metrics_can_be_steps():
    steps = {"first": {"metric": "temperature", "above": 80}, "then": {"log": "throttl", "severity": "WARN"}}
    values = [record(point(0, 80), point(5, 81)), record(line(9, "CPU throttled", 9), line(12, "CPU throttled", 13))]
    (alert,) = alerts([sequence(**steps)], *values, watermark(100))
    assert shown([alert]) == [("vm-1", "start", 12, 5)]
    assert "temperature{sensor=cpu} = 81 and 7 s later" in alert["text"]


def test_a_first_event_that_is_too_old_is_dropped():
    tracker = sequence().tracker()
    list(tracker.take(0, [Observation(0, "s", None, "A")]))
    assert tracker.packed()
    list(tracker.advance(30 * SECOND + 1))
    assert tracker.packed() == {}

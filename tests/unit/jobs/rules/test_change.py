import pytest

from jobs.rules.change import MOST_POINTS
from jobs.rules.rule import SECOND, Observation
from tests.unit.jobs.rules.logs import alerts, change, point, record, shown, watermark


def of(values, **fields):
    """The alerts of a series with these (second, value) points."""
    return alerts([change(**fields)], record(*(point(*one) for one in values)), watermark(10_000))


def test_a_rise_by_so_much_within_the_time_is_an_alert_at_the_point_that_reaches_it():
    (alert,) = of([(0, 50), (10, 41), (40, 55), (70, 61.5), (80, 99)])
    assert shown([alert]) == [("vm-1", "start", 70, 10)]
    assert [(one["time_unix_nano"] // SECOND, one["value"]) for one in alert["observed"]] == [(10, 41), (70, 61.5)]
    assert alert["text"] == "Hot: temperature{sensor=cpu} of vm-1 went from 41 to 61.5 in 60 s"


@pytest.mark.parametrize(
    "values",
    [
        [(0, 40), (30, 59.9)],  # not by so much
        [(0, 40), (60.001, 60)],  # not within the time
        [(0, 60), (30, 40)],  # a fall
        [(0, 40), (30, None), (61, 60)],  # without a value
        [(5, 40), (5, 60)],  # at one time: which was first, nobody knows
    ],
)
def test_what_is_less_is_none(values):
    assert of(values) == []


def test_a_fall_is_one_where_it_is_asked_for():
    assert shown(of([(0, 60), (5, 65), (30, 45)], direction="fall")) == [("vm-1", "start", 30, 5)]


def test_each_series_is_compared_with_itself():
    values = [point(0, 10), point(10, 90, "temperature{sensor=gpu}"), point(20, 15), point(30, 95, "other", "other")]
    assert alerts([change()], record(*values), watermark(100)) == []


def test_during_the_cooldown_there_is_no_other_of_the_machine_and_then_one_of_its_own():
    values = [(0, 0), (10, 20), (20, 60), (100, 60), (130, 80), (140, 81)]
    assert [time for _, _, time, _ in shown(of(values, cooldown="2m"))] == [10, 130]


def test_a_tracker_keeps_a_bounded_number_of_points():
    tracker = change(within="1h", by=1e9).tracker()
    for number in range(MOST_POINTS + 500):
        assert not list(tracker.take(number, [Observation(0, "s", float(number), None)]))
    assert len(tracker.points["s"]) == MOST_POINTS


def test_a_tracker_without_recent_points_is_as_new():
    tracker = change().tracker()
    list(tracker.take(10 * SECOND, [Observation(0, "s", 1.0, None)]))
    list(tracker.advance(70 * SECOND))
    assert tracker.packed() == {"points": {"s": [(10 * SECOND, 1.0)]}}
    list(tracker.advance(70 * SECOND + 1))
    assert tracker.packed() == {}

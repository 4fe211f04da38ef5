import numpy as np
import pytest

from jobs.quality.smd import Machine, average_precision, found, machine_scores


def test_average_precision_is_the_area_of_the_steps() -> None:
    labels = np.array([True, False, True, False])
    assert average_precision(labels, np.array([4.0, 3.0, 2.0, 1.0])) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)


def test_equal_scores_are_one_step() -> None:
    assert average_precision(np.array([True, False]), np.array([1.0, 1.0])) == pytest.approx(0.5)


def test_machines_are_judged_by_their_own_series() -> None:
    windows, owner = np.array([[9.0, 0.0, 4.0]]), np.array([0, 0, 1])
    together = machine_scores(windows, owner, np.ones((1, 3), bool))[0]
    alone = machine_scores(windows[:, 2:], np.zeros(1, np.int64), np.ones((1, 1), bool))[0]
    assert together[1] == alone[0]
    assert together[0] > together[1]


def test_events_and_false_alarms_are_counted_by_span() -> None:
    labels = np.zeros(1440, bool)
    labels[100:110] = labels[500:510] = True
    hits = np.zeros(1440, bool)
    hits[[105, 700, 702, 900]] = True
    machine = Machine("m", np.zeros((0, 1)), np.zeros((1440, 1)), labels)
    assert found([machine], {"m": hits}) == {"events": 2, "events_found": 1, "false_alarms_per_day": 2.0}

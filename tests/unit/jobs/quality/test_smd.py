import numpy as np
import pytest

from jobs.quality.smd import Machine, average_precision, figures, machine_score


def test_average_precision_is_the_area_of_the_steps() -> None:
    labels = np.array([True, False, True, False])
    assert average_precision(labels, np.array([4.0, 3.0, 2.0, 1.0])) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)


def test_equal_scores_are_one_step() -> None:
    assert average_precision(np.array([True, False]), np.array([1.0, 1.0])) == pytest.approx(0.5)


def test_machine_score_is_the_harmonic_mean_of_probabilities() -> None:
    scores = -np.log(np.array([[0.1, 0.2]]))
    assert machine_score(scores)[0] == pytest.approx(-np.log(2 / (10 + 5)))


def test_series_that_move_together_count_once() -> None:
    one, many = np.array([[20.0]]), np.full((1, 30), 20.0)
    assert machine_score(many)[0] == pytest.approx(machine_score(one)[0])


def test_events_and_false_alarms_are_counted_by_span() -> None:
    labels = np.zeros(1440, bool)
    labels[100:110] = labels[500:510] = True
    scores = np.zeros(1440)
    scores[[105, 700, 702, 900]] = 9.0
    machine = Machine("m", np.zeros((0, 1)), np.zeros((1440, 1)), labels)
    result = figures([machine], {"m": scores}, 5.0)
    assert (result["events"], result["events_found"], result["false_alarms_per_day"]) == (2, 1, 2.0)

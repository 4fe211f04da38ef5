import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.detector.model_machines import MOST, Machines, joint_score

PROBABILITIES = st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=40)


def machines(number: int) -> Machines:
    made = Machines()
    made.grow(number)
    return made


def last_score(scores: np.ndarray) -> float:
    """Of one machine after these windows, shape (windows, series)."""
    made = machines(1)
    told = [made.step(np.zeros(len(row), np.int64), row)[1][0] for row in scores]
    return float(told[-1])


@given(PROBABILITIES)
def test_the_joint_score_is_the_harmonic_mean_of_probabilities(probabilities: list[float]) -> None:
    p = np.array(probabilities)
    expected = -np.log(len(p) / np.sum(1.0 / p))
    assert joint_score(np.zeros(len(p), np.int64), -np.log(p))[0] == pytest.approx(expected, abs=1e-9)


def test_scores_beyond_any_float_are_joined() -> None:
    assert joint_score(np.zeros(2, np.int64), np.array([700.0, 0.0]))[0] == pytest.approx(700.0 - np.log(2.0))


def test_series_that_move_together_count_once() -> None:
    assert last_score(np.full((9, 30), 7.0)) == pytest.approx(last_score(np.full((9, 1), 7.0)))


def test_many_strange_series_say_more_than_one() -> None:
    one, many = np.zeros((9, 30)), np.full((9, 30), 7.0)
    one[:, 0] = 7.0
    assert last_score(many) > last_score(one) + 2.0


def test_windows_in_a_row_say_more_than_one() -> None:
    assert last_score(np.full((9, 1), 9.0)) > last_score(np.array([[0.0]] * 8 + [[9.0]])) + 4.0


def test_one_window_says_no_more_than_most() -> None:
    assert last_score(np.array([[700.0]])) == last_score(np.array([[MOST]]))


def test_machines_that_say_nothing_keep_their_score() -> None:
    made = machines(3)
    made.step(np.array([0, 2, 2]), np.array([5.0, 9.0, 1.0]))
    before = made.columns["spell"].copy()
    present, _ = made.step(np.array([0]), np.array([5.0]))
    assert present.tolist() == [0]
    assert made.columns["spell"][1:].tolist() == before[1:].tolist()
    assert made.columns["spell"][0] > before[0]

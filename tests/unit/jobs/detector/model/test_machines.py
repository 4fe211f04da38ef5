import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.detector.model.cooldown import COOLDOWN_WINDOWS
from jobs.detector.model.machines import BYTES_PER_MACHINE, LIKE, MOST, Joint, MachineModel, joint_score
from jobs.detector.model.sustained import KNOWN_AFTER

THRESHOLD = 10.0
NOBODY = np.zeros(0, np.int64)
PROBABILITIES = st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=40)


def machines(number: int) -> MachineModel:
    made = MachineModel()
    made.grow(number)
    return made


def last_score(scores: np.ndarray) -> float:
    """Of one machine after these windows, shape (windows, series)."""
    made = machines(1)
    means = [step(made, row).mean[0] for row in scores]
    return float(means[-1])


def step(made: MachineModel, row: np.ndarray, window: int = 1) -> Joint:
    return made.step(np.zeros(len(row), np.int64), row, THRESHOLD, window)


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
    made.step(np.array([0, 2, 2]), np.array([5.0, 9.0, 1.0]), THRESHOLD, 1)
    before = made.dump()["sustained"].copy()
    assert made.step(np.array([0]), np.array([5.0]), THRESHOLD, 1).machines.tolist() == [0]
    assert made.dump()["sustained"][1:].tolist() == before[1:].tolist()
    assert made.dump()["sustained"][0] > before[0]


def test_a_machine_of_one_series_has_nothing_to_add() -> None:
    made = machines(2)
    joint = made.step(np.array([0, 1, 1]), np.full(3, 19.0), THRESHOLD, 1)
    assert joint.score.tolist() == [0.0, pytest.approx(19.0 - np.log(2.0))]


def alerts_at(scores: list[float], busy: range = range(0)) -> list[int]:
    """The windows in which a machine is alerted whose 8 series have these scores; it has another alert in `busy`."""
    made, windows = machines(1), []
    for window, score in enumerate(scores, start=1):
        joint = step(made, np.full(8, score), window)
        some = np.zeros(1, np.int64) if window in busy else NOBODY
        if len(made.alerts(joint, some, THRESHOLD, window).machines):
            windows.append(window)
    return windows


def test_weak_surprises_are_alerted_when_they_last() -> None:
    usual = [1.0] * (KNOWN_AFTER + LIKE)
    assert alerts_at([*usual, 9.0, 9.0, 9.0]) == []
    assert len(usual) + 4 < alerts_at([*usual, *[9.0] * 30])[0] < len(usual) + 15
    assert alerts_at([9.0] * 30) == []  # nobody knows the machine yet


def test_a_machine_that_is_often_strange_is_alerted_less() -> None:
    often = ([1.0] * 20 + [9.0] * 20) * 40
    assert len(alerts_at(often)) < 4


def test_a_machine_is_alerted_once_and_then_only_what_is_louder() -> None:
    assert alerts_at([12.0] * 5 + [0.0] * 20 + [12.0] * 5 + [16.0] * 3) == [1, 31]
    assert alerts_at([12.0] + [0.0] * (COOLDOWN_WINDOWS + 1) + [12.0]) == [1, COOLDOWN_WINDOWS + 3]


def test_what_one_of_its_series_alerts_is_not_alerted_again() -> None:
    assert alerts_at([12.0] * 30, busy=range(1, 10)) == []
    assert alerts_at([12.0] * 10 + [16.0] * 3, busy=range(1, 10)) == [11]


def test_the_state_is_constant() -> None:
    made = machines(7)
    for _ in range(3):
        made.step(np.repeat(np.arange(7), 4), np.full(28, 9.0), THRESHOLD, 1)
    assert sum(column.nbytes for column in made.dump().values()) == 7 * BYTES_PER_MACHINE
    again = MachineModel({name: column.copy() for name, column in made.dump().items()})
    assert again.dump().keys() == made.dump().keys()

import numpy as np
import pytest

from ops.quality.nab import PROFILES, DataSet, score
from ops.quality.nab_reference import relative_entropy, windowed_gaussian

ROWS = 1000
DATA = [DataSet("one", np.arange(ROWS) * 300, np.zeros(ROWS), [(400, 449), (700, 799)])]


def detections(*rows: int) -> dict[str, np.ndarray]:
    scores = np.zeros(ROWS)
    scores[list(rows)] = 1.0
    return {"one": scores}


def standard(*rows: int) -> float:
    return score(DATA, detections(*rows), PROFILES["standard"], threshold=0.5)


def test_the_beginnings_of_all_windows_score_100() -> None:
    assert standard(400, 700) == pytest.approx(100.0)


def test_nothing_scores_0() -> None:
    assert standard() == pytest.approx(0.0)


def test_a_later_hit_in_a_window_scores_less_and_only_the_first_counts() -> None:
    assert standard(449, 700) < standard(425, 700) < standard(400, 700)
    assert standard(400, 425, 700) == pytest.approx(standard(400, 700))


def test_a_false_detection_costs_less_just_behind_a_window() -> None:
    far, near = 100.0 - standard(300, 400, 700), 100.0 - standard(400, 455, 700)
    # One whole false detection costs 0.11 of the 4 between the worst and the best of two windows.
    assert far == pytest.approx(100 * 0.11 / 4)
    assert 0 < near < far


def test_the_probation_is_not_scored() -> None:
    assert standard(10, 149, 400, 700) == pytest.approx(100.0)


def test_the_best_threshold_is_found() -> None:
    scores = np.zeros(ROWS)
    scores[[400, 700, 300, 310]] = [0.9, 0.8, 0.7, 0.6]
    assert score(DATA, {"one": scores}, PROFILES["standard"]) == pytest.approx(100.0)


def test_windowed_gaussian_is_one_minus_the_tail() -> None:
    values = np.array([0.0, 2.0, 1.0, 4.0])
    # Before the last value: mean 1, deviation sqrt(2/3).
    assert windowed_gaussian(values)[3] == pytest.approx(1 - 1.193e-4, abs=1e-6)


def test_relative_entropy_tells_a_histogram_that_is_new_and_only_once() -> None:
    values = np.concatenate([np.tile([0.0, 1.0], 100), np.full(100, 10.0)])
    emitted = np.flatnonzero(relative_entropy(values))
    assert emitted.min() == 200
    assert relative_entropy(values)[-40:].sum() == 0

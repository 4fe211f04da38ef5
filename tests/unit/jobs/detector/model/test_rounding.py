import numpy as np
import pytest

from jobs.detector.model.rounding import unresolved
from jobs.detector.model.window_model import WindowModel
from jobs.detector.settings import DetectorSettings

WINDOWS = 1500
ONE = np.ones(1)
ROW = np.zeros(1, np.int64)


def left(values: np.ndarray, is_count: bool = False) -> float:
    """What is unresolved of a series after these windows."""
    model = WindowModel(DetectorSettings())
    model.add(np.array([is_count]), ROW, 0)
    for window, value in enumerate(values.tolist(), start=1):
        model.step(window, ROW, value * ONE, ONE, 14.0)
    return float(unresolved(model.state, ROW)[0])


def either(share: float, low: float = 14.0, quantum: float = 1.0) -> np.ndarray:
    """A window is `low`, or with this chance a quantum more."""
    return low + quantum * (np.random.default_rng(2).random(WINDOWS) < share)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.35])
@pytest.mark.parametrize("quantum", [0.1, 1.0])
def test_of_two_neighbours_it_is_the_way_from_the_mean_to_their_middle(share: float, quantum: float) -> None:
    assert left(either(share, 14 * quantum, quantum)) / quantum == pytest.approx(0.5 - share, abs=0.07)


def test_noise_of_several_quanta_leaves_nothing() -> None:
    assert left(np.round(np.random.default_rng(2).normal(14.0, 0.7, WINDOWS))) == 0.0


def test_a_slow_drift_is_no_noise() -> None:
    assert left(np.round(np.linspace(10.0, 30.0, WINDOWS))) == pytest.approx(0.5, abs=0.02)


def test_few_changes_say_too_little_of_the_quantum() -> None:
    values = np.full(WINDOWS, 14.0)
    values[100:130:10] = 15.0
    assert left(values) == 0.0


def test_none_and_one_are_events_and_not_rounded() -> None:
    assert left(either(0.05, 0.0)) == 0.0


def test_counts_of_log_lines_are_not_rounded() -> None:
    assert left(either(0.05), is_count=True) == 0.0

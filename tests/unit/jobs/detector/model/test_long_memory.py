import numpy as np
import pytest

from jobs.detector.model.arrays import without_prefix
from jobs.detector.model.long_memory import CAUTION, CLIP, FINEST, KNOWN_AFTER, MOST, STAYS, LongMemory

ROW = np.zeros(1, np.int64)


def memory(series: int = 1) -> LongMemory:
    made = LongMemory(without_prefix("", {}, LongMemory.LAYOUT))
    made.grow(series)
    return made


def levels(values: np.ndarray, made: LongMemory | None = None, first: int = 1) -> np.ndarray:
    """The level's deviation in each window."""
    made = made or memory()
    return np.array([made.step(ROW, np.array([x]), w).level[0] for w, x in enumerate(values, start=first)])


def noise(windows: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(50.0, 2.0, windows)


def test_a_deviation_is_of_the_past_mean_in_past_deviations_less_what_few_windows_know() -> None:
    past = noise(400)
    made = memory()
    levels(past, made)
    found = made.step(ROW, np.array([60.0]), 401)
    trust = np.sqrt(400 / (400 + CAUTION))
    assert found.level[0] == pytest.approx(trust * (60.0 - past.mean()) / past.std(), rel=0.02)
    steps = np.diff(past)
    assert found.step[0] == pytest.approx(trust * (60.0 - past[-1]) / np.sqrt(np.mean(steps**2)), rel=0.02)


def test_nothing_deviates_before_a_series_is_known_and_no_window_says_more_than_most() -> None:
    found = levels(np.append(noise(KNOWN_AFTER - 1), 1e9))
    assert found.tolist() == [0.0] * KNOWN_AFTER
    assert levels(np.append(noise(500), [1e300, -1e300]))[-2:].tolist() == [MOST, -MOST]


def test_an_outlier_teaches_no_more_than_its_clip() -> None:
    with_outlier, without = memory(), memory()
    levels(np.append(noise(1000), 1e6), with_outlier)
    levels(np.append(noise(1000), 50.0), without)
    moved = with_outlier.columns["mean"][0] - without.columns["mean"][0]
    assert 0 < moved < 1.1 * CLIP * 2.0 / 1000


def test_a_level_that_stays_is_usual_after_its_time() -> None:
    made = memory()
    levels(noise(2000), made)
    found = levels(noise(STAYS + 60, seed=2) + 40.0, made, first=2001)
    assert found[STAYS - 1] > CLIP
    assert abs(found[-1]) < 2.0
    assert made.columns["variance"][0] < 20.0


def test_a_level_that_returns_meanwhile_leaves_what_is_usual() -> None:
    made = memory()
    levels(noise(2000), made)
    levels(np.concatenate([noise(STAYS - 1) + 40.0, noise(5), noise(STAYS - 1) + 40.0]), made, first=2001)
    assert made.columns["mean"][0] == pytest.approx(50.0, abs=2.0)


def test_a_nearly_constant_series_deviates_by_parts_of_its_range() -> None:
    values = np.full(3000, 5.0)
    values[100] = 6.0
    made = memory()
    levels(values, made)
    found = made.step(ROW, np.array([5.05]), 3001)
    assert found.level[0] == pytest.approx(0.05 / max(np.sqrt(made.columns["variance"][0]), FINEST), rel=0.1)


def test_a_step_over_a_gap_is_not_judged() -> None:
    made = memory()
    levels(noise(500), made)
    assert made.step(ROW, np.array([60.0]), 502).step[0] == 0.0
    assert made.step(ROW, np.array([50.0]), 503).step[0] < -1.0


def test_a_series_that_begins_anew_knows_nothing() -> None:
    made = memory(2)
    for window in range(1, 50):
        made.step(np.arange(2), np.array([1.0, 2.0]) * window, window)
    made.forget(ROW)
    assert [column[0] for column in made.columns.values()] == [0] * len(made.columns)
    assert made.windows().tolist() == [0.0, 49.0]

import numpy as np
import pytest

from jobs.detector.model.scales import SCALES, THRESHOLD_OFFSETS, Scales
from jobs.detector.settings import DetectorSettings

THRESHOLD = 14.0
ONE = np.ones(1)
ROW = np.zeros(1, np.int64)


def alerts(values: np.ndarray) -> list[tuple[int, int]]:
    """(window, scale) of the alerts of one series."""
    scales = Scales(DetectorSettings())
    scales.add(np.zeros(1, bool), ROW, 0)
    found = []
    for window, value in enumerate(values.tolist(), start=1):
        judgements = scales.step(window, ROW, np.array([value]), ONE, THRESHOLD)
        found += [(window, SCALES[at]) for at, judgement in enumerate(judgements) if judgement.alert[0]]
    return found


def noise(windows: int) -> np.ndarray:
    return np.random.default_rng(3).normal(100.0, 1.0, windows)


def test_all_scales_together_spend_the_budget_once() -> None:
    assert sum(np.exp(THRESHOLD_OFFSETS) / SCALES) == pytest.approx(1.0)


def test_noise_alerts_nothing_on_any_scale() -> None:
    assert alerts(noise(4000)) == []


def test_what_is_too_small_for_a_window_is_alerted_by_the_mean_of_a_block() -> None:
    values = noise(1000)
    values[600:] += 3.0
    assert [scale for _, scale in alerts(values)] == [12]
    assert 612 < alerts(values)[0][0] < 640


def with_a_leak(begin: int) -> np.ndarray:
    """Noise of 200 windows, and from `begin` on one deviation more in each of 60."""
    values = noise(begin + 60)
    values[begin:] += np.arange(1.0, 61.0)
    return values


def test_a_leak_that_surprises_no_single_window_is_told_once_when_it_has_stayed() -> None:
    assert alerts(with_a_leak(60)) == [(72, 1)]


def test_a_leak_of_a_series_whose_blocks_are_known_is_told_by_them() -> None:
    assert [scale for _, scale in alerts(with_a_leak(600))] == [12]


def gauge(amplitude: float, windows: int) -> np.ndarray:
    """About 14.2 of something, with some noise and a slow rhythm."""
    rhythm = amplitude * np.sin(2 * np.pi * np.arange(windows) / 1440)
    return 14.2 + rhythm + np.random.default_rng(9).normal(0.0, 0.08, windows)


def test_a_gauge_in_whole_numbers_that_drifts_to_the_edge_of_the_next_is_not_alerted() -> None:
    values = np.round(gauge(0.3, 3 * 1440))
    assert set(values) == {14.0, 15.0}
    assert alerts(values) == []


@pytest.mark.parametrize("change", [1.5, 2.0])
def test_a_change_by_more_than_one_is_alerted_by_the_first_block(change: float) -> None:
    values = gauge(0.25, 2200)
    values[2000:] += change
    assert alerts(np.round(values))[0] == (2017, 12)


def test_a_change_that_a_window_alerts_is_not_alerted_again_by_its_blocks() -> None:
    values = noise(1500)
    values[600:] += 40.0
    assert alerts(values) == [(601, 1)]


@pytest.mark.parametrize("begins", [20, 40])
def test_a_burst_that_begins_within_a_window_is_alerted_by_the_next(begins: int) -> None:
    """The first is a surprise that isn't worth an alert; the second is hardly more of one."""
    scales = Scales(DetectorSettings())
    scales.add(np.ones(1, bool), ROW, 0)
    counts = [*np.random.default_rng(1).poisson(4.5, 12), begins, 190, 190]
    judged = [scales.step(at, ROW, ONE * count, ONE * count, 15.0)[0] for at, count in enumerate(counts, start=1)]
    assert 6.0 < judged[12].score[0] < 15.0 < judged[13].score[0] < 3 * judged[12].score[0]
    assert [at for at, judgement in enumerate(judged) if judgement.alert[0]] == [13]


def test_the_state_goes_on_from_its_dump() -> None:
    values = noise(300)
    whole, halves = Scales(DetectorSettings()), Scales(DetectorSettings())
    for scales in (whole, halves):
        scales.add(np.zeros(1, bool), ROW, 0)
    for window, value in enumerate(values.tolist(), start=1):
        if window == 150:
            halves = Scales(DetectorSettings(), halves.dump())
        for scales in (whole, halves):
            scales.step(window, ROW, np.array([value]), ONE, THRESHOLD)
    assert {name: column.tobytes() for name, column in whole.dump().items()} == {
        name: column.tobytes() for name, column in halves.dump().items()
    }

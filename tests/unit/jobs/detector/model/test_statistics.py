import numpy as np
import pytest

from jobs.detector.model.scales import Scales
from jobs.detector.model.statistics import STATISTICS
from jobs.detector.settings import DetectorSettings

ONE, ROW = np.ones(1), np.zeros(1, np.int64)


def loudest(values: np.ndarray, settings: DetectorSettings | None = None) -> str:
    """The label of the statistic that has the greatest score in the last of these windows."""
    scales = Scales(settings or DetectorSettings())
    scales.add(np.zeros(1, bool), ROW, 0)
    judged = [scales.step(at, ROW, ONE * value, ONE, 14.0)[0] for at, value in enumerate(values.tolist(), start=1)]
    assert judged[-1].score[0] > 3.0
    return STATISTICS[judged[-1].statistic[0]].label


def noise(windows: int) -> np.ndarray:
    return np.random.default_rng(3).normal(100.0, 1.0, windows)


def test_a_value_unlike_the_past_is_of_the_level() -> None:
    values = noise(200)
    values[-1] += 12.0
    assert loudest(values) == "level"


def test_a_jump_of_a_series_that_drifts_is_of_the_step() -> None:
    values = np.cumsum(noise(400) - 100.0)
    values[-1] += 12.0
    assert loudest(values) == "step"


def test_what_is_usual_only_at_another_hour_is_of_the_season() -> None:
    hours = np.arange(24 * 30)
    values = noise(len(hours)) + 40.0 * (hours % 24 >= 12)
    values[-24 * 2 - 6] = 100.0
    hourly = DetectorSettings(window_seconds=3600.0)
    assert loudest(values[: -24 * 2 - 5], hourly) == "season"


def test_what_is_a_little_strange_for_long_is_a_sustained_deviation() -> None:
    values = noise(600)
    values[-5:] = 102.2
    assert loudest(values) == "sustained_deviation"


def test_every_statistic_has_a_label_of_its_own() -> None:
    assert len({statistic.label for statistic in STATISTICS}) == len(STATISTICS)
    assert [statistic.label for statistic in STATISTICS if not statistic.compared] == ["level"]


@pytest.mark.parametrize("at", [0, 57])
def test_the_expected_interval_is_where_nearly_all_values_are(at: int) -> None:
    values = np.concatenate([noise(300 + at), [150.0]])
    scales = Scales(DetectorSettings())
    scales.add(np.zeros(1, bool), ROW, 0)
    judgement = [scales.step(n, ROW, ONE * value, ONE, 14.0)[0] for n, value in enumerate(values.tolist(), start=1)][-1]
    assert judgement.expected[0] == pytest.approx(100.0, abs=0.5)
    assert judgement.high[0] - judgement.low[0] == pytest.approx(2 * 2.58, rel=0.15)

"""The detector on NAB: one pass over each file, the same settings for all."""

from collections.abc import Sequence

import numpy as np

from jobs.detector.model_tails import Floats
from jobs.detector.settings import DetectorSettings
from jobs.quality import model_run
from jobs.quality.nab import PROFILES, DataSet, score

# Episodes start at the lowest threshold that the sweep may want; higher ones then only hide some of them.
SWEEP_FROM = 6.0


def measure(data: Sequence[DataSet]) -> dict[str, float]:
    """The score of each profile at its best threshold, and the standard one at the shipped threshold ("unfitted")."""
    swept = scores(data, SWEEP_FROM)
    result = {name: score(data, swept, profile) for name, profile in PROFILES.items()}
    limit = shipped_threshold(min(_interval(item) for item in data))
    return result | {"unfitted": score(data, scores(data, limit), PROFILES["standard"], limit)}


def shipped_threshold(seconds: float) -> float:
    """The threshold of the default budget for one series with windows of this length."""
    settings = DetectorSettings(window_seconds=seconds)
    return float(np.log(settings.windows_per_day / settings.alarms_per_day))


def scores(data: Sequence[DataSet], threshold: float) -> dict[str, Floats]:
    """What is told of each row: the score where a novelty may start, 0 while one lasts."""
    intervals = np.array([_interval(item) for item in data])
    told: dict[str, Floats] = {}
    for seconds in np.unique(intervals):
        group = [item for item, interval in zip(data, intervals, strict=True) if interval == seconds]
        told |= _of_one_interval(group, int(seconds), threshold)
    return told


def _interval(item: DataSet) -> int:
    return int(np.median(np.diff(item.times[: item.probation])))


def _of_one_interval(group: Sequence[DataSet], seconds: int, threshold: float) -> dict[str, Floats]:
    longest = max(len(item.times) for item in group)
    values = np.full((longest, len(group)), np.nan)
    windows = np.zeros((longest, len(group)), np.int64)
    for column, item in enumerate(group):
        values[: len(item.times), column] = item.values
        windows[: len(item.times), column] = item.times // seconds + 1
    told = model_run.run(values, windows, DetectorSettings(window_seconds=float(seconds)), threshold).told
    return {item.name: told[: len(item.times), column] for column, item in enumerate(group)}

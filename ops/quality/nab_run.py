"""The detector on NAB: one pass over each file, the same settings for all."""

from collections.abc import Sequence

import numpy as np

from jobs.detector.model.arrays import Floats
from jobs.detector.settings import DetectorSettings
from ops.quality import model_run
from ops.quality.nab import PROFILES, DataSet, score

THRESHOLDS = np.arange(7.5, 10.0, 0.05).tolist()


def measure(data: Sequence[DataSet]) -> dict[str, float]:
    """The score of each profile at its best threshold, and the standard one at the shipped threshold ("unfitted").

    All files together are the fleet that the budget of alarms is for.
    """
    runs = _runs(data)
    swept = [_alerts(data, runs, threshold) for threshold in THRESHOLDS]
    best = {
        name: max(score(data, alerts, profile, threshold=1.0) for alerts in swept) for name, profile in PROFILES.items()
    }
    return best | {"unfitted": score(data, _alerts(data, runs, None), PROFILES["standard"], threshold=1.0)}


def _runs(data: Sequence[DataSet]) -> dict[int, model_run.Scores]:
    """By interval in s: all files of that interval side by side, in the order that they have in `data`."""
    intervals = np.array([_interval(item) for item in data])
    groups = {seconds: np.flatnonzero(intervals == seconds).tolist() for seconds in np.unique(intervals).tolist()}
    return {
        seconds: _of_one_interval([data[at] for at in group], seconds, len(data)) for seconds, group in groups.items()
    }


def _alerts(data: Sequence[DataSet], runs: dict[int, model_run.Scores], threshold: float | None) -> dict[str, Floats]:
    """By file: 1 in each row with an alert, at this threshold or at the shipped one."""
    columns = {
        seconds: iter((scores.alerts if threshold is None else scores.alerts_at(threshold)).T)
        for seconds, scores in runs.items()
    }
    return {item.name: next(columns[_interval(item)])[: len(item.times)].astype(np.float64) for item in data}


def _interval(item: DataSet) -> int:
    return int(np.median(np.diff(item.times[: item.probation])))


def _of_one_interval(group: Sequence[DataSet], seconds: int, fleet: int) -> model_run.Scores:
    longest = max(len(item.times) for item in group)
    values = np.full((longest, len(group)), np.nan)
    windows = np.zeros((longest, len(group)), np.int64)
    for column, item in enumerate(group):
        values[: len(item.times), column] = item.values
        windows[: len(item.times), column] = item.times // seconds + 1
    settings = DetectorSettings(window_seconds=float(seconds))
    return model_run.run(values, windows, settings, settings.threshold(fleet))

"""What the model of single windows expects of the next one, and of each hour, in the series' own unit: for people."""

from typing import Any, NamedTuple

import numpy as np

from jobs.detector.model.anscombe import to_own_scale
from jobs.detector.model.arrays import Floats, Ints
from jobs.detector.model.season import FEWEST_VISITS
from jobs.detector.model.statistics import STATISTICS, interval
from jobs.detector.model.weighing import weigh
from jobs.detector.model.window_model import WindowModel

LEVEL = next(number for number, one in enumerate(STATISTICS) if one.label == "level")
SEASON = next(number for number, one in enumerate(STATISTICS) if one.label == "season")


class Band(NamedTuple):
    """What is expected, and the 99 % interval around it."""

    expected: Floats
    low: Floats
    high: Floats


def level(model: WindowModel) -> Band:
    """Of each series by its level, as if its next window had as many samples as usual."""
    return _band(model, np.zeros(len(model), np.int64), LEVEL)


def season(model: WindowModel, row: int) -> list[dict[str, Any]]:
    """Of one series by the hour, where that is known: those of a working day, then those of a weekend."""
    visits = model.season.profiles[row, 0]
    found = []
    for hour in np.flatnonzero(visits >= FEWEST_VISITS).tolist():
        band = _band(model, np.full(len(model), hour), SEASON)
        found.append({"hour": hour, **{name: float(one[row]) for name, one in band._asdict().items()}})
    return found


def _band(model: WindowModel, hour: Ints, statistic: int) -> Band:
    state, rows = model.state, np.arange(len(model))
    value = to_own_scale(state.last, state.is_count)
    usual = model.season.judge(rows, hour, state.last)
    evidence = weigh(state, state.last, value, state.samples, state.last_window + 1, hour=usual)
    chosen = np.full(len(rows), statistic)
    return Band(*(to_own_scale(one, state.is_count) for one in interval(evidence, rows, chosen)))

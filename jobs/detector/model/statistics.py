"""The statistics by which a window of a series is judged: each is one row of STATISTICS, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from jobs.detector.model import sustained
from jobs.detector.model.arrays import Floats, Ints
from jobs.detector.model.conjugate import of_rows
from jobs.detector.model.evidence import Evidence
from jobs.detector.model.tails import mean_score

INTERVAL = 0.995  # the quantile at the expected interval's upper end


class Predictive(NamedTuple):
    """What a statistic expects of a value, on the model's scale: a Student t."""

    center: Floats
    scale: Floats
    freedom: Floats


@dataclass(frozen=True)
class Statistic:
    """One question that is asked of each window of a series.

    `score` answers for all series: -ln of the probability as the model has it, which the statistic's own tail of past
    scores calibrates. `predictive` is what was expected of the rows `at`, for the interval that an alert shows.
    """

    label: str  # `statistic` in records; its tail is packed under this name
    score: Callable[[Evidence], Floats]
    predictive: Callable[[Evidence, Ints], Predictive]
    compared: str = ""  # in an alert's sentence: with what the value was compared, if that isn't the usual level


def interval(evidence: Evidence, at: Ints, statistic: Ints) -> tuple[Floats, Floats, Floats]:
    """Of the rows `at`, on the model's scale: what their statistics expected, and the ends of the 99 % interval."""
    expected = [one.predictive(evidence, at) for one in STATISTICS]
    chosen = [statistic[at] == number for number in range(len(STATISTICS))]
    center, scale, freedom = (np.select(chosen, list(column)) for column in zip(*expected, strict=True))
    half = stdtrit(freedom, INTERVAL) * scale + evidence.unresolved[at]
    return center, center - half, center + half


def _level(evidence: Evidence, at: Ints) -> Predictive:
    normal, independence = of_rows(evidence.normal, at), evidence.independence[at]
    scale = normal.scale(evidence.weight[at], independence, evidence.floor[at])
    return Predictive(normal.mu, scale, normal.freedom(independence))


def _step(evidence: Evidence, at: Ints) -> Predictive:
    jumps, whole = of_rows(evidence.jumps, at), np.ones(len(at))
    scale = jumps.scale(evidence.jump_weight[at], whole, evidence.floor[at])
    return Predictive(evidence.last[at] + jumps.mu, scale, jumps.freedom(whole))


def _season(evidence: Evidence, at: Ints) -> Predictive:
    hour = evidence.hour
    return Predictive(hour.expected[at], hour.scale[at], hour.freedom[at])


def _step_score(evidence: Evidence) -> Floats:
    score = evidence.jumps.score(evidence.jump_deviation, evidence.jump_weight, evidence.whole, evidence.floor)
    return np.where(evidence.has_past, np.minimum(score, evidence.limit), 0.0)


def _sustained_score(evidence: Evidence) -> Floats:
    # Of autocorrelated windows fewer count.
    windows = 1.0 + (2.0 * sustained.MEMORY - 2.0) * evidence.independence
    return mean_score(evidence.recent_level_score, windows) * evidence.is_long_known


STATISTICS = (
    # Is this value like the past?
    Statistic("level", lambda evidence: evidence.level_score, _level),
    # Is this a jump? (drifting series)
    Statistic("step", _step_score, _step, " after the window before"),
    # Is it a little strange for too long?
    Statistic("sustained_deviation", _sustained_score, _level, ", and it lasts"),
    # Is it usual at this time?
    Statistic("season", lambda evidence: np.minimum(evidence.hour.score, evidence.limit), _season, " at this hour"),
)
WITHOUT_SEASON = STATISTICS[:-1]  # of blocks of windows, which have no hour

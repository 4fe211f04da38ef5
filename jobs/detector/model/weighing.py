"""How a window of some series is weighed against their posteriors."""

import numpy as np

from jobs.detector.model.arrays import Bools, Floats, Ints
from jobs.detector.model.conjugate import GammaPoisson, Nig, of_rows
from jobs.detector.model.elementary import ln, ln1p
from jobs.detector.model.evidence import Evidence
from jobs.detector.model.season import HourPredictive
from jobs.detector.model.series_state import SeriesState
from jobs.detector.model.sustained import KNOWN_AFTER, capped_running_mean
from jobs.detector.model.tails import LN2, MAX_SCORE

RARE_CHANGES = 8  # fewer changes than this say little about the size of a change
SHRINKAGE = 5.0  # half the windows that an autocorrelation needs to be believed by half


def weigh(
    state: SeriesState,
    x: Floats,
    value: Floats,
    samples: Floats,
    window: int | Ints,
    *,
    hour: HourPredictive,
    unresolved: Floats | float = 0.0,
) -> Evidence:
    """The evidence of one window: `x` is `value` on the model's scale, and `unresolved` is what rounding may move."""
    normal, jumps, is_count = state.normal, state.jumps, state.is_count.astype(bool)
    weight = np.where(is_count, 1.0, np.clip(samples / state.samples, 0.01, 1.0))
    independence = _independence(normal, jumps)
    floor = np.where(is_count, 1.0, 0.5 * state.quantum + 1e-6 * np.abs(normal.mu) + 1e-12)
    limit = _rare_change_limit(state, x)
    unresolved = np.broadcast_to(unresolved, x.shape)
    deviation, jump = _resolved(x - normal.mu, unresolved), x - state.last
    level = np.minimum(normal.score(deviation, weight, independence, floor), limit)
    _join_rates(level, state.rate, value, is_count)
    return Evidence(
        x=x,
        last=state.last,
        count=np.where(is_count, value, 0.0),
        samples=samples,
        weight=weight,
        deviation=deviation,
        jump=jump,
        jump_deviation=_resolved(jump - jumps.mu, unresolved),
        # A step over a gap of n windows varies n times as much (random walk).
        jump_weight=weight / np.maximum(window - state.last_window, 1),
        has_past=state.seen > 0,
        is_long_known=state.seen >= KNOWN_AFTER,
        normal=normal,
        rate=state.rate,
        jumps=jumps,
        independence=independence,
        floor=floor,
        unresolved=unresolved,
        limit=limit,
        hour=hour,
        level_score=level,
        recent_level_score=capped_running_mean(state.sustained, level),
    )


def _resolved(deviation: Floats, unresolved: Floats) -> Floats:
    """What is left of a deviation without so much of it."""
    found: Floats = deviation - np.clip(deviation, -unresolved, unresolved)
    return found


def _join_rates(level: Floats, rate: GammaPoisson, value: Floats, is_count: Bools) -> None:
    """A count is also judged by its rate: the mixture of both models forgives overdispersion."""
    if is_count.any():
        level[is_count] = _mixture(level[is_count], of_rows(rate, is_count).score(value[is_count]))


def _mixture(first: Floats, second: Floats) -> Floats:
    """-ln of the tail of an even mixture of two models."""
    return np.maximum(LN2 - np.logaddexp(-first, -second), 0.0)


def _independence(normal: Nig, jumps: Nig) -> Floats:
    """Effective number of independent windows per window, (1 - r) / (1 + r), of autocorrelation r at lag one.

    r follows from von Neumann's ratio: the variance of the steps is 2 (1 - r) times that of the levels. Of few windows
    it is shrunk to none.
    """
    r = np.clip(1.0 - 0.5 * jumps.variance() / normal.variance(), 0.0, 0.98)
    r = r * normal.alpha / (normal.alpha + SHRINKAGE)
    return (1.0 - r) / (1.0 + r)


def _rare_change_limit(state: SeriesState, x: Floats) -> Floats:
    """The most that a change of a (nearly) constant metric can say.

    By Laplace's rule of succession it has the probability (changes + 1/2) / (windows + 1); its size, of which little
    is known, counts by a Pareto tail of exponent 1 relative to 1 % of the usual value.
    """
    seen, changes = state.seen, state.changes
    size = np.abs(x - state.last)
    size = size / (0.01 * np.maximum(np.abs(state.normal.mu), 0.1 * size) + 1e-12)
    limit = ln((seen + 1.0) / (changes + 0.5)) + ln1p(size)
    rare = (changes < RARE_CHANGES) & (2 * changes < seen) & (state.is_count == 0)
    return np.where(rare, limit, MAX_SCORE)

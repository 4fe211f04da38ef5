"""Counters as rates. No Spark.

A monotonic cumulative sum says little itself; its growth does. The rate at a point is the growth since the point before
it, over the time between them. A value that falls means one of two things: the counter wrapped around at 2^32 or 2^64,
if it fell from the last quarter of that range into the first; else it was reset and has grown from 0 since, as
Prometheus takes it. A series that keeps falling is no counter, whatever it calls itself (collectd sends rates under a
counter's type, docs/reference/collectors.md): its values are taken as they are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobs.statistics.quantiles import Floats, Ints

NANO = 1_000_000_000
WRAPS = (2.0**32, 2.0**64)
FALLS = 4  # panes with a fall, less those without one since, that make a counter a gauge


class Growth(NamedTuple):
    """Of each point: what the counter grew by since the one before, the rate a second, whether each is known."""

    amount: Floats
    rate: Floats
    known: NDArray[np.bool_]
    fell: NDArray[np.bool_]


def growth(time: Ints, value: Floats, before_time: Ints, before_value: Floats) -> Growth:
    """The growth of counters at points, against the points before them; time -1: there was none."""
    elapsed, met = time - before_time, before_time >= 0
    known, fell = met & (elapsed > 0), met & (value < before_value)
    amount = np.where(met, value - before_value, 0.0)
    amount[fell] = _after_fall(value[fell], before_value[fell])
    rate = np.divide(amount * NANO, elapsed, out=np.zeros(len(time)), where=known)
    return Growth(amount, rate, known, fell)


def _after_fall(value: Floats, before: Floats) -> Floats:
    """Since a reset a counter has grown from 0 to where it is; one that is negative has no such growth."""
    amount = np.maximum(value, 0.0)
    for wrap in reversed(WRAPS):
        wrapped = (before < wrap) & (before >= wrap * 0.75) & (value < wrap * 0.25) & (value >= 0)
        amount[wrapped] = value[wrapped] + (wrap - before[wrapped])
    return amount

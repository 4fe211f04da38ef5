"""Values of many series, sorted run by run, and their quantiles. No Spark, no state.

A run is what one series has in one window: `length` neighbours in a flat column, beside their integer weights. A
quantile is the nearest rank's: the smallest value that at least p percent of the weight does not exceed. It is exact up
to LIMIT values a pane. A pane of more is thinned to LIMIT values, each standing for its share of neighbouring ranks;
this moves a rank by at most 1 / (2 * LIMIT) of the pane's count, once for each level of panes. Everything is done in
integers and comparisons, so neither order nor hardware shows in a result.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

LIMIT = 128
PERCENT = (50, 95, 99)


def starts_of(length: Ints) -> Ints:
    """Where each run begins in the flat column."""
    return np.cumsum(length) - length


def rows_of_runs(start: Ints, length: Ints) -> Ints:
    """The rows of the runs that begin at `start`, one run after the other."""
    return np.arange(int(length.sum())) + np.repeat(start - starts_of(length), length)


def sort_runs(value: Floats, weight: Ints, length: Ints) -> tuple[Floats, Ints]:
    """Each run by value; equal ones stay in their order."""
    if len(length) and (length == length[0]).all():  # as thinned panes are: the runs are a matrix already
        shape = (len(length), int(length[0]))
        value, weight = _sort_rows(value.reshape(shape), weight.reshape(shape))
        return value.ravel(), weight.ravel()
    value, weight, start = value.copy(), weight.copy(), starts_of(length)
    unsorted = np.flatnonzero(length > 1)
    # A matrix for each power of two: sorting its rows is many times faster than sorting by two keys.
    width = np.ceil(np.log2(length[unsorted])).astype(np.int64)
    for power in np.unique(width).tolist():
        runs = unsorted[width == power]
        _sort_matrix(value, weight, rows_of_runs(start[runs], length[runs]), length[runs])
    return value, weight


def _sort_matrix(value: Floats, weight: Ints, rows: Ints, length: Ints) -> None:
    inside = np.arange(length.max()) < length[:, None]
    padded = np.full(inside.shape, np.inf)  # all values are finite: what is padded stays behind
    padded[inside] = value[rows]
    if (weight[rows] == 1).all():
        value[rows] = np.sort(padded, axis=1)[inside]
        return
    heavy = np.zeros(inside.shape, np.int64)
    heavy[inside] = weight[rows]
    padded, heavy = _sort_rows(padded, heavy)
    value[rows], weight[rows] = padded[inside], heavy[inside]


def _sort_rows(value: Floats, weight: Ints) -> tuple[Floats, Ints]:
    """Each row of a matrix by value."""
    if (weight == 1).all():
        return np.sort(value, axis=1), weight
    order = np.argsort(value, axis=1, kind="stable")
    return np.take_along_axis(value, order, 1), np.take_along_axis(weight, order, 1)


def quantiles(value: Floats, weight: Ints, length: Ints) -> list[Floats]:
    """For each of PERCENT the quantile of each run, of sorted values; every run has at least one."""
    start = starts_of(length)
    if (weight == 1).all():
        return [value[start + (length * percent + 99) // 100 - 1] for percent in PERCENT]
    passed = np.cumsum(weight)
    before = passed[start] - weight[start]
    total = np.add.reduceat(weight, start)
    return [value[np.searchsorted(passed, before + (total * percent + 99) // 100)] for percent in PERCENT]


def thin(value: Floats, weight: Ints, length: Ints) -> tuple[Floats, Ints, Ints]:
    """Sorted runs of at most LIMIT values; the weight of a run stays."""
    long = length > LIMIT
    if not long.any():
        return value, weight, length
    start, kept = starts_of(length), np.minimum(length, LIMIT)
    rows, is_share = rows_of_runs(start, kept), np.repeat(long, kept)
    middles, shares = _shares(weight, start[long], length[long])
    rows[is_share] = middles
    weights = weight[rows]
    weights[is_share] = shares
    return value[rows], weights, kept


def _shares(weight: Ints, start: Ints, length: Ints) -> tuple[Ints, Ints]:
    """LIMIT equal shares of the ranks of each run, one after the other: the row in its middle, and its weight."""
    passed = np.cumsum(weight)
    before = passed[start] - weight[start]
    bounds = np.arange(LIMIT + 1) * (passed[start + length - 1] - before)[:, None] // LIMIT
    middle = before[:, None] + (bounds[:, :-1] + bounds[:, 1:]) // 2 + 1
    return np.searchsorted(passed, middle.ravel()), np.diff(bounds, axis=1).ravel()

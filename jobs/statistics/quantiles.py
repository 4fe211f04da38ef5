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

LIMIT = 128
PERCENT = (50, 95, 99)


def starts_of(length: Ints) -> Ints:
    """Where each run begins in the flat column."""
    return np.cumsum(length) - length


def rows_of_runs(start: Ints, length: Ints) -> Ints:
    """The rows of the runs that begin at `start`, one run after the other."""
    return np.arange(int(length.sum())) + np.repeat(start - starts_of(length), length)


def sort_runs(value: Floats, weight: Ints, length: Ints) -> tuple[Floats, Ints]:
    """Each run by value, then weight."""
    value, weight, start = value.copy(), weight.copy(), starts_of(length)
    unsorted = np.flatnonzero(length > 1)
    # A matrix for each power of two: sorting its rows is many times faster than sorting by two keys.
    width = np.int64(1) << np.ceil(np.log2(length[unsorted])).astype(np.int64)
    for columns in np.unique(width).tolist():
        runs = unsorted[width == columns]
        _sort_matrix(value, weight, start[runs], length[runs], columns)
    return value, weight


def _sort_matrix(value: Floats, weight: Ints, start: Ints, length: Ints, columns: int) -> None:
    inside = np.arange(columns) < length[:, None]
    at = np.minimum(start[:, None] + np.arange(columns), len(value) - 1)
    padded = np.where(inside, value[at], np.inf)
    target = at[inside]
    if (weight[target] == 1).all():
        value[target] = np.sort(padded, axis=1)[inside]
        return
    heavy = np.where(inside, weight[at], 0)
    order = np.lexsort((heavy, ~inside, padded), axis=1)
    value[target] = np.take_along_axis(padded, order, 1)[inside]
    weight[target] = np.take_along_axis(heavy, order, 1)[inside]


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
    if not len(length) or length.max() <= LIMIT:
        return value, weight, length
    start, kept, short = starts_of(length), [], []
    for first, size in zip(start.tolist(), length.tolist(), strict=True):
        run = slice(first, first + size)
        found = (value[run], weight[run]) if size <= LIMIT else _thin_run(value[run], weight[run])
        kept.append(found)
        short.append(len(found[0]))
    values, weights = zip(*kept, strict=True)
    return np.concatenate(values), np.concatenate(weights), np.array(short, np.int64)


def _thin_run(value: Floats, weight: Ints) -> tuple[Floats, Ints]:
    """Equal shares of the ranks, each by the value at its middle."""
    passed = np.cumsum(weight)
    bounds = np.arange(LIMIT + 1) * passed[-1] // LIMIT
    middle = (bounds[:-1] + bounds[1:]) // 2 + 1
    return value[np.searchsorted(passed, middle)], np.diff(bounds)

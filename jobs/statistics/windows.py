"""Window statistics of many series at once. No Spark, no state: columns in, columns out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NANO = 1_000_000_000
LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True)
class Points:
    """Data points, one row each: the number of their series, event time in ns, value, offset of their record."""

    series: Ints
    time: Ints
    value: Floats
    offset: Ints

    @classmethod
    def empty(cls) -> "Points":
        """No points."""
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, np.empty(0), nothing)

    def __len__(self) -> int:
        return len(self.series)

    def take(self, rows: NDArray[np.bool_] | Ints) -> "Points":
        """Those rows."""
        return Points(self.series[rows], self.time[rows], self.value[rows], self.offset[rows])

    def plus(self, others: list["Points"]) -> "Points":
        """All of them, in order."""
        parts = [self, *others]
        return Points(
            *(np.concatenate([getattr(p, name) for p in parts]) for name in ("series", "time", "value", "offset"))
        )


@dataclass(frozen=True)
class WindowStatistics:
    """One row a series and window, ordered by window, then series. `variance` is the sample's, 0 for one value."""

    series: Ints
    start: Ints
    count: Ints
    sum: Floats
    mean: Floats
    variance: Floats
    min: Floats
    max: Floats
    first: Floats
    last: Floats
    first_offset: Ints
    last_offset: Ints


def window_start(time: Ints, size: int) -> Ints:
    """Start of the tumbling window of `size` ns that each time falls into; windows are aligned to the epoch."""
    return time - time % size


def summarise(points: Points, size: int) -> WindowStatistics:
    """The statistics of each series in each tumbling window of `size` ns.

    Points are first put into an order that depends on their content alone, so that the floating-point sums come out the
    same in whatever order the points arrived. The variance is the two-pass form about the mean, which does not cancel
    (Chan, Golub, LeVeque, "Algorithms for computing the sample variance", 1983). Everything is finite: what exceeds the
    largest float becomes it.
    """
    start = window_start(points.time, size)
    order = np.lexsort((points.value, points.time, points.series, start))
    ordered, start = points.take(order), start[order]
    value = ordered.value + 0.0  # -0.0 becomes 0.0: equal values that print differently would tell their order
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = (ordered.series[1:] != ordered.series[:-1]) | (start[1:] != start[:-1])
    firsts = np.flatnonzero(is_first)
    if not len(firsts):
        ints, floats = np.empty(0, np.int64), np.empty(0)
        return WindowStatistics(ints, ints, ints, floats, floats, floats, floats, floats, floats, floats, ints, ints)
    count = np.diff(firsts, append=len(ordered))
    low, high = np.minimum.reduceat(value, firsts), np.maximum.reduceat(value, firsts)
    total, mean = _total_and_mean(value, firsts, count)
    mean = np.clip(mean, low, high)  # rounding may not carry it outside: equal values have variance 0
    with np.errstate(over="ignore"):
        deviation = value - np.repeat(mean, count)
        variance = np.add.reduceat(deviation * deviation, firsts) / np.maximum(count - 1, 1)
    return WindowStatistics(
        series=ordered.series[firsts],
        start=start[firsts],
        count=count,
        sum=total,
        mean=mean,
        variance=np.minimum(variance, LARGEST),
        min=low,
        max=high,
        first=value[firsts],
        last=value[firsts + count - 1],
        first_offset=np.minimum.reduceat(ordered.offset, firsts),
        last_offset=np.maximum.reduceat(ordered.offset, firsts),
    )


def _total_and_mean(value: Floats, firsts: Ints, count: Ints) -> tuple[Floats, Floats]:
    """Of each run of values; finite also where the plain sum overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.add.reduceat(value, firsts)
        mean = total / count
        overflown = ~np.isfinite(total)
        if overflown.any():
            mean[overflown] = np.add.reduceat(value / np.repeat(count, count), firsts)[overflown]
            total[overflown] = (mean * count)[overflown]
    return np.clip(total, -LARGEST, LARGEST), mean

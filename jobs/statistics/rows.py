"""Window statistics of many series at once, as mergeable rows. No Spark, no state: columns in, columns out."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.statistics.quantiles import Floats, Ints, rows_of_runs, sort_runs, starts_of, thin

NANO = 1_000_000_000
LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True)
class Rows:
    """What is known of each series in a stretch of time, one row each; a single data point is such a row too.

    So many `points` came; `n` of them have a value that statistics are made of (the first point of a counter has
    none); `m2` is the sum of squared deviations from the mean. `length` of the values lie in `value`, with weights, row
    after row. `sum` is what adds up: of a gauge its values, of a counter its growth.
    """

    series: Ints
    points: Ints
    n: Ints
    sum: Floats
    mean: Floats
    m2: Floats
    min: Floats
    max: Floats
    first: Floats
    last: Floats
    length: Ints
    value: Floats
    weight: Ints

    def __len__(self) -> int:
        return len(self.series)

    @classmethod
    def empty(cls) -> "Rows":
        """No rows."""
        return cls.of_points(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, bool), np.empty(0, bool))

    @classmethod
    def of_points(
        cls, series: Ints, value: Floats, amount: Floats, valid: NDArray[np.bool_], kept: NDArray[np.bool_]
    ) -> "Rows":
        """A row a point; `valid` ones have a value, `kept` ones keep it for quantiles."""
        one = np.ones(len(series), np.int64)
        value = value + 0.0  # -0.0 becomes 0.0: equal values that print differently would show their order
        n, length = valid.astype(np.int64), kept.astype(np.int64)
        zero = np.zeros(len(series))
        return cls(
            series, one, n, amount, value, zero, value, value, value, value, length, value[kept], one[: length.sum()]
        )

    @classmethod
    def concatenated(cls, parts: Sequence["Rows"]) -> "Rows":
        """All of them, in order."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)))

    def by_series(self) -> "Rows":
        """Ordered by series; rows of one series keep their order."""
        return self.take(np.argsort(self.series, kind="stable"))

    def take(self, rows: Ints) -> "Rows":
        """These rows, in this order."""
        runs = rows_of_runs(starts_of(self.length)[rows], self.length[rows])
        return self._plain_at(rows, self.value[runs], self.weight[runs])

    def _plain_at(self, rows: Ints | slice, value: Floats, weight: Ints) -> "Rows":
        return Rows(**{name: getattr(self, name)[rows] for name in _PLAIN}, value=value, weight=weight)

    def combined(self) -> "Rows":
        """Neighbouring rows of one series as one, in their order: a fixed order, so the sums always come out the same.

        Mean and m2 by the pairwise formula about the common mean, which does not cancel (Chan, Golub, LeVeque,
        "Algorithms for computing the sample variance", 1983). Everything is finite: what exceeds the largest float
        becomes it.
        """
        if not len(self):
            return self
        start = np.flatnonzero(np.diff(self.series, prepend=-1))
        length = np.add.reduceat(self.length, start)
        value, weight, kept = thin(*sort_runs(self.value, self.weight, length), length)
        with np.errstate(over="ignore", invalid="ignore"):
            total = _finite_sum(self.sum, start)
        return Rows(
            series=self.series[start],
            points=np.add.reduceat(self.points, start),
            sum=total,
            **self._moments(start),
            length=kept,
            value=value,
            weight=weight,
        )

    def _moments(self, start: Ints) -> dict[str, Any]:
        """n, mean, m2, min, max, first, last of each run of rows; those without a value have no say in them."""
        n = np.add.reduceat(self.n, start)
        if self.n.all():
            last = np.append(start[1:], len(self)) - 1
            return {"n": n, **self._spread(start, n), "first": self.first[start], "last": self.last[last]}
        moments: dict[str, Any] = {"n": n, **{name: np.zeros(len(start)) for name in _MOMENTS}}
        valued = np.flatnonzero(self.n)
        if len(valued):
            rest = self._plain_at(valued, self.value, self.weight)
            found = rest._moments(np.searchsorted(valued, start[n > 0]))
            for name in _MOMENTS:
                moments[name][n > 0] = found[name]
        return moments

    def _spread(self, start: Ints, n: Ints) -> dict[str, Floats]:
        """Mean, m2, min and max of runs of rows that all have values."""
        low, high = np.minimum.reduceat(self.min, start), np.maximum.reduceat(self.max, start)
        repeats = np.diff(start, append=len(self))
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.add.reduceat(self.mean * self.n, start) / n
            wide = ~np.isfinite(mean)
            if wide.any():
                mean[wide] = np.add.reduceat(self.mean * (self.n / np.repeat(n, repeats)), start)[wide]
            mean = np.clip(mean, low, high)  # rounding may not carry it outside: equal values have variance 0
            deviation = self.mean - np.repeat(mean, repeats)
            m2 = np.add.reduceat(self.m2 + self.n * deviation * deviation, start)
        return {"mean": mean, "m2": np.minimum(m2, LARGEST), "min": low, "max": high}

    @property
    def variance(self) -> Floats:
        """The variance of the sample, 0 for one value."""
        return self.m2 / np.maximum(self.n - 1, 1)


_MOMENTS = ("mean", "m2", "min", "max", "first", "last")
_PLAIN = tuple(field.name for field in fields(Rows))[:-2]


def _finite_sum(column: Floats, start: Ints) -> Floats:
    total = np.add.reduceat(column, start)
    undecided = np.isnan(total)  # infinities of both signs met: halves and quarters of them don't
    if undecided.any():
        total[undecided] = np.add.reduceat(column / len(column), start)[undecided] * len(column)
    return np.clip(total, -LARGEST, LARGEST)

"""Data points in columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobs.statistics.quantiles import Floats, Ints


@dataclass(frozen=True)
class Points:
    """One row each: the number of their series, event time in ns, value."""

    series: Ints
    time: Ints
    value: Floats

    @classmethod
    def empty(cls) -> "Points":
        """None."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))

    def __len__(self) -> int:
        return len(self.series)

    def take(self, rows: NDArray[np.bool_] | Ints | slice) -> "Points":
        """Those rows."""
        return Points(self.series[rows], self.time[rows], self.value[rows])

    def plus(self, series: Ints, time: list[int], value: list[float]) -> "Points":
        """With more."""
        return self.joined(Points(series, np.array(time, np.int64), np.array(value, np.float64)))

    def joined(self, others: "Points") -> "Points":
        """With others behind."""
        if not len(others):
            return self
        return Points(
            np.concatenate([self.series, others.series]),
            np.concatenate([self.time, others.time]),
            np.concatenate([self.value, others.value]),
        )

    def split(self, time: int) -> tuple["Points", "Points"]:
        """Those before a time, and the others."""
        before = self.time < time
        return self.take(before), self.take(~before)

    def ordered(self, pane: int) -> "Points":
        """By pane of `pane` ns, series, time, value: an order that depends on their content alone."""
        return self.take(np.lexsort((self.value, self.time, self.series, self.time // pane)))

    def by_series(self) -> "Points":
        """Those of one series stay in their order."""
        return self.take(np.argsort(self.series, kind="stable"))

    def in_groups(self, size: int) -> tuple["Points", "Points"]:
        """Of points by series: those in whole groups of `size` of their series, and the rest."""
        starts = np.flatnonzero(np.diff(self.series, prepend=-1))
        length = np.diff(starts, append=len(self))
        place = np.arange(len(self)) - np.repeat(starts, length)
        whole = place < np.repeat(length // size * size, length)
        return self.take(whole), self.take(~whole)

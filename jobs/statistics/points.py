"""Data points in columns."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

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
        """No points."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))

    def __len__(self) -> int:
        return len(self.series)

    def take(self, rows: NDArray[np.bool_] | Ints | slice) -> "Points":
        """Those rows."""
        return Points(self.series[rows], self.time[rows], self.value[rows])

    def joined(self, others: "Points") -> "Points":
        """With others behind."""
        if not len(others):
            return self
        return Points(
            np.concatenate([self.series, others.series]),
            np.concatenate([self.time, others.time]),
            np.concatenate([self.value, others.value]),
        )

    def by_pane(self, size: int) -> Iterator[tuple[int, "Points"]]:
        """(start, points) of each pane of `size` ns that there are any of; those of one stay in their order."""
        pane = self.time // size
        pane -= pane.min(initial=0)
        # Of numbers of 16 bits, the stable sort is one by radix.
        order = np.argsort(pane.astype(np.uint16) if pane.max(initial=0) < 2**16 else pane, kind="stable")
        ends = np.flatnonzero(np.diff(pane[order], append=-1)) + 1
        for begin, end in pairwise([0, *ends.tolist()]):
            points = self.take(order[begin:end])
            yield int(points.time[0] - points.time[0] % size), points

    def ordered(self) -> "Points":
        """By series, time, value: an order that depends on their content alone."""
        if not len(self):
            return self
        since = self.time - self.time.min()
        bits = int(since.max()).bit_length()
        if int(self.series.max()).bit_length() + bits < 64:  # series and time as one number: many times faster
            both = self.series << bits | since
            order = np.argsort(both, kind="stable")
            if np.diff(both[order]).all():
                return self.take(order)
        return self.take(np.lexsort((self.value, self.time, self.series)))

    def by_series(self) -> "Points":
        """Those of one series stay in their order."""
        return self.take(np.argsort(self.series, kind="stable"))

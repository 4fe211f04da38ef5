"""Sessions of many series: events of which none comes `gap` after the one before. No Spark, no state."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from jobs.statistics.quantiles import Ints


@dataclass(frozen=True)
class Sessions:
    """A row a session, times in ns; a single event is one. `severity` is the highest of its events'."""

    series: Ints
    start: Ints
    last: Ints
    count: Ints
    severity: Ints

    @classmethod
    def empty(cls) -> "Sessions":
        """No sessions."""
        return cls(*(np.empty(0, np.int64) for _ in fields(cls)))

    @classmethod
    def of_events(cls, series: Ints, time: Ints, severity: Ints) -> "Sessions":
        """Each event alone."""
        return cls(series, time, time, np.ones(len(time), np.int64), severity)

    def __len__(self) -> int:
        return len(self.series)

    def take(self, rows: NDArray[np.bool_] | Ints) -> "Sessions":
        """Those rows."""
        return Sessions(*(getattr(self, field.name)[rows] for field in fields(self)))

    def joined(self, others: "Sessions", gap: int) -> "Sessions":
        """With others, none of which begins before one of these of its series ends."""
        both = Sessions(*(np.concatenate([getattr(self, f.name), getattr(others, f.name)]) for f in fields(self)))
        if not len(both):
            return both
        rows = both.take(np.lexsort((both.start, both.series)))
        begins = np.ones(len(rows), bool)
        begins[1:] = (rows.series[1:] != rows.series[:-1]) | (rows.start[1:] - rows.last[:-1] >= gap)
        at = np.flatnonzero(begins)
        return Sessions(
            rows.series[at],
            rows.start[at],
            np.maximum.reduceat(rows.last, at),
            np.add.reduceat(rows.count, at),
            np.maximum.reduceat(rows.severity, at),
        )

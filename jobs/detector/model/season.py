"""What is usual at this hour of a working day or of a weekend: one bounded profile a series, learned online."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobs.detector.model.arrays import Columns, Floats, Ints, Layout, PerRow, bytes_per_row
from jobs.detector.model.tails import student_t_score

HOURS = 24
BINS = 2 * HOURS  # the hours of a working day, then those of a weekend; UTC
# Of all hours together, what the profile has of each
POOLED_LAYOUT: Layout = {"hours_visits": np.dtype(np.float64), "hours_squares": np.dtype(np.float64)}
BYTES_PER_SERIES = 3 * BINS * 4 + bytes_per_row(POOLED_LAYOUT)
VISITS = 30.0  # visits of an hour that are remembered
POOLED = 4.0  # visits that the spread of all hours together is worth beside an hour's own
FEWEST_VISITS = 2.0
THURSDAY = 3  # 1 January 1970
SATURDAY = 5

Profiles = NDArray[np.float32]


class HourPredictive(NamedTuple):
    """What is usual at an hour, a Student t, and the score of a value; 0 where the hour is hardly known."""

    score: Floats
    expected: Floats
    scale: Floats
    freedom: Floats


def hour_of(seconds: Ints) -> Ints:
    """The bin of a time in s since the epoch."""
    day = (seconds // 86400 + THURSDAY) % 7
    return seconds % 86400 // 3600 + HOURS * (day >= SATURDAY)


class Season:
    """Profiles of all series, shape (series, 3, BINS): visits, mean, and summed squares around it; 576 bytes a series.

    An hour's windows are nearly one observation: together they count as one visit. An hour's variance is shrunk to
    the one of all hours together (the moderated t of Smyth 2004).
    """

    def __init__(self, arrays: Columns | None = None) -> None:
        """`arrays` are those of `dump`; without them there are no series."""
        known = arrays or {}
        self.profiles: Profiles = known.get("profiles", np.zeros(0, np.float32)).reshape(-1, 3, BINS)
        self.pooled = PerRow({name: known.get(name, np.zeros(0, kind)) for name, kind in POOLED_LAYOUT.items()})

    def dump(self) -> Columns:
        """The constructor's `arrays`, each of one dimension."""
        return {"profiles": self.profiles.reshape(-1), **self.pooled.columns}

    def retain(self, rows: Ints) -> None:
        """Keep these rows only, in this order."""
        self.profiles = self.profiles[rows]
        self.pooled.retain(rows)

    def grow(self, series: int) -> None:
        """Add empty profiles until there are so many."""
        added = np.zeros((series - len(self.profiles), 3, BINS), np.float32)
        self.profiles = np.concatenate([self.profiles, added])
        self.pooled.grow(len(added))

    def judge(self, rows: Ints, hour: Ints, x: Floats) -> HourPredictive:
        """Compare `x` with what is usual at this hour."""
        visits, mean, squares = (self.profiles[rows, part, hour].astype(np.float64) for part in range(3))
        of_all, squares_of_all = (self.pooled.columns[name][rows] for name in POOLED_LAYOUT)
        known = visits >= FEWEST_VISITS
        variance = (POOLED * squares_of_all / np.maximum(of_all, 1e-12) + squares) / (POOLED + visits)
        scale = np.sqrt(np.where(known, variance * (1.0 + 1.0 / np.maximum(visits, 1.0)), 1.0)) + 1e-12
        freedom = POOLED + visits
        score = np.where(known, student_t_score(x - mean, scale, freedom), 0.0)
        return HourPredictive(score, mean, scale, freedom)

    def learn(self, rows: Ints, hour: Ints, x: Floats, share: Floats) -> None:
        """Add `x` as this share of a visit."""
        visits, mean, squares = (self.profiles[rows, part, hour].astype(np.float64) for part in range(3))
        kept = 1.0 - share / VISITS
        after = visits * kept + share
        deviation = np.where(visits > 0, x - mean, 0.0)
        shift = np.where(visits > 0, share / np.maximum(after, 1e-12) * deviation, x - mean)
        added = share * deviation * (deviation - shift)
        for part, values in enumerate((after, mean + shift, squares * kept + added)):
            self.profiles[rows, part, hour] = values
        kept = 1.0 - share / (VISITS * BINS)
        for name, more in (("hours_visits", share), ("hours_squares", added)):
            self.pooled.columns[name][rows] = self.pooled.columns[name][rows] * kept + more


class NoSeason(Season):
    """In place of a profile where none is kept: nothing is known of any hour."""

    def grow(self, series: int) -> None:
        pass

    def retain(self, rows: Ints) -> None:
        pass

    def judge(self, rows: Ints, hour: Ints, x: Floats) -> HourPredictive:
        nothing = np.zeros_like(x)
        return HourPredictive(nothing, x, nothing + 1.0, nothing + 1.0)

    def learn(self, rows: Ints, hour: Ints, x: Floats, share: Floats) -> None:
        pass

"""What the detector asks of a model of series, and what a model answers."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from jobs.detector.model.arrays import Bools, Columns, Floats, Ints


class Phase(IntEnum):
    """Where a series is in the course of a surprise."""

    NORMAL = 0
    EPISODE = 1  # surprised: the challenger learns
    CHANGED = 2  # the challenger took over; the old model can still come back


class Turn(IntEnum):
    """What a window did to the episode of a series."""

    NONE = 0
    STARTED = 1  # an episode
    PASSED = 2  # the values returned: it was an anomaly
    CHANGED = 3  # they stayed: a change of state
    UNDONE = 4  # the change of state reverted
    LEARNED = 5  # the change of state is the new normal


@dataclass(frozen=True)
class Judgement:
    """One window of some series; arrays of one element a row. Values are in the series' own unit."""

    rows: Ints
    score: Floats  # -ln of the calibrated probability of an outcome less likely than this one
    news: Floats  # the score given what the episode has scored before: -ln of the ratio of the probabilities
    alert: Bools  # whether that passes the threshold, or `settled`, and no cooldown suppresses it
    settled: Bools  # whether the score passes it as an episode of single windows becomes the new normal
    statistic: Ints  # the statistic with the greatest score: its place in STATISTICS
    turn: Ints  # Turn
    observed: Floats
    expected: Floats  # this and the 99 % interval are of the newest episode
    low: Floats
    high: Floats


class Model(Protocol):
    """Judges and learns series, which are numbered from 0 on, one window at a time."""

    def __len__(self) -> int: ...

    def add(self, is_count: Bools, past_windows: Ints, window: int) -> Ints:
        """Append series and return their rows. A count that is new was zero in `past_windows` windows before."""
        ...

    def retain(self, rows: Ints) -> None:
        """Keep only these series; they are renumbered, in this order."""
        ...

    def unresolved(self, rows: Ints) -> Floats:
        """By how much the mean of many windows of each of these series may move without news: values are rounded."""
        ...

    def step(
        self,
        window: int | Ints,
        rows: Ints,
        value: Floats,
        samples: Floats,
        threshold: float | Floats,
        *,
        unresolved: Floats | float = 0.0,
    ) -> Judgement:
        """Judge, then learn, one window of the series `rows`: a metric's mean or a template's count, and its samples.

        `window` is the window's number (end time / size), one for all rows or one for each; `threshold` is the score
        from which a surprise is alerted, one for all rows or one for each; what is `unresolved` of a value surprises
        nobody.
        """
        ...

    def is_count(self, rows: Ints | None = None) -> Bools:
        """Which of these series, or of all, are counts of log lines."""
        ...

    def phase(self, rows: Ints) -> Ints:
        """The Phase of each of these series."""
        ...

    def seen(self, rows: Ints) -> Ints:
        """How many windows of each of these series were seen."""
        ...

    def figures(self) -> dict[str, list[Any]]:
        """What the model holds, by name, with one element a series: for people."""
        ...

    def dump(self) -> Columns:
        """The state, as named arrays of one dimension."""
        ...

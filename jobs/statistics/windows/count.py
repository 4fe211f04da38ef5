"""Count windows: each so many values of a series; one that waits too long for the next value ends with what it has."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from jobs.statistics.emit import Record, WindowResult
from jobs.statistics.panes import PaneSizes
from jobs.statistics.points import Points
from jobs.statistics.quantiles import Ints, starts_of
from jobs.statistics.rows import NANO
from jobs.statistics.windows.early import ByCount, Early
from jobs.statistics.windows.kind import Closed, Nanoseconds, RowsState, Window, WindowState, in_seconds
from jobs.statistics.windows.of_values import Shape, cut, matching, runs_of, value_results

NEVER = 2**62  # ns: later than any time-out


class Count(Window):
    """Each `values` values of a series whose metric has one of `names`, in which * and ? stand for others.

    `timeout`: a window that got no value for so long ends with what it has; a value after that begins the next one.
    """

    kind: Literal["count"]
    values: int = Field(ge=2, le=10_000)
    names: tuple[str, ...] = Field(min_length=1)
    timeout: Nanoseconds | None = None
    early: Early | None = None

    def check(self, sizes: PaneSizes, state_ttl: int) -> None:
        """A time-out comes before the state's time to live; early results come with panes."""
        if self.timeout and self.timeout + sizes.smallest > state_ttl:
            most = in_seconds(state_ttl - sizes.smallest)
            raise ValueError(f"{self}: timeout must be at most {most}, state_ttl less the smallest window")
        if self.early:
            self.early.check(self, sizes.smallest)
        if isinstance(self.early, ByCount) and self.early.values >= self.values:
            raise ValueError(f"{self}: early must be of fewer values than the window")

    def opened(self, sizes: PaneSizes) -> WindowState:
        """Keeps the values of open windows."""
        return CountState(self)


class CountState(RowsState[Points]):
    """The values of windows that are not full, by series and time."""

    columns = Points

    def __init__(self, window: Count) -> None:
        super().__init__()
        self.window = window
        fields: Record = {"values": window.values}
        if window.timeout:
            fields["timeout_seconds"] = window.timeout / NANO
        # Where a window is to end isn't known early, and its early and final results share an id.
        self.shape = Shape("count", f"{window.values}-values", fields, has_end_in_id=window.early is None)

    @property
    def is_open(self) -> bool:
        """With a time-out, a window ends by time alone."""
        return self.window.timeout is not None and len(self.rows) > 0

    def evict(self, series: Ints) -> None:
        """A window doesn't go on after the state's time to live."""
        self.rows = self.rows.take(~np.isin(self.rows.series, series))

    def emit(self, closed: Closed) -> Iterator[WindowResult]:
        """Windows that are full, and those whose time is out; then open ones that fire early."""
        points = self.rows.joined(matching(closed, self.window.names)).by_series()
        full, rest = cut(runs_of(points, self.window.timeout), self.window.values, self.window.values)
        over = rest.last + (self.window.timeout or NEVER) <= closed.end
        waiting = rest.where(~over)
        self.rows = waiting.rows()
        for ended in (full, rest.where(over)):
            yield from value_results(closed, ended, self.shape)
        early = self.window.early
        if early and early.may_fire(closed.end) and len(waiting):
            is_older = (self.rows.time < closed.start).astype(np.int64)
            before = np.add.reduceat(is_older, starts_of(waiting.length))
            fires = early.fires(closed.end, before, waiting.length, waiting.last)
            yield from value_results(closed, waiting.where(fires), self.shape, early=True)

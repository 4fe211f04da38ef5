"""Count windows: each so many values of a series; one that waits too long for the next value ends with what it has."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from jobs.statistics.emit import Record, WindowResult
from jobs.statistics.panes import PaneSizes
from jobs.statistics.quantiles import starts_of
from jobs.statistics.rows import NANO
from jobs.statistics.windows.early import Booleans, ByCount, ByTime, Early
from jobs.statistics.windows.kind import Closed, Nanoseconds, Window, WindowState, in_seconds
from jobs.statistics.windows.of_values import Groups, Shape, ValuesState, cut, matching, runs_of, value_results


class Count(Window):
    """Each `values` values of a series whose metric has one of `names`, in which * and ? stand for others.

    `timeout`: a window that got no value for so long ends with what it has; a value after that begins the next one.
    """

    kind: Literal["count"]
    values: int = Field(ge=2, le=10_000)
    names: tuple[str, ...] = Field(min_length=1)
    timeout: Nanoseconds | None = None
    early: Early | None = None

    @property
    def followed(self) -> int | None:
        """How often an open window is followed, if by time."""
        return self.early.every if isinstance(self.early, ByTime) else None

    def check(self, sizes: PaneSizes, state_ttl: int) -> None:
        """What comes by time alone must come before the state's time to live is over; early results come with panes."""
        most = state_ttl - sizes.smallest
        for name, wait in (("timeout", self.timeout), ("early", self.followed)):
            if wait and wait > most:
                raise ValueError(
                    f"{self}: {name} must be at most {in_seconds(most)}, state_ttl less the smallest window"
                )
        if self.early:
            self.early.check(self, sizes.smallest)
        if isinstance(self.early, ByCount) and self.early.values >= self.values:
            raise ValueError(f"{self}: early must be of fewer values than the window")

    def opened(self, sizes: PaneSizes) -> WindowState:
        """Keeps the values of open windows."""
        return CountState(self)


class CountState(ValuesState):
    """The values of windows that are not full, by series and time."""

    def __init__(self, window: Count) -> None:
        super().__init__()
        self.window = window
        fields: Record = {"values": window.values}
        if window.timeout:
            fields["timeout_seconds"] = window.timeout / NANO
        # Where a window is to end isn't known early, and its early and final results share an id.
        self.shape = Shape("count", f"{window.values}-values", fields, has_end_in_id=window.early is None)

    @property
    def open_until(self) -> int:
        """When the last open window times out, or fires early by time."""
        wait = max(self.window.timeout or 0, self.window.followed or 0)
        return int(self.rows.time.max(initial=-wait)) + wait if wait else 0

    def emit(self, closed: Closed) -> Iterator[WindowResult]:
        """Windows that are full, and those whose time is out; then open ones that fire early."""
        points = self.rows.joined(matching(closed, self.window.names)).by_series()
        full, rest = cut(runs_of(points, self.window.timeout), self.window.values, self.window.values)
        over = self._timed_out(rest, closed.end)
        waiting = rest.where(~over)
        self.rows = waiting.rows()
        for ended in (full, rest.where(over)):
            yield from value_results(closed, ended, self.shape)
        if self.window.early and self.window.early.may_fire(closed.end) and len(waiting):
            fires = self._fires(self.window.early, waiting, closed)
            yield from value_results(closed, waiting.where(fires), self.shape, early=True)

    def _timed_out(self, rest: Groups, end: int) -> Booleans:
        """Of the windows that are not full. One that another of its series follows got no value for so long, too."""
        timeout = self.window.timeout
        return rest.last <= end - timeout if timeout else np.zeros(len(rest), bool)

    def _fires(self, early: Early, waiting: Groups, closed: Closed) -> Booleans:
        is_older = (self.rows.time < closed.start).astype(np.int64)
        before = np.add.reduceat(is_older, starts_of(waiting.length))
        return early.fires(closed.end, before, waiting.length, waiting.last)

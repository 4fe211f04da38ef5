"""Session windows: bursts of log lines of one template on one machine."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from jobs.statistics.emit import WindowResult, bounds, series_digest
from jobs.statistics.panes import PaneSizes
from jobs.statistics.quantiles import Ints
from jobs.statistics.rows import NANO
from jobs.statistics.sessions import Sessions
from jobs.statistics.window_statistics import log_columns
from jobs.statistics.windows.early import Early
from jobs.statistics.windows.kind import Closed, Nanoseconds, RowsState, Window, WindowState


class Session(Window):
    """A burst of log lines of one template; it ends `gap` after its last line, and counts from `least` lines on."""

    kind: Literal["session"]
    gap: Nanoseconds
    least: int = Field(10, ge=1)
    early: Early | None = None

    def check(self, sizes: PaneSizes, state_ttl: int) -> None:
        """Early results come with panes."""
        if self.early:
            self.early.check(self, sizes.smallest)

    def opened(self, sizes: PaneSizes) -> WindowState:
        """Keeps the open sessions."""
        return SessionState(self)


class SessionState(RowsState[Sessions]):
    """The open sessions, at most one a series."""

    columns = Sessions

    def __init__(self, window: Session) -> None:
        super().__init__()
        self.window = window

    @property
    def open_until(self) -> int:
        """The end of the last open session."""
        return int(self.rows.last.max(initial=-self.window.gap)) + self.window.gap

    def held(self) -> Ints:
        """Their series."""
        return self.rows.series

    def emit(self, closed: Closed) -> Iterator[WindowResult]:
        """Sessions that have ended; then open ones that fire early."""
        before, gap = self.rows, self.window.gap
        new = Sessions.of_events(closed.lines.series, closed.lines.time, closed.lines.value.astype(np.int64))
        rows = before.joined(new, gap)
        is_open = rows.last + gap > closed.end
        is_open[:-1] &= rows.series[:-1] != rows.series[1:]  # the next one of its series has begun
        self.rows = rows.take(is_open)
        enough = rows.count >= self.window.least
        yield from self._results(closed, rows.take(enough & ~is_open))
        early = self.window.early
        if early and early.may_fire(closed.end):
            fires = early.fires(closed.end, _counts(before, rows), rows.count, rows.last)
            yield from self._results(closed, rows.take(enough & is_open & fires), early=True)

    def _results(self, closed: Closed, sessions: Sessions, early: bool = False) -> Iterator[WindowResult]:
        catalogue, gap = closed.catalogue, self.window.gap
        rows = sessions.take(np.argsort(catalogue.rank[sessions.series], kind="stable"))
        columns = (rows.series, rows.start, rows.last, rows.count, rows.severity)
        for number, start, last, count, severity in zip(*(column.tolist() for column in columns), strict=True):
            machine, end = catalogue.machine(number), last + gap
            window = {"kind": "session", "size_seconds": (end - start) / NANO, "gap_seconds": gap / NANO}
            window |= bounds(start, end)
            identity = f"{machine}/session-{gap / NANO:g}s/{start}/{series_digest(catalogue, number)}"
            statistics = log_columns(catalogue, number, count, severity)
            yield WindowResult(closed.end, identity, machine, closed.facts[machine], window, statistics, early)


def _counts(before: Sessions, now: Sessions) -> Ints:
    """How many lines each of the present sessions had among those of before, which are one a series and ascending."""
    if not len(before):
        return np.zeros(len(now), np.int64)
    at = np.minimum(np.searchsorted(before.series, now.series), len(before) - 1)
    is_same = (before.series[at] == now.series) & (before.start[at] == now.start)
    return np.where(is_same, before.count[at], 0)

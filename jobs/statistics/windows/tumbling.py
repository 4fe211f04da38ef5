"""Tumbling windows: one after the other, each put together from the panes in it."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from jobs.statistics.emit import WindowResult
from jobs.statistics.panes import Pane, PaneSizes
from jobs.statistics.quantiles import Ints
from jobs.statistics.rows import NANO
from jobs.statistics.windows.early import ByTime, Early
from jobs.statistics.windows.kind import Closed, Nanoseconds, Window, WindowState, in_seconds
from jobs.statistics.windows.of_panes import Span, pane_results


class Tumbling(Window):
    """Windows of `size`, one after the other. Larger windows may be put together from these."""

    kind: Literal["tumbling"]
    size: Nanoseconds
    early: Early | None = None

    @property
    def pane_size(self) -> int | None:
        """Each window is a pane."""
        return self.size

    def panes_needed(self, sizes: PaneSizes) -> dict[int, int]:
        """The smallest size is the pane that points are read by."""
        return {} if self.size == sizes.smallest else {sizes.under(self.size, self.size): self.size}

    def check(self, sizes: PaneSizes, state_ttl: int) -> None:
        """Each size is a multiple of the one before."""
        before = sizes.before(self.size)
        if before and (before == self.size or self.size % before):
            raise ValueError(f"{self}: size must be a multiple of {in_seconds(before)}, the one before")
        if self.early:
            self.early.check(self, sizes.under(self.size, self.size))
        if isinstance(self.early, ByTime) and self.early.every >= self.size:
            raise ValueError(f"{self}: early must be shorter than the window")
        if self.early and self.size == sizes.smallest:
            raise ValueError(f"{self}: early results come with panes, and this window is the pane; leave early out")

    def opened(self, sizes: PaneSizes) -> WindowState:
        """Keeps nothing but panes."""
        return TumblingState(self, sizes.under(self.size, self.size))


class TumblingState(WindowState):
    """Emits a window when its last pane has ended."""

    def __init__(self, window: Tumbling, source: int) -> None:
        """`source` is the size of the panes that it is put together from."""
        self.window, self.source = window, source

    def emit(self, closed: Closed) -> Iterator[WindowResult]:
        """The window that ends with this pane; else what the open one has, where it fires early."""
        covered = closed.end % self.window.size
        if covered:
            yield from self._early(closed, closed.end - covered)
        elif whole := closed.panes.complete.get(self.window.size):
            yield from pane_results(closed, self._span(closed.end - self.window.size), whole)

    def _span(self, start: int) -> Span:
        seconds = self.window.size / NANO
        return Span(f"{seconds:g}s", {"kind": "tumbling", "size_seconds": seconds}, start, self.window.size)

    def _early(self, closed: Closed, start: int) -> Iterator[WindowResult]:
        early = self.window.early
        if early is None or not early.may_fire(closed.end) or closed.end % self.source:
            return
        part = closed.panes.since(self.source, start)
        if part is None:
            return
        now, newest = part.rows.points, closed.panes.complete.get(self.source)
        before = now - _points_in(newest, part.rows.series) if newest else now
        # A machine's open window is followed as a whole: that time passes is news, also where no value came.
        fires = early.fires(closed.end, before, now, np.full(len(now), closed.end))
        if fires.any():
            yield from pane_results(closed, self._span(start), part, part.rows.series[fires])


def _points_in(pane: Pane, series: Ints) -> Ints:
    """How many points of each of these ascending series, which hold the pane's, came in it."""
    found = np.zeros(len(series), np.int64)
    found[np.searchsorted(series, pane.rows.series)] = pane.rows.points
    return found

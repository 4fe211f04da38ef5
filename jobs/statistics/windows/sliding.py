"""Sliding windows: one begins at each multiple of the slide, so that they overlap."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import model_validator

from jobs.statistics.emit import Record, WindowResult
from jobs.statistics.panes import PaneSizes
from jobs.statistics.rows import NANO
from jobs.statistics.windows.kind import Closed, Nanoseconds, Window, WindowState
from jobs.statistics.windows.of_panes import Span, pane_results


class Sliding(Window):
    """Windows of `size` that begin each `slide`. The next one says what an early result would say."""

    kind: Literal["sliding"]
    size: Nanoseconds
    slide: Nanoseconds

    @model_validator(mode="after")
    def _overlaps(self) -> Self:
        if self.slide >= self.size:
            raise ValueError("a slide must be shorter than its size; equal ones are kind: tumbling")
        return self

    def panes_needed(self, sizes: PaneSizes) -> dict[int, int]:
        """Those that divide both size and slide."""
        return {sizes.under(self.size, self.slide): self.size}

    def check(self, sizes: PaneSizes, state_ttl: int) -> None:
        """Size and slide are multiples of the smallest pane."""
        if self.size % sizes.smallest or self.slide % sizes.smallest:
            raise ValueError(f"{self}: size and slide must be multiples of a tumbling window's size")

    def opened(self, sizes: PaneSizes) -> WindowState:
        """Keeps nothing but panes."""
        return SlidingState(self, sizes.under(self.size, self.slide))


class SlidingState(WindowState):
    """Emits the window that ends at each multiple of the slide."""

    def __init__(self, window: Sliding, source: int) -> None:
        """`source` is the size of the panes that it is put together from."""
        self.window, self.source = window, source

    def emit(self, closed: Closed) -> Iterator[WindowResult]:
        """The window that ends with this pane, if any does."""
        window, start = self.window, closed.end - self.window.size
        whole = None if closed.end % window.slide else closed.panes.since(self.source, start)
        if whole:
            size, slide = window.size / NANO, window.slide / NANO
            shape: Record = {"kind": "sliding", "size_seconds": size, "slide_seconds": slide}
            yield from pane_results(closed, Span(f"{size:g}s-{slide:g}s", shape, start, window.size), whole)

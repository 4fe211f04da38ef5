"""Sliding count windows: the last so many values of a series, each time that so many more have come."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from jobs.statistics.emit import WindowResult
from jobs.statistics.panes import PaneSizes
from jobs.statistics.windows.kind import Closed, Window, WindowState
from jobs.statistics.windows.of_values import Shape, ValuesState, cut, matching, runs_of, value_results


class SlidingCount(Window):
    """The last `values` values of a series, each `slide` values, from when it has so many on."""

    kind: Literal["sliding_count"]
    values: int = Field(ge=2, le=10_000)
    slide: int = Field(ge=1)
    names: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _overlaps(self) -> Self:
        if self.slide >= self.values:
            raise ValueError("a slide must be of fewer values than its window; equal ones are kind: count")
        return self

    def opened(self, sizes: PaneSizes) -> WindowState:
        """Keeps the values that the next windows begin with."""
        return SlidingCountState(self)


class SlidingCountState(ValuesState):
    """The values of each series from the beginning of its next window on."""

    def __init__(self, window: SlidingCount) -> None:
        super().__init__()
        self.window = window
        fields = {"values": window.values, "slide_values": window.slide}
        self.shape = Shape("sliding_count", f"{window.values}-values-each-{window.slide}", fields)

    def emit(self, closed: Closed) -> Iterator[WindowResult]:
        """The windows that the pane's values complete."""
        points = self.rows.joined(matching(closed, self.window.names)).by_series()
        full, rest = cut(runs_of(points), self.window.values, self.window.slide)
        self.rows = rest.rows()
        yield from value_results(closed, full, self.shape)

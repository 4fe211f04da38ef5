"""The drawing of a series: its mean as a line, what was between as an area, expected bands and novelties as marks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ops.console.views.machine import STEPS

WIDTH, HEIGHT = 960, 96
_MARGIN = 0.06  # of the range, above and below


@dataclass(frozen=True)
class Rect:
    """A span of time and value, with the sentence of its novelty."""

    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True)
class Plot:
    """A series in SVG units."""

    line: str
    area: str
    expected: tuple[Rect, ...]  # where a novelty says what would have been usual
    marks: tuple[Rect, ...]  # while a novelty lasts, over the whole height
    low: float
    high: float


class Scale:
    """From time and value to SVG units."""

    def __init__(self, start: int, step: int, values: Iterable[float]) -> None:
        self._start, self._length = start, STEPS * step
        known = list(values) or [0.0]
        self.low, self.high = min(known), max(known)
        # Halves, as the difference of two finite numbers may be infinite.
        self._middle = self.low / 2 + self.high / 2
        self._half = (self.high / 2 - self.low / 2) * (1 + 2 * _MARGIN) or 1.0

    def x(self, milli: float) -> float:
        return round(min(max((milli - self._start) / self._length, 0.0), 1.0) * WIDTH, 1)

    def y(self, value: float) -> float:
        return round(HEIGHT / 2 * (1 - (value - self._middle) / self._half), 1)


def plot(series: Mapping[str, Any], novelties: Iterable[Mapping[str, Any]], start: int, step: int) -> Plot:
    """Draw a series with those novelties that are its own and reach into the time that is shown."""
    end, points = start + STEPS * step, series["points"]
    own = [one for one in novelties if one["series"] == series["series"] and (one["ended"] or end) >= start]
    banded = [one for one in own if one["expected_low"] is not None and one["expected_high"] is not None]
    values = [point[name] for point in points for name in ("value", "low", "high") if point[name] is not None]
    scale = Scale(start, step, [*values, *(one[name] for one in banded for name in ("expected_low", "expected_high"))])
    return Plot(
        _lines(points, step, scale),
        _area(points, step, scale),
        tuple(_rect(one, end, scale, one["expected_low"], one["expected_high"]) for one in banded),
        tuple(_rect(one, end, scale, None, None) for one in own),
        scale.low,
        scale.high,
    )


def _lines(points: list[Mapping[str, Any]], step: int, scale: Scale) -> str:
    """A line through the points; where one is missing it is broken."""
    parts, before = [], None
    for point in points:
        x, y = scale.x(point["time"] + step / 2), scale.y(point["value"])
        joined = before is not None and point["time"] - before <= 2 * step
        # A line of no length is a dot, as its caps are round.
        parts.append(f"L{x},{y}" if joined else f"M{x},{y}h0")
        before = point["time"]
    return "".join(parts)


def _area(points: list[Mapping[str, Any]], step: int, scale: Scale) -> str:
    """A column from the least to the greatest value of each step."""
    width = round(WIDTH / STEPS, 1)
    return "".join(
        f"M{scale.x(one['time'])},{scale.y(one['high'])}h{width}V{scale.y(one['low'])}h-{width}z"
        for one in points
        if one["low"] is not None and one["high"] is not None
    )


def _rect(novelty: Mapping[str, Any], end: int, scale: Scale, low: float | None, high: float | None) -> Rect:
    left, right = scale.x(novelty["started"]), scale.x(novelty["ended"] or end)
    top, below = (0.0, float(HEIGHT)) if low is None or high is None else (scale.y(high), scale.y(low))
    return Rect(left, top, max(round(right - left, 1), 2.0), max(round(below - top, 1), 1.0), novelty["text"] or "")

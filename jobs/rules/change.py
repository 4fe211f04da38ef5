"""A change: a series rises or falls by so much within a time."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from jobs.rules.rule import Events, Finding, Glob, Nanoseconds, Observation, Record, Rule, Tracker, seconds

MOST_POINTS = 1000  # of a series that a tracker keeps; of more than that the oldest go

Point = tuple[int, float]  # time, value


class Change(Rule):
    """A series whose value is at least `by` above (a rise) or below (a fall) one that it had `within` the time before.

    Each series for itself. What is compared is the value as it was measured: of a counter, its total.
    """

    FIELDS: ClassVar[tuple[str, ...]] = ("series", "before", "after", "seconds")

    kind: Literal["change"]
    series: Glob
    by: float = Field(gt=0, allow_inf_nan=False)
    direction: Literal["rise", "fall"] = "rise"
    within: Nanoseconds
    text: str = "{name}: {series} of {machine} went from {before} to {after} in {seconds} s"

    @property
    def selectors(self) -> tuple[Events, ...]:
        return (Events(metric=self.series),)

    @property
    def longest(self) -> int:
        return self.within

    def tracker(self, packed: Record | None = None) -> "ChangeTracker":
        return ChangeTracker(self, packed or {})


class ChangeTracker(Tracker):
    """Of each series the points that a later one may have to be compared with.

    For a rise these are the points lower than all after them, the lowest first: any other is no better than one that
    stays in time for longer (the sliding minimum of Lemire 2006). For a fall it is the same of the negative values.
    """

    def __init__(self, rule: Change, packed: Record) -> None:
        super().__init__(rule.cooldown, packed)
        self.rule = rule
        self.sign = 1 if rule.direction == "rise" else -1
        self.points: dict[str, deque[Point]] = {
            series: deque((time, value) for time, value in points)
            for series, points in packed.get("points", {}).items()
        }

    def take(self, time: int, observations: Sequence[Observation]) -> Iterator[Finding]:
        for one in observations:
            if one.value is not None:
                yield from self._compare(one.series, time, one.value)

    def _compare(self, series: str, time: int, value: float) -> Iterator[Finding]:
        points = self._add(series, (time, value))
        since, before = points[0]
        if since == time or self.sign * (value - before) < self.rule.by or self.cools_down(time):
            return
        observed = [Observation(0, series, *point[1:], None).shown(point[0]) for point in (points[0], points[-1])]
        fields = {"series": series, "before": f"{before:g}", "after": f"{value:g}", "seconds": seconds(time - since)}
        yield self.start(time, since, observed, **fields)
        self.points[series] = deque([(time, value)])  # the next change is one of its own

    def _add(self, series: str, point: Point) -> deque[Point]:
        points = self.points.setdefault(series, deque())
        while points and self.sign * (points[-1][1] - point[1]) >= 0:
            points.pop()
        points.append(point)
        if len(points) > MOST_POINTS:
            points.popleft()
        return points

    def advance(self, before: int) -> Iterator[Finding]:
        self.end_cooldown(before)
        for points in self.points.values():
            _drop(points, before - self.rule.within)
        self.points = {series: points for series, points in self.points.items() if points}
        yield from ()

    def packed(self) -> Record:
        points = {series: list(self.points[series]) for series in sorted(self.points)}
        return self.packed_cooldown() | ({"points": points} if points else {})


def _drop(points: deque[Point], before: int) -> None:
    while points and points[0][0] < before:
        points.popleft()

"""Results of windows over so many values of a series: one a window."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobs.statistics.emit import Record, WindowResult, bounds, series_digest
from jobs.statistics.points import Points
from jobs.statistics.quantiles import Ints, rows_of_runs, starts_of
from jobs.statistics.rows import NANO, Rows
from jobs.statistics.window_statistics import table
from jobs.statistics.windows.kind import Closed, RowsState


@dataclass(frozen=True)
class Groups:
    """Neighbours among points by series and time: `length` of them from row `start` on. Groups may overlap."""

    points: Points
    start: Ints
    length: Ints

    def __len__(self) -> int:
        return len(self.start)

    def where(self, chosen: NDArray[np.bool_]) -> "Groups":
        """Some of the groups."""
        return Groups(self.points, self.start[chosen], self.length[chosen])

    def rows(self) -> Points:
        """The points of all groups, one group after the other."""
        return self.points.take(rows_of_runs(self.start, self.length))

    @property
    def series(self) -> Ints:
        """The series of each group."""
        return self.points.series[self.start]

    @property
    def first(self) -> Ints:
        """The time of the first point of each group."""
        return self.points.time[self.start]

    @property
    def last(self) -> Ints:
        """The time of the last point of each group."""
        ends: Ints = self.start + self.length
        return self.points.time[ends - 1]


def runs_of(points: Points, gap: int | None = None) -> Groups:
    """The points of each series as one group; or as several, where a point comes `gap` ns or more after the one before.

    The points are by series and time.
    """
    begins = np.ones(len(points), bool)
    begins[1:] = points.series[1:] != points.series[:-1]
    if gap is not None:
        begins[1:] |= np.diff(points.time) >= gap
    start = np.flatnonzero(begins)
    return Groups(points, start, np.diff(start, append=len(points)))


def cut(runs: Groups, values: int, slide: int) -> tuple[Groups, Groups]:
    """(windows, rest): in each run a window of `values` points each `slide` points; and what is left."""
    windows = np.maximum((runs.length - values) // slide + 1, 0)
    place = np.arange(int(windows.sum())) - np.repeat(starts_of(windows), windows)
    start = np.repeat(runs.start, windows) + slide * place
    full = Groups(runs.points, start, np.full(len(start), values))
    rest = Groups(runs.points, runs.start + slide * windows, runs.length - slide * windows)
    return full, rest.where(rest.length > 0)


def matching(closed: Closed, patterns: tuple[str, ...]) -> Points:
    """The pane's values of the metrics whose names one of the shell patterns fits."""
    taken = closed.catalogue.matching(patterns)
    return closed.values.take(taken[closed.values.series])


class ValuesState(RowsState[Points]):
    """Keeps the values of open windows, by series and time."""

    columns = Points

    def evict(self, series: Ints) -> None:
        """A window doesn't go on after the state's time to live."""
        self.rows = self.rows.take(~np.isin(self.rows.series, series))


class Shape(NamedTuple):
    """What a window's record and id say of its declaration: `name` is for ids, `fields` are for records.

    `has_end_in_id`: windows of one series that begin at the same time have different ids if they end at different ones.
    """

    kind: str
    name: str
    fields: Record
    has_end_in_id: bool = True


def value_results(closed: Closed, groups: Groups, shape: Shape, *, early: bool = False) -> Iterator[WindowResult]:
    """A result for each group of values."""
    if not len(groups):
        return
    catalogue, points = closed.catalogue, groups.rows()
    every, group = np.ones(len(points), bool), np.repeat(np.arange(len(groups)), groups.length)
    combined = Rows.of_points(group, points.value, points.value, every, every).combined()
    rows = replace(combined, series=groups.series)
    order = np.argsort(catalogue.rank[rows.series], kind="stable")
    found = table(catalogue, rows, order, {}, np.full(len(rows), np.nan)).parts(np.arange(len(rows)))
    columns = (column[order].tolist() for column in (rows.series, groups.first, groups.last))
    for number, start, last, statistics in zip(*columns, found, strict=True):
        machine, end = catalogue.machine(number), last + 1
        window = {"kind": shape.kind, "size_seconds": (end - start) / NANO, **shape.fields, **bounds(start, end)}
        place = f"{start}-{end}" if shape.has_end_in_id else f"{start}"
        identity = f"{machine}/{shape.name}/{place}/{series_digest(catalogue, number)}"
        yield WindowResult(closed.end, identity, machine, closed.facts[machine], window, statistics, early)

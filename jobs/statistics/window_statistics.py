"""What a window says of each series: rows to the columns of a record, machine by machine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.statistics.catalogue import Catalogue, Form
from jobs.statistics.counters import FALLS
from jobs.statistics.histograms import Spread, quantile
from jobs.statistics.panes import Pane
from jobs.statistics.quantiles import PERCENT, Floats, Ints, quantiles
from jobs.statistics.rows import Rows

Columns = dict[str, Any]  # as orjson takes them: lists, numpy's arrays, fragments
QUANTILES = tuple(f"p{percent}" for percent in PERCENT)
FIGURES = ("sum", "mean", "variance", "min", "max", "first", "last")
WHOLE = ("observations", "severity_number")


@dataclass(frozen=True)
class Table:
    """The statistics of many series, a row each: of each figure a column, NaN where it isn't known."""

    catalogue: Catalogue
    series: Ints
    rate: NDArray[np.bool_]
    count: Ints
    figures: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.series)

    def of_series(self, series: Ints) -> "Table":
        """The rows of these series only."""
        kept = np.isin(self.series, series)
        figures = {name: column[kept] for name, column in self.figures.items()}
        return Table(self.catalogue, self.series[kept], self.rate[kept], self.count[kept], figures)

    def parts(self, starts: Ints, examples: Mapping[int, str] | None = None) -> Iterator[Columns]:
        """The columns of a record for each run of rows; those without any value are left out.

        `examples` are lines of log series, by number.
        """
        held = {
            name: np.logical_or.reduceat(~np.isnan(column), starts).tolist() for name, column in self.figures.items()
        }
        is_log = self.catalogue.form[self.series] == Form.LOG
        bounds = starts.tolist()
        for at, (begin, end) in enumerate(zip(bounds, [*bounds[1:], len(self)], strict=True)):
            part = slice(begin, end)
            labels = self.catalogue.labels(self.series[part], self.rate[part])
            known = {name: _plain(name, column[part]) for name, column in self.figures.items() if held[name][at]}
            lines = [examples.get(n) for n in self.series[part].tolist()] if examples and is_log[part].any() else []
            yield {**labels, "count": self.count[part], **known} | ({"example": lines} if any(lines) else {})

    def by_machine(self, examples: Mapping[int, str]) -> Iterator[tuple[str, Columns]]:
        """Each machine's columns; its rows stand together. `examples` as for `parts`."""
        machine = self.catalogue.machine_of[self.series]
        starts = np.flatnonzero(np.diff(machine, prepend=-1))
        names = (self.catalogue.machines[number] for number in machine[starts].tolist())
        yield from zip(names, self.parts(starts, examples), strict=True)


def _plain(name: str, column: Floats) -> Floats | list[int | None]:
    return column if name not in WHOLE else [None if isnan(value) else int(value) for value in column.tolist()]


def window_table(catalogue: Catalogue, pane: Pane, size: int) -> Table:
    """The statistics of a window of `size` ns, ordered by machine, kind, series and unit."""
    rows = pane.rows
    order = np.argsort(catalogue.rank[rows.series])
    missing = missing_share(rows.points, size, catalogue.memory["interval"][rows.series])
    return table(catalogue, rows, order, pane.spreads, missing)


def missing_share(count: Ints, size: int, interval: Ints) -> Floats:
    """Which share of the points that the usual interval promises in a window of `size` did not come; NaN if unknown.

    Promised are whole points; an interval that is wrong by a thousandth, or by a tenth of a point, costs none.
    """
    known = interval > 0
    promised = np.maximum(np.floor(size / np.where(known, interval, 1) * 0.999 + 0.1), 1.0)
    return np.where(known, np.maximum(1.0 - count / promised, 0.0), np.nan)


def table(catalogue: Catalogue, rows: Rows, order: Ints, spreads: Mapping[int, Spread], missing: Floats) -> Table:
    """The statistic of each row, in `order`; `missing` may be NaN: not known."""
    form = catalogue.form[rows.series]
    has_values = rows.length > 0
    figures = {name: np.where(has_values, getattr(rows, name), np.nan) for name in FIGURES}
    figures |= dict(zip(QUANTILES, _quantiles(rows, has_values), strict=True))
    figures["missing"] = np.where(form == Form.LOG, np.nan, missing)
    figures |= {name: np.full(len(rows), np.nan) for name in WHOLE}
    severity = np.where(form == Form.LOG, rows.max, 0.0)
    figures["severity_number"][severity > 0] = severity[severity > 0]
    for at in np.flatnonzero(form == Form.HISTOGRAM).tolist():
        for name, value in _observed(spreads.get(int(rows.series[at]))).items():
            figures[name][at] = value
    is_rate = (form == Form.COUNTER) & (catalogue.memory["falls"][rows.series] < FALLS)
    ordered = {name: column[order] for name, column in figures.items()}
    return Table(catalogue, rows.series[order], is_rate[order], rows.points[order], ordered)


def _quantiles(rows: Rows, has_values: NDArray[np.bool_]) -> list[Floats]:
    found = [np.full(len(rows), np.nan) for _ in PERCENT]
    if has_values.any():
        for column, values in zip(found, quantiles(rows.value, rows.weight, rows.length[has_values]), strict=True):
            column[has_values] = values
    return found


def _observed(spread: Spread | None) -> dict[str, float]:
    """What is known of a histogram's observations."""
    if spread is None:
        return {}
    found: dict[str, float | None] = {"observations": spread.observations, "sum": spread.total}
    found["mean"] = spread.total / spread.observations if spread.observations else None
    found |= {name: quantile(spread, percent) for name, percent in zip(QUANTILES, PERCENT, strict=True)}
    return {name: value for name, value in found.items() if value is not None}


def log_columns(catalogue: Catalogue, number: int, count: int, severity: int) -> Columns:
    """The statistic of log lines: their count, and the highest severity where there is one."""
    labels = catalogue.labels(np.array([number]), np.array([False]))
    return {**labels, "count": [count]} | ({"severity_number": [severity]} if severity else {})

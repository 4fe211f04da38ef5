"""What a window says of each series: rows to the statistics of a record, machine by machine."""

from collections.abc import Iterator
from math import isnan
from typing import Any

import numpy as np

from jobs.statistics.catalogue import Catalogue, Form
from jobs.statistics.counters import FALLS
from jobs.statistics.histograms import Spread, quantile
from jobs.statistics.panes import Pane
from jobs.statistics.quantiles import PERCENT, Floats, Ints, quantiles
from jobs.statistics.windows import Rows

Record = dict[str, Any]
QUANTILES = tuple(f"p{percent}" for percent in PERCENT)
FIGURES = ("count", "sum", "mean", "variance", "min", "max", "first", "last", *QUANTILES, "missing")


def by_machine(catalogue: Catalogue, pane: Pane, size: int) -> Iterator[tuple[str, list[Record]]]:
    """Each machine of a window of `size` ns with its statistics, in the order of their names."""
    rows = pane.rows
    order = np.argsort(catalogue.rank[rows.series])
    missing = missing_share(rows.points, size, catalogue.memory["interval"][rows.series])
    told = statistics(catalogue, rows, order, pane.spreads, missing)
    machine = catalogue.machine_of[rows.series][order]
    starts = np.flatnonzero(np.diff(machine, prepend=-1)).tolist()
    for begin, end in zip(starts, [*starts[1:], len(told)], strict=True):
        yield catalogue.machines[machine[begin]], told[begin:end]


def missing_share(count: Ints, size: int, interval: Ints) -> Floats:
    """Which share of the points that the usual interval promises in a window of `size` did not come; NaN if unknown.

    Promised are whole points; an interval that is wrong by a thousandth, or by a tenth of a point, costs none.
    """
    known = interval > 0
    promised = np.maximum(np.floor(size / np.where(known, interval, 1) * 0.999 + 0.1), 1.0)
    return np.where(known, np.maximum(1.0 - count / promised, 0.0), np.nan)


def statistics(
    catalogue: Catalogue, rows: Rows, order: Ints, spreads: dict[int, Spread], missing: Floats
) -> list[Record]:
    """The statistic of each row, in `order`; `missing` may be NaN: not known."""
    columns = [rows.points, rows.sum, rows.mean, rows.variance, rows.min, rows.max, rows.first, rows.last]
    columns += [*_quantiles(rows), missing]
    # As lists: reading single numbers out of numpy is slow.
    figures = zip(*(column[order].tolist() for column in columns), strict=True)
    is_whole = (rows.length > 0) & ~np.isnan(missing)
    is_rate = (catalogue.form[rows.series] == Form.COUNTER) & (catalogue.memory["falls"][rows.series] < FALLS)
    labels = (column[order].tolist() for column in (rows.series, is_whole, is_rate))
    return [
        catalogue.described(number, rate) | dict(zip(FIGURES, found, strict=True))
        if whole
        else _partial(catalogue, number, rate, dict(zip(FIGURES, found, strict=True)), spreads.get(number))
        for number, whole, rate, found in zip(*labels, figures, strict=True)
    ]


def _quantiles(rows: Rows) -> list[Floats]:
    has = rows.length > 0
    found = [np.full(len(rows), np.nan) for _ in PERCENT]
    if has.any():
        for column, values in zip(found, quantiles(rows.value, rows.weight, rows.length[has]), strict=True):
            column[has] = values
    return found


def _partial(catalogue: Catalogue, number: int, rate: bool, found: Record, spread: Spread | None) -> Record:
    """A statistic that lacks figures: of a log, a histogram, a new series."""
    series = catalogue.series[number]
    if series.form == Form.LOG:
        return log_statistic(catalogue, number, found["count"], int(found["max"]))
    if series.form == Form.HISTOGRAM:
        found = {"count": found["count"], "missing": found["missing"], **(_observed(spread) if spread else {})}
    elif isnan(found["p50"]):  # the first point of a counter
        found = {"count": found["count"], "missing": found["missing"]}
    known = {name: value for name, value in found.items() if value is not None and not isnan(value)}
    return catalogue.described(number, rate) | known


def log_statistic(catalogue: Catalogue, number: int, count: int, severity: int) -> Record:
    """Lines are only counted; the highest severity is told where there is one."""
    counted = {"count": count} | ({"severity_number": severity} if severity else {})
    return catalogue.described(number, False) | counted


def _observed(spread: Spread) -> Record:
    found = {name: quantile(spread, percent) for name, percent in zip(QUANTILES, PERCENT, strict=True)}
    mean = spread.total / spread.observations if spread.observations else None
    return {"observations": spread.observations, "sum": spread.total, "mean": mean, **found}

"""Rows of series that get new numbers, because others are dropped."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from jobs.statistics.points import Points
from jobs.statistics.quantiles import Ints
from jobs.statistics.rows import Rows
from jobs.statistics.sessions import Sessions

Columns = TypeVar("Columns", Points, Rows, Sessions)


def of_series(rows: Columns, kept: Ints) -> Columns:
    """The rows of these series, ascending; the new numbers of the series are their places among them."""
    found = rows.take(np.flatnonzero(np.isin(rows.series, kept)))
    return replace(found, series=np.searchsorted(kept, found.series))

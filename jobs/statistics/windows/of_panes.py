"""Results of windows that are put together from panes: one a machine, with all of its series."""

from collections.abc import Iterator
from typing import NamedTuple

from jobs.statistics.emit import Record, WindowResult, bounds
from jobs.statistics.panes import Pane
from jobs.statistics.quantiles import Ints
from jobs.statistics.window_statistics import window_table
from jobs.statistics.windows.kind import Closed


class Span(NamedTuple):
    """A window in time: its name in ids, its shape as a record has it, its start and size in ns."""

    name: str
    shape: Record
    start: int
    size: int


def pane_results(closed: Closed, span: Span, pane: Pane, series: Ints | None = None) -> Iterator[WindowResult]:
    """What `pane`, all that came in the window so far, says of each machine, or of these series only.

    A window that ends later than the pane is open: its results are early ones.
    """
    end = span.start + span.size
    window = {**span.shape, **bounds(span.start, end)}
    table = window_table(closed.catalogue, pane, closed.end - span.start)
    if series is not None:
        table = table.of_series(series)
    for machine, statistics in table.by_machine(closed.examples):
        identity = f"{machine}/{span.name}/{span.start}"
        yield WindowResult(
            closed.end, identity, machine, pane.facts[machine], window, statistics, closed.end < end
        )  # fmt: skip

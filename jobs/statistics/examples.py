"""An example of each log template: the first line of the newest pane in which it came.

Of lines at the same time the one that sorts first counts, so the choice doesn't depend on the order of records.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from jobs.statistics.lines import Lines

EXAMPLE_CHARACTERS = 256  # of a line

First = tuple[int, str]  # time and line


class Examples:
    """`newest` has one line a series; `waiting` those of panes that are still open, by the start of the pane."""

    def __init__(self, newest: Sequence[tuple[int, str]] = (), waiting: Sequence[tuple[int, list[Any]]] = ()) -> None:
        """From the values of `packed`."""
        self.newest = dict(newest)
        self.waiting = {start: {series: (time, line) for series, time, line in lines} for start, lines in waiting}
        self._packed: orjson.Fragment | None = None  # of `newest`, which changes with panes only

    def take(self, lines: Lines, pane: int) -> None:
        """Take lines, in any order; `pane` is the size of panes in ns."""
        series, times = lines.series, lines.times
        start = times - times % pane
        order = np.lexsort((times, series, start))
        begins = np.diff(start[order], prepend=-1) != 0
        begins |= np.diff(series[order], prepend=-1) != 0
        earliest = times[order] == times[order][begins][np.cumsum(begins) - 1]
        for at in order[earliest].tolist():
            of_pane, number = self.waiting.setdefault(int(start[at]), {}), int(series[at])
            first = int(times[at]), lines.texts[at][:EXAMPLE_CHARACTERS]
            of_pane[number] = min(of_pane.get(number, first), first)

    def close(self, start: int) -> None:
        """The pane that begins there has ended."""
        if ended := self.waiting.pop(start, None):
            self.newest |= {series: line for series, (_, line) in ended.items()}
            self._packed = None

    def retain(self, place: Mapping[int, int]) -> None:
        """Only these series are left, under new numbers: old -> new."""
        self.newest = {place[series]: line for series, line in self.newest.items() if series in place}
        waiting = {
            start: {place[series]: first for series, first in lines.items() if series in place}
            for start, lines in self.waiting.items()
        }
        self.waiting = {start: lines for start, lines in waiting.items() if lines}
        self._packed = None

    def packed(self) -> dict[str, Any]:
        """The constructor's arguments as JSON."""
        if self._packed is None:
            self._packed = orjson.Fragment(orjson.dumps(sorted(self.newest.items())))
        waiting = [
            (start, [(series, *lines[series]) for series in sorted(lines)])
            for start, lines in sorted(self.waiting.items())
        ]
        return {"newest": self._packed, "waiting": waiting}

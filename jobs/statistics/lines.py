"""Log lines as columns, and those that wait for the end of their pane."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobs.statistics.parameter_values import LINE_CHARACTERS
from jobs.statistics.quantiles import Booleans, Ints


class Lines(NamedTuple):
    """Log lines that have a text, in the order of the log: of each the series, time, severity and text."""

    series: Ints
    times: Ints
    severities: Ints
    texts: list[str]

    @classmethod
    def of(
        cls, series: Ints, times: Sequence[int], severities: Sequence[float], texts: Iterable[str | None]
    ) -> "Lines":
        """Those of a record's events that have a text."""
        found = [(at, text) for at, text in enumerate(texts) if text]
        kept = np.array([at for at, _ in found], np.int64)
        times_, severities_ = (np.array(column, np.int64)[kept] for column in (times, severities))
        return cls(series[kept], times_, severities_, [text for _, text in found])

    @classmethod
    def joined(cls, parts: Sequence["Lines"]) -> "Lines":
        """Those of several records."""
        series, times, severities = (np.concatenate([part[at] for part in parts]) for at in range(3))
        return cls(series, times, severities, list(chain.from_iterable(part.texts for part in parts)))

    def again(self, lines: Sequence[int], series: Sequence[int]) -> "Lines":
        """Some of these lines, by their places, as lines of other series."""
        at = np.array(lines, np.int64)
        texts = [self.texts[line] for line in lines]
        return Lines(np.array(series, np.int64), self.times[at], self.severities[at], texts)

    def take(self, rows: Booleans | Ints) -> "Lines":
        """Some of them, by a mask or by their places."""
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Lines(self.series[at], self.times[at], self.severities[at], [self.texts[one] for one in at.tolist()])

    def of_series(self, kept: Ints) -> "Lines":
        """The lines of these series, ascending; the new numbers of the series are their places among them."""
        found = self.take(np.isin(self.series, kept))
        return found._replace(series=np.searchsorted(kept, found.series))

    def ordered(self) -> "Lines":
        """By time and text: an order that depends on their content alone."""
        times = self.times.tolist()
        order = sorted(range(len(times)), key=lambda at: (times[at], self.texts[at]))
        return self.take(np.array(order, np.int64))


class WaitingLines:
    """Lines of panes that are still open, by the start of the pane.

    How far a watermark has come when a line is read depends on how the log is cut. So what a line says, compared with
    the lines before it, is asked when its pane ends.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]], pane: int) -> None:
        """From the columns of `packed`, or none; `pane` is the size of panes in ns."""
        self._pane = pane
        self._parts: dict[int, list[Lines]] = defaultdict(list)
        if columns:
            ends = np.cumsum(columns["lengths"]).tolist()
            whole = columns["bytes"].tobytes()
            texts = [whole[begin:end].decode() for begin, end in pairwise([0, *ends])]
            self.wait(Lines(columns["series"], columns["times"], columns["severities"], texts))

    def wait(self, lines: Lines) -> None:
        """Take lines, each into its pane; as much of their texts as templates are made of."""
        starts = lines.times - lines.times % self._pane
        for start in np.unique(starts).tolist():
            part = lines.take(starts == start)
            self._parts[start].append(part._replace(texts=[text[:LINE_CHARACTERS] for text in part.texts]))

    def close(self, start: int) -> Lines | None:
        """The lines of the pane that begins there and has ended, by time and text; None if there are none."""
        parts = self._parts.pop(start, None)
        return Lines.joined(parts).ordered() if parts else None

    def series(self) -> list[Ints]:
        """The series of these lines, in pieces."""
        return [part.series for parts in self._parts.values() for part in parts]

    def retain(self, kept: Ints) -> None:
        """Only the lines of these series are left, ascending; their new numbers are their places in it."""
        for start in list(self._parts):
            parts = [part.of_series(kept) for part in self._parts.pop(start)]
            if left := [part for part in parts if part.texts]:
                self._parts[start] = left

    def packed(self) -> dict[str, NDArray[Any]]:
        """As columns, which are there if no line waits, too: their names are the state's layout."""
        nothing = Lines.of(np.zeros(0, np.int64), (), (), ())
        whole = Lines.joined([nothing, *(part for start in sorted(self._parts) for part in self._parts[start])])
        texts = [text.encode() for text in whole.texts]
        return {
            "series": whole.series,
            "times": whole.times,
            "severities": whole.severities,
            "lengths": np.array([len(text) for text in texts], np.int64),
            "bytes": np.frombuffer(b"".join(texts), np.uint8),
        }

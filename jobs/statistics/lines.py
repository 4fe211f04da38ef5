"""Log lines that were read in one call, as columns."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from jobs.statistics.quantiles import Ints


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

"""Log lines that were read in one call, as columns."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from jobs.statistics.quantiles import Ints


class Lines(NamedTuple):
    """Log lines that have a text, in the order of the log: of each the series, time and text."""

    series: Ints
    times: Ints
    texts: list[str]

    @classmethod
    def of(cls, series: Ints, times: list[int], texts: Iterable[str | None]) -> "Lines":
        """Those of a record's events that have a text."""
        found = [(at, text) for at, text in enumerate(texts) if text]
        kept = np.array([at for at, _ in found], np.int64)
        return cls(series[kept], np.array(times, np.int64)[kept], [text for _, text in found])

    @classmethod
    def joined(cls, parts: Sequence["Lines"]) -> "Lines":
        """Those of several records."""
        series, times, texts = zip(*parts, strict=True)
        return cls(np.concatenate(series), np.concatenate(times), list(chain.from_iterable(texts)))

"""The state of the window model: some arrays of one element a series, constant whatever the history."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, get_type_hints

import numpy as np

from jobs.detector.model.arrays import Bytes, Columns, Floats, Ints, Layout, with_prefix
from jobs.detector.model.conjugate import GammaPoisson, Nig, Posterior, Tail
from jobs.detector.model.statistics import STATISTICS, WITHOUT_SEASON, Statistic


@dataclass(slots=True)
class SeriesState:
    """Values are on the model's scale. Packed, a posterior is one column for each of its parameters."""

    tails: tuple[Tail, ...]  # of the past scores of each statistic: the first ones of STATISTICS
    normal: Nig  # of window means
    rate: GammaPoisson  # of counts
    challenger: Nig  # in an episode it learns the new normal; after it, it is the old one
    challenger_rate: GammaPoisson
    jumps: Nig  # of differences of successive windows
    samples: Floats  # a window's usual number of them
    last: Floats  # the newest value
    quantum: Floats  # the least change that was seen
    surprise: Floats  # the mean level score, by which forgetting speeds up
    sustained: Floats  # the mean level score of the last few windows
    expected: Floats  # of the newest episode, when it started
    low: Floats
    high: Floats
    loudest: Floats  # the greatest score of the episode
    last_window: Ints
    seen: Ints  # windows
    changes: Ints  # windows whose value differed from the one before
    run: Ints  # windows since the phase began
    back: Ints  # windows in a row inside the expected interval
    outside: Ints  # windows of the episode outside it
    is_count: Bytes
    phase: Bytes  # Phase

    @classmethod
    def unpacked(cls, columns: Columns) -> Self:
        """From the columns of a layout; not copies."""
        posteriors: dict[str, Any] = {
            name: _read(columns, kind, prefix) for name, (kind, prefix) in _POSTERIORS.items()
        }
        tails = tuple(_read(columns, Tail, prefix) for prefix in _TAILS if prefix + Tail._fields[0] in columns)
        plain: dict[str, Any] = {name: columns[name] for name in _COLUMNS}
        return cls(tails, **posteriors, **plain)

    @classmethod
    def zeros(cls, series: int, layout: Layout) -> Self:
        return cls.unpacked({name: np.zeros(series, kind) for name, kind in layout.items()})

    def packed(self) -> Columns:
        """The columns of its layout; not copies."""
        columns: Columns = {}
        for name, (_, prefix) in _POSTERIORS.items():
            columns |= with_prefix(prefix, getattr(self, name)._asdict())
        for prefix, tail in zip(_TAILS, self.tails, strict=False):
            columns |= with_prefix(prefix, tail._asdict())
        return columns | {name: getattr(self, name) for name in _COLUMNS}

    def __len__(self) -> int:
        return len(self.seen)

    def take(self, rows: Ints) -> Self:
        """Copies of some rows."""
        return self.unpacked({name: column[rows] for name, column in self.packed().items()})

    def put(self, rows: Ints, part: Self) -> None:
        """Write some rows back."""
        for column, values in zip(self.packed().values(), part.packed().values(), strict=True):
            column[rows] = values

    def followed_by(self, more: Self) -> Self:
        """These series, and more of them."""
        both = zip(self.packed().items(), more.packed().values(), strict=True)
        return self.unpacked({name: np.concatenate([column, added]) for (name, column), added in both})


_HINTS = get_type_hints(SeriesState)
_KINDS: dict[Any, np.dtype[Any]] = {Floats: np.dtype(np.float64), Ints: np.dtype(np.int64), Bytes: np.dtype(np.uint8)}
_COLUMNS: Layout = {name: _KINDS[hint] for name, hint in _HINTS.items() if hint in _KINDS}
_PREFIXES = {"normal": "", "rate": "", "challenger": "other_", "challenger_rate": "other_", "jumps": "step_"}
_POSTERIORS: dict[str, tuple[type[Posterior], str]] = {
    name: (_HINTS[name], prefix) for name, prefix in _PREFIXES.items()
}
_TAILS = tuple(f"{statistic.label}_" for statistic in STATISTICS)


def layout(statistics: Sequence[Statistic]) -> Layout:
    """The columns of a state with the tails of these statistics, the first ones of STATISTICS."""
    posteriors = {prefix + name: _KINDS[Floats] for kind, prefix in _POSTERIORS.values() for name in kind._fields}
    tails = {prefix + name: _KINDS[Floats] for prefix in _TAILS[: len(statistics)] for name in Tail._fields}
    return posteriors | tails | _COLUMNS


LAYOUT, LAYOUT_OF_BLOCKS = layout(STATISTICS), layout(WITHOUT_SEASON)


def _read(columns: Columns, kind: type[Posterior], prefix: str) -> Any:
    return kind._make(columns[prefix + name] for name in kind._fields)

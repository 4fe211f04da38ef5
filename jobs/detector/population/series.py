"""The series of a shard: which machine has which, their rows in the model, and when each was seen."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from infra.contract.shares import whole_of
from jobs.detector.model.arrays import Bools, Floats, Ints
from jobs.detector.saved_state import Saved

Statistics = Mapping[str, Any]  # of one record: a list for each field


class Definition(NamedTuple):
    """What a series is; machines share definitions."""

    kind: str
    series: str
    name: str | None
    unit: str | None
    whole: float | None = None  # of a share that succeeds: judged by what is missing of it (infra/contract/shares.py)

    def complement(self, value: float) -> float:
        """What is missing of the whole; of another series the value itself. It is its own inverse."""
        return value if self.whole is None else self.whole - value


class KnownSeries:
    """Series are numbered by their row in the model. Arrays have one element a series."""

    def __init__(self, saved: Saved) -> None:
        self.definitions = [Definition(*one) for one in saved.items("definitions")]
        self.machine, self.definition = saved.ints("machine"), saved.ints("definition")  # their numbers
        self.last = saved.ints("heard")  # window in which each was seen
        self._index()

    def __len__(self) -> int:
        return len(self.machine)

    def saved(self) -> Saved:
        arrays = {"machine": self.machine, "definition": self.definition, "heard": self.last}
        return Saved({"definitions": [tuple(one) for one in self.definitions]}, arrays)

    def describe(self, row: int) -> Definition:
        return self.definitions[int(self.definition[row])]

    def complement(self, rows: Ints, values: Floats) -> Floats:
        """Of shares that succeed what is missing of the whole, of other series the values. It is its own inverse."""
        if not self.has_shares:
            return values
        whole = self._wholes[self.definition[rows]]
        return np.where(np.isnan(whole), values, whole - values)

    def names_of(self, machine: int) -> set[str]:
        """The names of a machine's metrics."""
        numbers = np.unique(self.definition[self.machine == machine]).tolist()
        return {one.series for one in map(self.definitions.__getitem__, numbers) if one.kind == "metric"}

    def row(self, machine: int, kind: str, series: str) -> int | None:
        """The row of a machine's series; None if it was never seen."""
        return self._rows.get((machine, self._definitions.get((kind, series), -1)))

    def matching(self, machines: Bools, pattern: str) -> Ints:
        """The rows of series of these machines whose names meet a shell glob."""
        series = np.array([fnmatchcase(one.series, pattern) for one in self.definitions], bool)
        return np.flatnonzero(machines[self.machine] & series[self.definition])

    def rows_of(self, machine: int, statistics: Statistics, usable: Bools, part: int = 0) -> Ints:
        """The rows of the usable series of a record; unknown ones get the next numbers, until `add_new` adds them.

        `part`: which of several records it is, where a machine's window has several.
        """
        labels = (statistics["kind"], statistics["series"], usable.tobytes())
        cached = self._cache.get((machine, part))
        if cached is not None and cached[0] == labels:
            return cached[1]
        pairs = [(machine, self._define(statistics, at)) for at in np.flatnonzero(usable).tolist()]
        rows = np.array([self._rows.setdefault(pair, len(self._rows)) for pair in pairs], np.int64)
        self._cache[machine, part] = (labels, rows)
        return rows

    def add_new(self, window: int) -> slice:
        """Add all series that `rows_of` has numbered since the last call; returns their rows."""
        first = len(self)
        pairs = list(islice(self._rows, first, None))
        if pairs:
            machines, definitions = np.array(pairs, np.int64).T
            self.machine = np.concatenate([self.machine, machines])
            self.definition = np.concatenate([self.definition, definitions])
            self.last = np.concatenate([self.last, np.full(len(pairs), window)])
            self._index_wholes()
        return slice(first, len(self))

    def retain(self, rows: Ints, machines: Ints) -> None:
        """Keep these series only, in this order, and the definitions that they have.

        Only these machines are left, ascending; their new numbers are their places in it.
        """
        self.machine, self.last = np.searchsorted(machines, self.machine[rows]), self.last[rows]
        used, self.definition = np.unique(self.definition[rows], return_inverse=True)
        self.definitions = [self.definitions[number] for number in used.tolist()]
        self._index()

    def _index(self) -> None:
        self._definitions = {(one.kind, one.series): number for number, one in enumerate(self.definitions)}
        pairs = zip(self.machine.tolist(), self.definition.tolist(), strict=True)
        self._rows = {pair: row for row, pair in enumerate(pairs)}
        self._index_wholes()
        # By machine and part: labels of its newest record, and their rows. Most records have those of the one before.
        self._cache: dict[tuple[int, int], tuple[tuple[Sequence[str], Sequence[str], bytes], Ints]] = {}

    def _index_wholes(self) -> None:
        self._wholes = np.array([np.nan if one.whole is None else one.whole for one in self.definitions], np.float64)
        self.has_shares = not np.isnan(self._wholes).all()  # that succeed

    def _define(self, statistics: Statistics, at: int) -> int:
        key = statistics["kind"][at], statistics["series"][at]
        number = self._definitions.get(key)
        if number is None:
            number = self._definitions[key] = len(self.definitions)
            name, unit = (statistics[field][at] if field in statistics else None for field in ("name", "unit"))
            whole = None if key[0] == "log" else whole_of(key[1], unit)
            self.definitions.append(Definition(*key, name, unit, whole))
        return number

"""Parameters of log templates: which of their values say something new, a category that never came, a number far out
of range.

A parameter is first *learned*: how many lines, up to eight distinct values, of numbers their range. Then it is one of

- a *category*: few values, and for so long nothing new that the next line has a new one with a probability of at most
  1 / TRUST (Jeffreys' estimate, (values - 1/2) / (lines + 1)). A value that is not among these is new; so are up to
  seven more, and then it was no category.
- a *quantity*: numbers of many values. On a scale of magnitudes (logarithmic; of whole numbers and where some are not
  positive, linear around zero) a number is out of range if it is as far beyond the greatest one as that was from the
  mean, or as far beyond the least one.
- *open*: what any value may have (an identifier), or what drifts (a sequence number): nothing is said of it any more.

What was learned stays as it is. Lines are counted pane by pane, in the order of their times, and what a parameter is
changes at the ends of panes, so nothing depends on how the log is cut, nor on where the watermarks stand in it. A
parameter takes some 240 bytes, whatever its history.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jobs.statistics.catalogue import Catalogue
from jobs.statistics.lines import Lines
from jobs.statistics.magnitudes import magnitude, of_magnitude, of_shifted, shifted
from jobs.statistics.parameter_values import UNITS, Numbers, hashes, numbers, parameters, values
from jobs.statistics.quantiles import Booleans, Floats, Ints

TRUST = 500
LEAST_PANES = 30  # with lines, before anything is said: a burst is no rule
MOST_VALUES = 8  # of a category; and so many new ones
VALUE_CHARACTERS = 64
_SLOTS = 2 * MOST_VALUES
_DATE = re.compile(r"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}|[A-Z][a-z]{2} [ 0-9][0-9]")  # new each day, which is no news

Columns = Mapping[str, NDArray[Any]]


class Phase(IntEnum):
    """What is known of a parameter."""

    LEARNING = 0
    CATEGORY = 1
    QUANTITY = 2
    OPEN = 3


class Surprise(NamedTuple):
    """A value of a line that says something new: the line's place, the parameter's, and the value or what it is."""

    line: int
    parameter: int
    value: str


_LAYOUT: dict[str, Any] = {
    "series": np.int64,  # of its template
    "parameter": np.int64,  # its place there
    "phase": np.uint8,
    "lines": np.int64,
    "panes": np.int64,
    "came": np.bool_,  # in the open pane
    "grew": np.bool_,  # the range, in the open pane
    "grown": np.int64,  # in so many panes
    "texts": np.int64,  # values that are no numbers
    "fractions": np.int64,  # numbers that are not whole
    "unit": np.int64,  # of the numbers: its place in UNITS
    "least": np.float64,  # of the numbers; of a quantity the limits of what is usual
    "greatest": np.float64,
    "magnitudes": np.float64,  # their sum, of positive numbers
    "shifted": np.float64,  # their sum, of all numbers, on the scale that knows zero
    "known": np.int64,  # distinct values, MOST_VALUES + 1 if there are more
    "new": np.int64,  # distinct values that came after those
}


class Parameters:
    """The parameters of a shard, in arrays with one element each; `values` has hashes, of known values, then of new."""

    def __init__(self, columns: Columns, most: int) -> None:
        """`columns` are those of `packed`, none for a new shard; `most` is how many parameters a machine may have."""
        self.most = most
        self.of: dict[str, Any] = {name: columns.get(name, np.zeros(0, kind)) for name, kind in _LAYOUT.items()}
        self.values: Ints = np.array(columns.get("values", ()), np.int64).reshape(-1, _SLOTS)
        self._index()

    def packed(self) -> dict[str, NDArray[Any]]:
        """As columns."""
        return {**self.of, "values": self.values.reshape(-1)}

    def retain(self, kept: Ints) -> None:
        """Only these series are left, ascending; their new numbers are their places in it."""
        rows = np.flatnonzero(np.isin(self.of["series"], kept))
        self.of = {name: column[rows] for name, column in self.of.items()}
        self.of["series"] = np.searchsorted(kept, self.of["series"])
        self.values = self.values[rows]
        self._index()

    def wants(self, series: Ints) -> Booleans:
        """Whether lines of these series are to be observed: new ones, and those with a parameter that isn't open."""
        distinct, at = np.unique(series, return_inverse=True)
        wanted = [number not in self._known or bool(self._wanted.get(number)) for number in distinct.tolist()]
        return np.array(wanted, np.bool_)[at]

    def observe(self, lines: Lines, catalogue: Catalogue) -> list[Surprise]:
        """Take the lines of a pane in the order of their times; returns what is new, in this order."""
        self._add_new(lines, catalogue)
        rows: list[int] = []
        texts: list[str] = []
        at: list[int] = []
        for line, (number, text) in enumerate(zip(lines.series.tolist(), lines.texts, strict=True)):
            if wanted := self._wanted.get(number):
                found = values(catalogue.series[number].series, text)
                known = [row for row in wanted if found and found[self._place[row]]]
                rows += known
                texts += [found[self._place[row]] for row in known]
                at += [line] * len(known)
        if not rows:
            return []
        surprises = self._take(np.array(rows, np.int64), pa.array(texts, pa.string()))
        return sorted(Surprise(at[place], self._place[rows[place]], value) for place, value in surprises)

    def close_pane(self) -> None:
        """A pane has ended: what has been learned of a parameter may be enough."""
        of = self.of
        of["panes"] += of["came"]
        of["grown"] += of["grew"]
        of["came"][:] = of["grew"][:] = False
        ready = (of["phase"] == Phase.LEARNING) & (of["panes"] >= LEAST_PANES)
        few = of["known"] <= MOST_VALUES
        of["phase"][ready & few & ((of["known"] - 0.5) * TRUST <= of["lines"] + 1)] = Phase.CATEGORY
        many = ready & ~few & (of["lines"] >= TRUST)
        drifts = many & (of["grown"] > _most_extremes(of["panes"]))
        self._limit(np.flatnonzero(many & ~drifts))
        self._open(np.flatnonzero(drifts))

    def _index(self) -> None:
        self._known = set(self.of["series"].tolist())
        self._place: list[int] = self.of["parameter"].tolist()
        self._wanted: dict[int, list[int]] = {}  # by series: the rows of its parameters that are not open
        not_open = np.flatnonzero(self.of["phase"] != Phase.OPEN)
        for row, number in zip(not_open.tolist(), self.of["series"][not_open].tolist(), strict=True):
            self._wanted.setdefault(number, []).append(row)
        self._of_machine: Counter[int] | None = None

    def _add_new(self, lines: Lines, catalogue: Catalogue) -> None:
        """Begin to learn templates that are new, in the order of the lines, as far as their machines may have more."""
        if self._of_machine is None:
            self._of_machine = Counter(catalogue.series[number].machine for number in self.of["series"].tolist())
        added: list[tuple[int, int]] = []
        for number in dict.fromkeys(lines.series.tolist()):
            if number in self._known:
                continue
            one = catalogue.series[number]
            count = parameters(one.series)
            if count and self._of_machine[one.machine] + count <= self.most:
                self._known.add(number)
                self._of_machine[one.machine] += count
                self._wanted[number] = [len(self.values) + len(added) + parameter for parameter in range(count)]
                added += [(number, parameter) for parameter in range(count)]
        if added:
            self._grow(np.array(added, np.int64))

    def _grow(self, added: Ints) -> None:
        fresh: dict[str, Any] = {name: np.zeros(len(added), kind) for name, kind in _LAYOUT.items()}
        fresh["series"], fresh["parameter"] = added.T
        fresh["least"][:], fresh["greatest"][:] = np.inf, -np.inf
        self.of = {name: np.concatenate([column, fresh[name]]) for name, column in self.of.items()}
        self.values = np.concatenate([self.values, np.zeros((len(added), _SLOTS), np.int64)])
        self._place += fresh["parameter"].tolist()

    def _take(self, rows: Ints, texts: pa.StringArray) -> Iterator[tuple[int, str]]:
        """The values of the parameters `rows`, one a line; gives the places of those that say something new."""
        phase, known = self.of["phase"][rows], self.of["known"][rows]
        learning = phase == Phase.LEARNING
        if len(at := np.flatnonzero(learning | (phase == Phase.QUANTITY))):
            number = numbers(texts.take(pa.array(at)))
            self._learn_numbers(rows[at][learning[at]], number.take(learning[at]))
            yield from self._out_of_range(rows[at], number.value, at)
        if len(at := np.flatnonzero(learning & (known <= MOST_VALUES))):
            self._learn_values(rows[at], texts.take(pa.array(at)))
        if len(at := np.flatnonzero(phase == Phase.CATEGORY)):
            yield from self._new_values(rows[at], texts.take(pa.array(at)), at)
        learned = np.unique(rows[learning])
        self._open(learned[(self.of["known"][learned] > MOST_VALUES) & (self.of["texts"][learned] > 0)])

    def _learn_numbers(self, rows: Ints, found: Numbers) -> None:
        """One after the other: a sum depends on the order of addition."""
        of, is_number = self.of, ~np.isnan(found.value)
        np.add.at(of["lines"], rows, 1)
        np.add.at(of["texts"], rows, ~is_number)
        of["came"][rows] = True
        rows, number = rows[is_number], found.value[is_number]
        np.add.at(of["fractions"], rows, number != np.rint(number))
        np.maximum.at(of["unit"], rows, found.unit[is_number])
        least, greatest = of["least"][rows], of["greatest"][rows]
        np.minimum.at(of["least"], rows, number)
        np.maximum.at(of["greatest"], rows, number)
        of["grew"][rows] |= (of["least"][rows] < least) | (of["greatest"][rows] > greatest)
        np.add.at(of["magnitudes"], rows, magnitude(number))
        np.add.at(of["shifted"], rows, shifted(number))

    def _out_of_range(self, rows: Ints, number: Floats, at: Ints) -> Iterator[tuple[int, str]]:
        is_quantity = self.of["phase"][rows] == Phase.QUANTITY
        for word, limit, is_beyond in (("below", "least", np.less), ("above", "greatest", np.greater)):
            for place in np.flatnonzero(is_quantity & is_beyond(number, self.of[limit][rows])).tolist():
                row = rows[place]
                yield int(at[place]), f"{word} {self.of[limit][row]:.4g} {UNITS[self.of['unit'][row]]}".rstrip()

    def _learn_values(self, rows: Ints, texts: pa.StringArray) -> None:
        """Keep the first few distinct values of each; of more, and of dates, only that they are many."""
        value, known = hashes(texts), self.of["known"]
        for place in np.flatnonzero(~(self.values[rows, :MOST_VALUES] == value[:, None]).any(axis=1)).tolist():
            row = int(rows[place])
            count, slots = int(known[row]), self.values[row]
            if count > MOST_VALUES or value[place] in slots[:count]:
                continue
            if count == MOST_VALUES or _DATE.search(texts[place].as_py()):
                known[row], slots[:] = MOST_VALUES + 1, 0
            else:
                known[row], slots[count] = count + 1, value[place]

    def _new_values(self, rows: Ints, texts: pa.StringArray, at: Ints) -> Iterator[tuple[int, str]]:
        """Values of categories that are not among the known ones; one with too many of them was no category."""
        value, new, many = hashes(texts), self.of["new"], set()
        for place in np.flatnonzero(~(self.values[rows, :MOST_VALUES] == value[:, None]).any(axis=1)).tolist():
            row = int(rows[place])
            count, slots = int(new[row]), self.values[row, MOST_VALUES:]
            if value[place] not in slots[:count]:
                if count == MOST_VALUES:
                    many.add(row)
                if row in many:
                    continue
                new[row], slots[count] = count + 1, value[place]
            if row not in many:
                yield int(at[place]), texts[place].as_py()[:VALUE_CHARACTERS]
        self._open(np.array(sorted(many), np.int64))

    def _limit(self, rows: Ints) -> None:
        """These are quantities: from now on their extremes are the limits of what is usual."""
        of = self.of
        least, greatest, lines = of["least"][rows], of["greatest"][rows], of["lines"][rows]
        is_logarithmic = (least > 0) & (of["fractions"][rows] > 0)
        low = np.where(is_logarithmic, magnitude(least), shifted(least))
        high = np.where(is_logarithmic, magnitude(greatest), shifted(greatest))
        mean = np.where(is_logarithmic, of["magnitudes"][rows], of["shifted"][rows]) / lines
        low, high = low - (mean - low), high + (high - mean)
        of["least"][rows] = np.where(is_logarithmic, of_magnitude(low), of_shifted(low))
        of["greatest"][rows] = np.where(is_logarithmic, of_magnitude(high), of_shifted(high))
        of["phase"][rows] = Phase.QUANTITY

    def _open(self, rows: Ints) -> None:
        """Forget all of these but that any value may come: whenever that was found out, they look the same."""
        for name, column in self.of.items():
            if name not in ("series", "parameter"):
                column[rows] = 0
        self.of["phase"][rows] = Phase.OPEN
        self.values[rows] = 0
        for row, number in zip(rows.tolist(), self.of["series"][rows].tolist(), strict=True):
            self._wanted[number].remove(row)


def _most_extremes(panes: Ints) -> Floats:
    """More panes with a new extreme than numbers have that don't drift.

    Of exchangeable ones the n-th pane has a new least or greatest number with a probability of 2 / n, so about 2 ln n
    of n panes have one; this is twice that, and ten.
    """
    return 10.0 + 4.0 * 0.69 * magnitude(panes.astype(np.float64))

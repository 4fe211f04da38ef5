"""What a shard keeps of closed panes until the larger windows that hold them are complete."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from jobs.statistics.histograms import Spread, together
from jobs.statistics.windows import Rows


class Fact(NamedTuple):
    """Of a machine in a pane: what is known of it, by its latest event, and the offsets that its events came from."""

    time: int  # of that event
    inventory: dict[str, Any]
    first_offset: int
    last_offset: int

    def with_(self, other: "Fact") -> "Fact":
        """Of both panes or records."""
        latest = self if self._order(other) >= other._order(self) else other
        first, last = min(self.first_offset, other.first_offset), max(self.last_offset, other.last_offset)
        return Fact(latest.time, latest.inventory, first, last)

    def _order(self, other: "Fact") -> tuple[int, bytes]:
        """By time. Of two things that are said of the same time, always the same one counts, whichever came first."""
        is_told_apart = self.time != other.time or self.inventory == other.inventory
        return self.time, b"" if is_told_apart else orjson.dumps(self.inventory, option=orjson.OPT_SORT_KEYS)


Facts = dict[str, Fact]  # by machine


def add_fact(facts: Facts, machine: str, fact: Fact) -> None:
    """Take what another record or pane says of a machine."""
    known = facts.get(machine)
    facts[machine] = known.with_(fact) if known else fact


class Inventories:
    """Packs facts: what many of them say of a machine's place is written once."""

    def __init__(self, found: list[dict[str, Any]]) -> None:
        self.found = found
        self._places: dict[int, int] = {}  # by the identity of what was packed: by far most are the same object
        self._equal: dict[bytes, int] = {}

    def packed(self, facts: Facts) -> list[Any]:
        """As JSON beside `found`."""
        return [[machine, f.time, self._place(f.inventory), *f[2:]] for machine, f in facts.items()]

    def unpacked(self, packed: Iterable[list[Any]]) -> Facts:
        """The inverse of `packed`."""
        return {machine: Fact(time, self.found[at], *offsets) for machine, time, at, *offsets in packed}

    def _place(self, inventory: dict[str, Any]) -> int:
        at = self._places.get(id(inventory))
        if at is None:
            at = self._equal.setdefault(orjson.dumps(inventory), len(self.found))
            self._places[id(inventory)] = at
            if at == len(self.found):
                self.found.append(inventory)
        return at


@dataclass(frozen=True)
class Pane:
    """All series in a stretch of time: rows by series, machines' facts, and histograms' spreads by series."""

    start: int
    rows: Rows
    facts: Facts
    spreads: dict[int, Spread]

    @classmethod
    def of(cls, panes: Sequence["Pane"]) -> "Pane":
        """Neighbouring ones as one."""
        if len(panes) == 1:
            return panes[0]
        facts: Facts = {}
        for pane in panes:
            for machine, fact in pane.facts.items():
                add_fact(facts, machine, fact)
        rows = Rows.concatenated([pane.rows for pane in panes]).by_series().combined()
        return cls(panes[0].start, rows, facts, _joined(pane.spreads for pane in panes))


def _joined(parts: Iterable[dict[int, Spread]]) -> dict[int, Spread]:
    found: dict[int, list[Spread]] = defaultdict(list)
    for spreads in parts:
        for series, spread in spreads.items():
            found[series].append(spread)
    return {series: together(spreads) for series, spreads in found.items()}


class Store:
    """Panes by their size, each for as long as an open window needs it."""

    def __init__(self, horizons: dict[int, int]) -> None:
        """`horizons`: how far back the panes of each size are needed."""
        self.horizons = horizons
        self.panes: dict[int, list[Pane]] = {size: [] for size in horizons}

    def __bool__(self) -> bool:
        return any(self.panes.values())

    def add(self, size: int, pane: Pane) -> None:
        """Keep it, if any window needs it."""
        if size in self.panes:
            self.panes[size].append(pane)

    def since(self, size: int, start: int) -> list[Pane]:
        """Panes of that size from `start` on."""
        return [pane for pane in self.panes[size] if pane.start >= start]

    def forget(self, time: int) -> None:
        """Drop what no window that ends after `time` can hold."""
        for size, horizon in self.horizons.items():
            self.panes[size] = [pane for pane in self.panes[size] if pane.start + horizon > time]

    def series(self) -> list[NDArray[np.int64]]:
        """The series that are in it."""
        return [pane.rows.series for panes in self.panes.values() for pane in panes]

"""What a shard keeps of closed panes until the larger windows that hold them are complete."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from jobs.statistics.histograms import Spread, merged
from jobs.statistics.renumber import of_series
from jobs.statistics.rows import Rows


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
        is_clear = self.time != other.time or self.inventory == other.inventory
        return self.time, b"" if is_clear else orjson.dumps(self.inventory, option=orjson.OPT_SORT_KEYS)


Facts = dict[str, Fact]  # by machine


def add_fact(facts: Facts, machine: str, fact: Fact) -> None:
    """Take what another record or pane says of a machine."""
    known = facts.get(machine)
    facts[machine] = known.with_(fact) if known else fact


def facts_of(facts: Facts, is_kept: Callable[[str], bool]) -> Facts:
    """What is known of these machines."""
    return {machine: fact for machine, fact in facts.items() if is_kept(machine)}


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
    return {series: merged(spreads) for series, spreads in found.items()}


@dataclass(frozen=True)
class PaneSizes:
    """The sizes in ns of the declared windows that others are put together from, ascending; each a multiple of the
    one before."""

    sizes: tuple[int, ...]

    @property
    def smallest(self) -> int:
        """The step in which event time is looked at."""
        return self.sizes[0]

    def before(self, size: int) -> int | None:
        """The one before in order; `size` itself, if it is declared twice."""
        at = self.sizes.index(size)
        return self.sizes[at + 1] if self.sizes.count(size) > 1 else self.sizes[at - 1] if at else None

    def under(self, size: int, step: int) -> int:
        """The largest pane that windows of `size`, one each `step`, can be put together from; `step` if none fits."""
        fitting = (pane for pane in self.sizes if pane < size and pane <= step and size % pane == step % pane == 0)
        return max(fitting, default=step)


class Panes:
    """Panes by their size, each for as long as an open window needs it."""

    def __init__(self, sizes: PaneSizes, needed: dict[int, int]) -> None:
        """`needed`: how far back, in ns, the panes of each size are needed."""
        self.sizes, self.needed = sizes, needed
        self.kept: dict[int, list[Pane]] = {size: [] for size in needed}
        self.complete: dict[int, Pane] = {}  # those that ended last, by size, where anything came in them

    def __bool__(self) -> bool:
        return any(self.kept.values())

    def add(self, size: int, pane: Pane) -> None:
        """Keep a pane, if any window needs it."""
        if size in self.kept:
            self.kept[size].append(pane)

    def close(self, pane: Pane, end: int) -> None:
        """Take the smallest pane, which ended at `end`, and put together the larger ones that it completes."""
        self.complete = {}
        for size in self.sizes.sizes:
            if end % size:
                return
            whole = pane if size == self.sizes.smallest else self.since(self.sizes.under(size, size), end - size)
            if whole and len(whole.rows):
                self.complete[size] = whole
                self.add(size, whole)

    def since(self, size: int, start: int) -> Pane | None:
        """All panes of that size from `start` on as one; None if nothing came in them."""
        found = [pane for pane in self.kept[size] if pane.start >= start]
        return Pane.of(found) if found else None

    def evict(self, time: int) -> None:
        """Drop what no window that ends after `time` can hold."""
        for size, back in self.needed.items():
            self.kept[size] = [pane for pane in self.kept[size] if pane.start + back > time]

    def series(self) -> list[NDArray[np.int64]]:
        """The series that are in it."""
        return [pane.rows.series for panes in self.kept.values() for pane in panes]

    def retain(self, kept: NDArray[np.int64]) -> None:
        """Only these series are left, ascending; their new numbers are their places in it."""
        for size, panes in self.kept.items():
            found = [_of_series(pane, kept) for pane in panes]
            self.kept[size] = [pane for pane in found if len(pane.rows)]

    def retain_machines(self, is_kept: Callable[[str], bool]) -> None:
        """Only the facts of these machines are left."""
        for size, panes in self.kept.items():
            self.kept[size] = [replace(pane, facts=facts_of(pane.facts, is_kept)) for pane in panes]


def _of_series(pane: Pane, kept: NDArray[np.int64]) -> Pane:
    place = {old: new for new, old in enumerate(kept.tolist())}
    spreads = {place[series]: spread for series, spread in pane.spreads.items() if series in place}
    return replace(pane, rows=of_series(pane.rows, kept), spreads=spreads)

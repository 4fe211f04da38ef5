"""What a shard keeps between two batches, and how it is packed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from infra.contract.sharding import Mine, shard_key
from infra.errors import UserError
from jobs.runtime.packed_state import Header, Packed, Parts, pack, still_packed
from jobs.statistics.catalogue import UNLIMITED, Catalogue, Series
from jobs.statistics.examples import Examples
from jobs.statistics.histograms import Spread
from jobs.statistics.limits import Limits, Refused
from jobs.statistics.lines import WaitingLines
from jobs.statistics.panes import Facts, Inventories, Pane, Panes, add_fact, facts_of
from jobs.statistics.parameters import Parameters
from jobs.statistics.points import Points
from jobs.statistics.quantiles import Ints
from jobs.statistics.renumber import of_series
from jobs.statistics.rows import Rows
from jobs.statistics.settings import Windows
from jobs.statistics.windows.kind import Arrays

LAYOUT = 4  # of a packed state: to be counted up when one of an earlier version can't be read any more
PARAMETERS, LINES = "parameters/", "lines/"
PLACE = "@"  # what follows it in a column's name says which one of many it is
Columns = TypeVar("Columns", Points, Rows)
Packing = dict[str, Packed]

_NOTHING: dict[str, Any] = {
    "watermark": 0,
    **{name: [] for name in ("machines", "series", "inventories", "facts", "latest", "points", "panes")},
    **{name: [] for name in ("waiting", "totals", "refused")},
}


class ChangedWindowsError(UserError):
    """The state was gathered by other windows than those that are declared now."""


class ChangedLayoutError(UserError):
    """The state was packed by a version of this job that kept other things."""


class State:
    """Open data, what is remembered of each series, and the panes of open windows."""

    def __init__(self, windows: Windows, parts: Parts | None = None, limits: Limits = UNLIMITED) -> None:
        """Unpack a state, or begin an empty one.

        Raises ChangedWindowsError if it is another declaration's, ChangedLayoutError if it is an earlier version's.
        """
        fingerprint = windows.fingerprint
        nothing = {**_NOTHING, "windows": fingerprint, "layout": LAYOUT}
        header, columns = still_packed(parts) if parts else (nothing, {})
        layout = header.get("layout", 1)
        if layout != LAYOUT:
            raise ChangedLayoutError(
                f"this state has the layout {layout}, this version {LAYOUT}: go on with the version that packed it, or "
                "start a new generation (docs/how-to/replay.md)"
            )
        if header["windows"] != fingerprint:
            raise ChangedWindowsError(
                f"this state's windows are {header['windows']}, those declared {fingerprint}: start a new generation"
            )
        self.windows = windows
        self.watermark: int = header["watermark"]
        memory = {name[2:]: column.column() for name, column in columns.items() if name.startswith("m/")}
        # By prefix and place, what is kept of panes: columns that are only ever replaced, and how they are packed.
        self._packings: dict[tuple[str, str], tuple[Points | Rows, Packing]] = {}
        self.catalogue = Catalogue([*header["machines"]], [Series(*one) for one in header["series"]], memory, limits)
        self.refused = Refused(header.get("refused", ()))
        # What is open, by the start of its pane.
        self.points = {start: self._kept(Points, "points", columns, _place(start)) for start in header["points"]}
        inventories = Inventories(header["inventories"])
        self.facts: dict[int, Facts] = defaultdict(dict)  # of panes that are still open, by their start
        self.facts.update({start: inventories.unpacked(facts) for start, facts in header["facts"]})
        self.latest = inventories.unpacked(header["latest"])  # facts of each machine
        self.waiting = [(series, time, Spread.unpacked(spread)) for series, time, spread in header["waiting"]]
        self.totals = _spreads(header["totals"])  # the last state of each cumulative histogram
        self.examples = Examples(**header.get("examples", {}))
        self.parameters = Parameters(_part(PARAMETERS, columns), limits.parameters)
        self.lines = WaitingLines(_part(LINES, columns), windows.pane)
        self.panes = Panes(windows.sizes, _needed(windows))
        for size, start, facts, spreads in header["panes"]:
            rows = self._kept(Rows, "panes", columns, _place(size, start))
            self.panes.add(size, Pane(start, rows, inventories.unpacked(facts), _spreads(spreads)))
        # What each declared window keeps of its own.
        self.open = [window.opened(windows.sizes) for window in windows.ordered]
        for number, one in enumerate(self.open):
            one.unpack(_part(_prefix(number), columns))

    def _kept(self, kind: type[Columns], prefix: str, packing: Packing, place: str) -> Columns:
        mine = {name: packing[name] for name in _names(kind, prefix, place)}
        found = kind(*(one.column() for one in mine.values()))
        self._packings[prefix, place] = found, mine
        return found

    def wait(self, points: Points) -> None:
        """Take points, each into its pane."""
        for start, new in points.by_pane(self.windows.pane):
            self.points[start] = self.points[start].joined(new) if start in self.points else new

    def packed(self) -> Parts:
        """The same as parts. What has not changed since it was unpacked or packed is the same object."""
        self._packings = {where: (one, self._packing(where, one)) for where, one in self._of_panes()}
        columns: dict[str, NDArray[Any] | Packed] = {**self._columns()}
        for _, packing in self._packings.values():
            columns |= packing
        return pack(self._header(), columns)

    def _header(self) -> Header:
        inventories = Inventories([])
        return {
            "layout": LAYOUT,
            "windows": self.windows.fingerprint,
            "watermark": self.watermark,
            "machines": self.catalogue.machines,
            "series": self.catalogue.packed_series,
            "facts": [[start, inventories.packed(facts)] for start, facts in self.facts.items()],
            "latest": inventories.packed(self.latest),
            "waiting": [[series, time, spread.packed()] for series, time, spread in self.waiting],
            "totals": _packed_spreads(self.totals),
            "refused": self.refused.packed(),
            "examples": self.examples.packed(),
            "points": sorted(self.points),
            "panes": [
                [size, pane.start, inventories.packed(pane.facts), _packed_spreads(pane.spreads)]
                for size, panes in self.panes.kept.items()
                for pane in panes
            ],
            "inventories": inventories.found,
        }

    def _columns(self) -> Arrays:
        """What changes as a whole, and the names of what each pane has."""
        columns = {f"m/{name}": column for name, column in self.catalogue.memory.items()}
        columns |= {PARAMETERS + name: column for name, column in self.parameters.packed().items()}
        columns |= {LINES + name: column for name, column in self.lines.packed().items()}
        for number, one in enumerate(self.open):
            columns |= {_prefix(number) + name: column for name, column in one.pack().items()}
        return columns | _named("points", Points.empty()) | _named("panes", Rows.empty())

    def _of_panes(self) -> Iterator[tuple[tuple[str, str], Points | Rows]]:
        for start in sorted(self.points):
            yield ("points", _place(start)), self.points[start]
        for size, panes in self.panes.kept.items():
            for pane in panes:
                yield ("panes", _place(size, pane.start)), pane.rows

    def _packing(self, where: tuple[str, str], columns: Points | Rows) -> Packing:
        known, packing = self._packings.get(where, (None, {}))
        if known is columns:
            return packing
        prefix, place = where
        return {name: Packed.of(column) for name, column in _named(prefix, columns, place).items()}

    def evict(self, series: Ints) -> None:
        """Drop what waits for more of these series: they were silent for longer than the state's time to live."""
        if not len(series):
            return
        for one in self.open:
            one.evict(series)
        for number in series.tolist():
            self.totals.pop(number, None)

    def held(self) -> Ints:
        """The series of open points, panes and windows."""
        columns = [*(one.series for one in self.points.values()), *self.lines.series(), *self.panes.series()]
        columns += [one.held() for one in self.open]
        return np.concatenate([*columns, np.array([series for series, _, _ in self.waiting], np.int64)])

    def retain(self, kept: Ints) -> None:
        """Drop all series but these, and what is held of the others."""
        self.catalogue = self.catalogue.retaining(kept)
        place = {old: new for new, old in enumerate(kept.tolist())}
        points = {start: of_series(one, kept) for start, one in self.points.items()}
        self.points = {start: one for start, one in points.items() if len(one)}
        self.waiting = [(place[series], time, spread) for series, time, spread in self.waiting if series in place]
        self.totals = {place[series]: spread for series, spread in self.totals.items() if series in place}
        self.examples.retain(place)
        self.parameters.retain(kept)
        self.lines.retain(kept)
        self.panes.retain(kept)
        for window in self.open:
            window.retain(kept)
        machines = set(self.catalogue.machines)
        self.latest = facts_of(self.latest, machines.__contains__)

    def retain_machines(self, mine: Mine) -> None:
        """Forget the machines whose key isn't `mine`, as though nothing of them had ever come.

        The key follows from what the newest event says of a machine: so do the places of those that are to come.
        """
        newest = self._newest_facts()

        @cache
        def is_mine(machine: str) -> bool:
            return mine(shard_key(machine, newest[machine].inventory if machine in newest else None))

        machines = np.array([is_mine(one) for one in self.catalogue.machines], np.bool_)
        self.retain(np.flatnonzero(machines[self.catalogue.machine_of]))
        self.panes.retain_machines(is_mine)
        self.refused.retain(is_mine)
        for start in list(self.facts):
            if left := facts_of(self.facts.pop(start), is_mine):
                self.facts[start] = left

    def _newest_facts(self) -> Facts:
        found = dict(self.latest)
        for of_pane in self.facts.values():
            for machine, fact in of_pane.items():
                add_fact(found, machine, fact)
        return found


def _needed(windows: Windows) -> dict[int, int]:
    """How far back the panes of each size are needed."""
    found: dict[int, int] = {}
    for window in windows.ordered:
        for size, back in window.panes_needed(windows.sizes).items():
            found[size] = max(found.get(size, 0), back)
    return found


def _prefix(number: int) -> str:
    """Of the names of what a declared window keeps, by its place in `Windows.ordered`."""
    return f"window{number}/"


def _part(prefix: str, packing: Packing) -> Arrays:
    return {name.removeprefix(prefix): one.column() for name, one in packing.items() if name.startswith(prefix)}


def _place(*numbers: int) -> str:
    return PLACE + "/".join(map(str, numbers))


def _names(kind: type[Points | Rows], prefix: str, place: str = "") -> list[str]:
    return [f"{prefix}/{field.name}{place}" for field in fields(kind)]


def _named(prefix: str, columns: Points | Rows, place: str = "") -> Arrays:
    values = (getattr(columns, field.name) for field in fields(columns))
    return dict(zip(_names(type(columns), prefix, place), values, strict=True))


def _packed_spreads(spreads: Mapping[int, Spread]) -> list[Any]:
    return [[series, spread.packed()] for series, spread in spreads.items()]


def _spreads(packed: list[Any]) -> dict[int, Spread]:
    return {series: Spread.unpacked(spread) for series, spread in packed}

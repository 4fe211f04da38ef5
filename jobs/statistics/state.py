"""What a shard keeps between two batches, and how it is packed."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jobs.runtime.packing import pack, unpack
from jobs.statistics.catalogue import Catalogue, Series
from jobs.statistics.histograms import Spread
from jobs.statistics.panes import Facts, Inventories, Pane, Store
from jobs.statistics.points import Points
from jobs.statistics.quantiles import Ints
from jobs.statistics.sessions import Sessions
from jobs.statistics.settings import Sliding, Tumbling, Windows
from jobs.statistics.windows import Rows

LAYOUT = 2  # of a packed state: to be counted up when one of an earlier version can't be read any more
PLACE = "@"  # what follows it in a column's name says which one of many it is
Columns = TypeVar("Columns", Points, Rows, Sessions)
Arrays = dict[str, NDArray[Any]]

_NOTHING: dict[str, Any] = {
    "tick": 0,
    **{name: [] for name in ("machines", "series", "inventories", "facts", "latest", "panes", "waiting", "totals")},
}


class ChangedWindowsError(Exception):
    """The state was gathered by other windows than those that are declared now."""


class ChangedLayoutError(Exception):
    """The state was packed by a version of this job that kept other things."""


class State:
    """Open data, what is remembered of each series, and the panes of open windows."""

    def __init__(self, windows: Windows, block: bytes | None = None) -> None:
        """Unpack a state, or begin an empty one.

        Raises ChangedWindowsError if it is another declaration's, ChangedLayoutError if it is an earlier version's.
        """
        fingerprint = windows.fingerprint
        header, columns = unpack(block) if block else ({**_NOTHING, "windows": fingerprint, "layout": LAYOUT}, {})
        layout = header.get("layout", 1)
        if layout != LAYOUT:
            raise ChangedLayoutError(
                f"this state has the layout {layout}, this version {LAYOUT}: go on with the version that packed it, or "
                "start a new generation (docs/replay.md)"
            )
        if header["windows"] != fingerprint:
            raise ChangedWindowsError(
                f"this state's windows are {header['windows']}, those declared {fingerprint}: start a new generation"
            )
        self.windows = windows
        self.tick: int = header["tick"]
        memory = {name[2:]: column for name, column in columns.items() if name.startswith("m/")}
        self.catalogue = Catalogue(header["machines"], [Series(*one) for one in header["series"]], memory)
        self.points = _unpacked(Points, "points", columns)
        self.sessions = [_unpacked(Sessions, f"session{n}", columns) for n in range(len(windows.sessions))]
        self.counted = [_unpacked(Points, f"count{n}", columns) for n in range(len(windows.counts))]
        inventories = Inventories(header["inventories"])
        self.facts: dict[int, Facts] = defaultdict(dict)  # of panes that are still open, by their start
        self.facts.update({start: inventories.unpacked(facts) for start, facts in header["facts"]})
        self.latest = inventories.unpacked(header["latest"])  # facts of each machine
        self.waiting = [(series, time, Spread.unpacked(spread)) for series, time, spread in header["waiting"]]
        self.totals = _spreads(header["totals"])  # the last state of each cumulative histogram
        self.store = Store(_horizons(windows))
        for size, start, facts, spreads in header["panes"]:
            rows = _unpacked(Rows, "panes", columns, _place(size, start))
            self.store.add(size, Pane(start, rows, inventories.unpacked(facts), _spreads(spreads)))

    def to_bytes(self) -> bytes:
        """The packed state."""
        inventories = Inventories([])
        panes = [(size, pane) for size, stored in self.store.panes.items() for pane in stored]
        header = {
            "layout": LAYOUT,
            "windows": self.windows.fingerprint,
            "tick": self.tick,
            "machines": self.catalogue.machines,
            "series": self.catalogue.packed_series,
            "facts": [[start, inventories.packed(facts)] for start, facts in self.facts.items()],
            "latest": inventories.packed(self.latest),
            "waiting": [[series, time, spread.packed()] for series, time, spread in self.waiting],
            "totals": _packed_spreads(self.totals),
            "panes": [
                [size, pane.start, inventories.packed(pane.facts), _packed_spreads(pane.spreads)]
                for size, pane in panes
            ],
            "inventories": inventories.found,
        }
        columns = {f"m/{name}": column for name, column in self.catalogue.memory.items()}
        columns |= _packed("points", self.points)
        for number, sessions in enumerate(self.sessions):
            columns |= _packed(f"session{number}", sessions)
        for number, points in enumerate(self.counted):
            columns |= _packed(f"count{number}", points)
        columns |= _packed("panes", Rows.empty())  # names the fields, which are those of each pane
        for size, pane in panes:
            columns |= _packed("panes", pane.rows, _place(size, pane.start))
        return pack(header, columns)

    def forget(self, series: Ints) -> None:
        """These begin anew: drop what waits for more of them."""
        if not len(series):
            return
        self.counted = [points.take(~np.isin(points.series, series)) for points in self.counted]
        for number in series.tolist():
            self.totals.pop(number, None)

    def held(self) -> Ints:
        """The series that open points, panes and sessions speak of."""
        columns = [self.points.series, *self.store.series()]
        columns += [one.series for one in self.sessions]
        return np.concatenate([*columns, np.array([series for series, _, _ in self.waiting], np.int64)])

    def retain(self, kept: Ints) -> None:
        """Drop all series but these, which must include those held."""
        self.catalogue = self.catalogue.retaining(kept)
        place = {old: new for new, old in enumerate(kept.tolist())}
        self.points = _moved(self.points, kept)
        self.sessions = [_moved(one, kept) for one in self.sessions]
        self.counted = [_moved(one, kept) for one in self.counted]
        self.waiting = [(place[series], time, spread) for series, time, spread in self.waiting]
        self.totals = {place[series]: spread for series, spread in self.totals.items() if series in place}
        for size, panes in self.store.panes.items():
            self.store.panes[size] = [
                replace(p, rows=_moved(p.rows, kept), spreads={place[s]: spread for s, spread in p.spreads.items()})
                for p in panes
            ]
        machines = set(self.catalogue.machines)
        self.latest = {machine: fact for machine, fact in self.latest.items() if machine in machines}


def _horizons(windows: Windows) -> dict[int, int]:
    """How far back the panes of each size are needed."""
    found: dict[int, int] = {}
    larger: tuple[Tumbling | Sliding, ...] = (*windows.tumbling[1:], *windows.sliding)
    for window in larger:
        size = windows.panes_of(window)
        found[size] = max(found.get(size, 0), window.size)
    return found


def _place(size: int, start: int) -> str:
    """A pane's columns are parts of their own: they are written once."""
    return f"{PLACE}{size}/{start}"


def _packed(prefix: str, columns: Points | Rows | Sessions, place: str = "") -> Arrays:
    return {f"{prefix}/{field.name}{place}": getattr(columns, field.name) for field in fields(columns)}


def _unpacked(kind: type[Columns], prefix: str, columns: Arrays, place: str = "") -> Columns:
    names = [f"{prefix}/{field.name}{place}" for field in fields(kind)]
    return kind(*(columns[name] for name in names)) if names[0] in columns else kind.empty()


def _moved(columns: Columns, kept: Ints) -> Columns:
    return replace(columns, series=np.searchsorted(kept, columns.series))


def _packed_spreads(spreads: Mapping[int, Spread]) -> list[Any]:
    return [[series, spread.packed()] for series, spread in spreads.items()]


def _spreads(packed: list[Any]) -> dict[int, Spread]:
    return {series: Spread.unpacked(spread) for series, spread in packed}

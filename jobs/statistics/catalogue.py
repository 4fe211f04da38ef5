"""The series of a shard by number: their names, and the little that is remembered of each across windows."""

from collections import defaultdict
from enum import IntEnum
from fnmatch import fnmatchcase
from functools import cache, cached_property
from hashlib import blake2b
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from infra.contract.columnar import Columns, to_rows
from jobs.statistics.limits import Limits
from jobs.statistics.parameter_values import with_value
from jobs.statistics.quantiles import Floats, Ints

Memory = dict[str, NDArray[Any]]
Labels = dict[str, orjson.Fragment]

LABELS = ("series", "kind", "name", "unit", "rate", "attributes")
NULL = b"null"
# In a record of `events`: where what its events have in each scrape begins, up to the end of the record.
LABELS_BEGIN = b',"series":['
# So many bytes of known scrapes are kept, each of them with some beside its numbers.
SCRAPES_BYTES, SCRAPE_BYTES = 32_000_000, 300


REFUSED = -1  # in place of a number: there are as many as may be
UNLIMITED = Limits(2**62, 2**62, 2**62)


class Form(IntEnum):
    """How the points of a series are read."""

    GAUGE = 0
    COUNTER = 1
    HISTOGRAM = 2
    LOG = 3


class Series(NamedTuple):
    """The name of a series. `machine` is a number, `delta` says that each histogram stands for itself."""

    machine: int
    kind: str
    series: str
    name: str | None
    unit: str | None
    attributes: dict[str, str] | None
    form: int
    delta: bool

    def label(self, rate: bool) -> tuple[bytes, ...]:
        """What is always the same in a statistic, LABELS as JSON."""
        unit = f"{self.unit or '1'}/s" if rate else self.unit
        cells = (self.series, self.kind, self.name, unit, rate or None, self.attributes)
        # Copied: what orjson returns keeps the kilobyte that it was written into.
        return tuple(bytes(memoryview(orjson.dumps(cell))) for cell in cells)


_MEMORY: dict[str, Any] = {"time": np.int64(-1), "value": np.float64(0), "interval": np.int64(0), "falls": np.int64(0)}
_FORMS = {"sum": Form.COUNTER, **dict.fromkeys(("histogram", "exponential_histogram", "summary"), Form.HISTOGRAM)}


class Catalogue:
    """Machines and series by number. `memory` has a row a series: time and value of its last point, its usual interval
    in ns (0: not known yet), and how often it fell (see `counters`)."""

    def __init__(self, machines: list[str], series: list[Series], memory: Memory, limits: Limits = UNLIMITED) -> None:
        """`memory` may be empty: of series that are all new."""
        self.machines, self.series, self.limits = machines, series, limits
        self.memory = memory or {name: np.full(len(series), empty) for name, empty in _MEMORY.items()}
        self._labels: dict[tuple[int, bool], tuple[bytes, ...]] = {}
        self._matching: dict[tuple[str, ...], NDArray[np.bool_]] = {}
        self._scrapes: dict[tuple[int, bytes], Ints] = {}
        self._scrapes_size = 0
        self._machine_numbers = {name: number for number, name in enumerate(machines)}
        self._numbers: dict[tuple[int, str], dict[tuple[str, str | None], int]] = defaultdict(dict)
        for number, one in enumerate(series):
            self._numbers[one.machine, one.kind][one.series, one.unit] = number
        # Machines and kinds of events of which there are as many series as may be.
        self.full = {place for place, known in self._numbers.items() if len(known) >= limits.of_machine(place[1])}

    def __len__(self) -> int:
        return len(self.series)

    def machine_number(self, name: str) -> int:
        """The number of a machine, perhaps a new one; REFUSED if there are as many as may be."""
        found = self._machine_numbers.get(name)
        if found is None:
            if len(self.machines) >= self.limits.machines:
                return REFUSED
            found = self._machine_numbers[name] = len(self.machines)
            self.machines.append(name)
        return found

    def machine(self, number: int) -> str:
        """The machine of a series."""
        return self.machines[self.series[number].machine]

    def of_machine(self, machine: int, kind: str) -> Ints:
        """The numbers of a machine's series of a kind of events."""
        return np.array(list(self._numbers[machine, kind].values()), np.int64)

    def labels(self, series: Ints, rate: NDArray[np.bool_]) -> Labels:
        """What is always the same in the statistics of these series, as columns of a record."""
        rows = map(self._label, series.tolist(), rate.tolist())
        columns = zip(LABELS, zip(*rows, strict=True), strict=True)
        return {
            name: orjson.Fragment(b"[%b]" % b",".join(column))
            for name, column in columns
            if column.count(NULL) < len(column)
        }

    def _label(self, number: int, rate: bool) -> tuple[bytes, ...]:
        found = self._labels.get((number, rate))
        if found is None:
            found = self._labels[number, rate] = self.series[number].label(rate)
        return found

    def matching(self, patterns: tuple[str, ...]) -> NDArray[np.bool_]:
        """Of each series, whether one of the shell patterns fits the name of its metric."""
        if patterns not in self._matching:
            fits = cache(lambda name: any(fnmatchcase(name, pattern) for pattern in patterns))
            self._matching[patterns] = np.array([fits(one.name or "") for one in self.series], bool)
        return self._matching[patterns]

    def known_scrape(self, machine: str, labels: bytes) -> Ints | None:
        """The number of each row's series, if these labels, as text, are known of the machine.

        A machine's scrapes mostly have the same labels, byte for byte: those of known ones aren't parsed again.
        """
        number = self._machine_numbers.get(machine)
        return None if number is None else self._scrapes.get((number, _digest(labels)))

    def numbers(self, machine: int, kind: str, rows: Columns) -> Ints:
        """The number of each row's series, new ones included. There is a row for each event, or for each labels.

        REFUSED where a series is new, and its machine has as many as may be.
        """
        known = self._numbers[machine, kind]
        keys = list(zip(rows["series"], rows.get("unit", repeat(None)), strict=False))
        try:
            return np.array([known[key] for key in keys], np.int64)
        except KeyError:
            most = self.limits.of_machine(kind)
            for key, event in zip(keys, to_rows(rows), strict=True):
                if key not in known and len(known) < most:
                    known[key] = len(self.series)
                    self.series.append(_series(machine, kind, event))
            if len(known) >= most:
                self.full.add((machine, kind))
            return np.array([known.get(key, REFUSED) for key in keys], np.int64)

    def parameter_series(self, number: int, parameter: int, value: str) -> int:
        """The series of a template's lines that have this value; REFUSED if its machine has as many as may be."""
        one = self.series[number]
        known, name = self._numbers[one.machine, one.kind], with_value(one.series, parameter, f"<{value}>")
        if (name, one.unit) not in known and len(known) < self.limits.of_machine(one.kind):
            known[name, one.unit] = len(self.series)
            about = {"template": one.series, "parameter": str(parameter + 1)}
            self.series.append(one._replace(series=name, attributes=about))
            if len(known) >= self.limits.of_machine(one.kind):
                self.full.add((one.machine, one.kind))
        return known.get((name, one.unit), REFUSED)

    def remember_scrape(self, machine: int, labels: bytes, numbers: Ints) -> None:
        """Keep the numbers of the rows that these labels, as text, have."""
        scrape, size = (machine, _digest(labels)), numbers.nbytes + SCRAPE_BYTES
        if self._scrapes_size + size > SCRAPES_BYTES:
            self._scrapes.clear()
            self._scrapes_size = 0
        self._scrapes[scrape] = numbers
        self._scrapes_size += size

    def grow(self) -> None:
        """Make room in the memory for the series that came since the last time."""
        more = len(self.series) - len(self.memory["time"])
        if more:
            for name, empty in _MEMORY.items():
                self.memory[name] = np.concatenate([self.memory[name], np.full(more, empty)])
            self._matching.clear()
            for name in ("form", "rank", "machine_of", "packed_series"):
                self.__dict__.pop(name, None)

    @cached_property
    def form(self) -> Ints:
        """How the points of each series are read, a `Form`."""
        return np.array([one.form for one in self.series], np.int64)

    @cached_property
    def machine_of(self) -> Ints:
        """The number of each series' machine."""
        return np.array([one.machine for one in self.series], np.int64)

    @cached_property
    def rank(self) -> Ints:
        """The place of each series in the order of emitted statistics: by machine, kind, series, unit."""
        keys = [(self.machines[one.machine], one.kind, one.series, one.unit or "") for one in self.series]
        rank = np.empty(len(keys), np.int64)
        rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        return rank

    @cached_property
    def packed_series(self) -> orjson.Fragment:
        """The names as JSON: rewritten only when there are more."""
        return orjson.Fragment(orjson.dumps([tuple(one) for one in self.series]))

    def reset_silent(self, series: Ints, time: Ints, ttl: int) -> Ints:
        """Reset what is remembered of those that were silent for more than `ttl` ns before `time`; returns them."""
        stale: Ints = series[(self.memory["time"][series] >= 0) & (time - self.memory["time"][series] > ttl)]
        for name, empty in _MEMORY.items():
            self.memory[name][stale] = empty
        return stale

    def remember(self, series: Ints, *, count: Ints, first: Ints, last: Ints, value: Floats, fell: Ints) -> None:
        """Take a pane: of each series how many points, when the first and last, the last value, how often it fell.

        The usual interval follows the mean gap by half of their difference, but by an eighth of itself at most: an
        outage hardly moves it (the clipped mean of Huber 1964, as a filter).
        """
        before, usual, falls = (self.memory[name][series] for name in ("time", "interval", "falls"))
        gaps, span = np.where(before < 0, count - 1, count), last - np.where(before < 0, first, before)
        gap = span // np.maximum(gaps, 1)
        moved = usual + np.clip((gap - usual) // 2, -usual // 8, usual // 8)
        self.memory["interval"][series] = np.where(gap <= 0, usual, np.where(usual > 0, moved, gap))
        self.memory["falls"][series] = np.clip(np.where(fell > 0, falls + fell, falls - 1), 0, 100)
        self.memory["time"][series] = last
        self.memory["value"][series] = value

    def retaining(self, kept: Ints) -> "Catalogue":
        """Only these series, under new numbers in the same order, and the machines that have any."""
        machines = sorted({self.series[number].machine for number in kept.tolist()})
        place = {machine: new for new, machine in enumerate(machines)}
        series = [self.series[n]._replace(machine=place[self.series[n].machine]) for n in kept.tolist()]
        memory = {name: column[kept] for name, column in self.memory.items()}
        return Catalogue([self.machines[machine] for machine in machines], series, memory, self.limits)


def _digest(labels: bytes) -> bytes:
    return blake2b(labels, digest_size=16).digest()


def _series(machine: int, kind: str, event: dict[str, Any]) -> Series:
    attributes = event.get("attributes") if kind == "metric" else None
    delta = event.get("temporality") == "delta"
    form = Form.LOG if kind == "log" else _metric_form(event, delta)
    return Series(
        machine, kind, event["series"], event.get("name"), event.get("unit"), attributes, int(form), delta
    )  # fmt: skip


def _metric_form(event: dict[str, Any], delta: bool) -> Form:
    form = _FORMS.get(event.get("type", "gauge"), Form.GAUGE)
    if form is Form.COUNTER and (delta or not event.get("monotonic")):
        return Form.GAUGE
    if form is Form.HISTOGRAM and "histogram" not in event:
        return Form.GAUGE
    return form

"""Writes the truth of a simulation while its records are sent: the content of every window, and every fault.

`windows.jsonl`: a line for each machine, kind and tumbling window of 10 s, `{"machine", "kind": "metric"|"log",
"start_unix_nano", "series": {series: {"count", "sum", "min", "max", "identity"}}}`, of the events that must be
counted, neither late nor rejected. A log's series is its true template and has only count and identity; the series `*`
is all lines of the machine. A window may have several lines: they add up. `identity` is the sum modulo 2^64 of a hash
of each event's time and content: it shows a loss or a duplicate that the other values hide, in any order.
`faults.jsonl`: a line for each fault that has begun, see `Fault.as_dict`. `late.jsonl`, `rejected.jsonl`: a line for
each record whose events must be found in events.late or events.rejected, by their identity; a malformed one by the
SHA-256 of its value. `cloud.json`: the inventory. `plan.json`: the specifications of all faults. `totals.json`: the
numbers of events in all; a malformed record counts as one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zlib import crc32

import numpy as np
import orjson
from numpy.typing import NDArray

from ops.simulator.faults import SECOND
from ops.simulator.signals import Floats
from ops.simulator.simulation import Inventory, Lines, Malformed, Record, Scrape, Simulation

WINDOW = 10 * SECOND
GRACE = 60 * SECOND  # how long a window waits for a partition that reports its deliveries behind the others
NANO_PER_MILLI = 1_000_000
FILES = ("windows", "faults", "late", "rejected")
ALL_LINES = "*"

Hashes = NDArray[np.uint64]
Times = NDArray[np.int64]


def mix(words: Hashes) -> Hashes:
    """SplitMix64's finaliser (Steele, Lea, Flood 2014): a good 64-bit hash of each word."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def value_identity(times: Times, values: Floats) -> Hashes:
    """The identity of each data point, from its time and value."""
    return mix(times.astype(np.uint64) ^ mix(np.ascontiguousarray(values).view(np.uint64)))


def line_identity(times: Times, bodies: Sequence[str]) -> Hashes:
    """The identity of each log line, from its time and body."""
    return mix(times.astype(np.uint64) ^ mix(np.array([crc32(body.encode()) for body in bodies], dtype=np.uint64)))


def window_start(time_unix_nano: int) -> int:
    """The start of the window that holds this time."""
    return time_unix_nano - time_unix_nano % WINDOW


@dataclass(slots=True)
class Totals:
    """The numbers of events sent, by where they must arrive."""

    accepted: int = 0
    late: int = 0
    future: int = 0
    malformed: int = 0

    def as_dict(self) -> dict[str, int]:
        """The totals as they stand in `totals.json`."""
        rejected = self.future + self.malformed
        return {
            "produced": self.accepted + self.late + rejected,
            "accepted": self.accepted,
            "late": self.late,
            "rejected": rejected,
            "future": self.future,
            "malformed": self.malformed,
        }


@dataclass(slots=True)
class _Numbers:
    """The metrics of a machine in one window, an array entry for each series."""

    count: NDArray[np.int64]
    sum: Floats
    min: Floats
    max: Floats
    identity: Hashes

    @classmethod
    def of(cls, series: int) -> Self:
        empty, zeros = np.full(series, np.inf), np.zeros(series)
        return cls(np.zeros(series, np.int64), zeros, empty, -empty, np.zeros(series, np.uint64))

    def add(self, part: slice, times: Times, values: Floats) -> None:
        self.count[part] += 1
        self.sum[part] += values
        np.minimum(self.min[part], values, out=self.min[part])
        np.maximum(self.max[part], values, out=self.max[part])
        self.identity[part] += value_identity(times, values)

    def as_dict(self, series: Sequence[str]) -> dict[str, dict[str, Any]]:
        columns = (self.count, self.sum, self.min, self.max, self.identity)
        rows = zip(series, *(column.tolist() for column in columns), strict=True)
        names = ("count", "sum", "min", "max", "identity")
        return {name: dict(zip(names, figures, strict=True)) for name, *figures in rows if figures[0]}


@dataclass(slots=True)
class _Counts:
    """The log lines of a machine in one window by template: [count, identity]."""

    series: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, template: str, identity: int) -> None:
        for name in (template, ALL_LINES):
            entry = self.series[name]
            entry[0] += 1
            entry[1] = (entry[1] + identity) % 2**64

    def as_dict(self) -> dict[str, dict[str, int]]:
        return {name: {"count": count, "identity": identity} for name, (count, identity) in self.series.items()}


class Truth:
    """Writes the truth of a simulation into a folder; a context manager: the files are whole when it ends."""

    def __init__(self, folder: Path, simulation: Simulation, lateness: Callable[[str, int], int] | None = None) -> None:
        """`lateness` gives that of a topic at a Kafka timestamp, in ms; by default it is always the topics' limit."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "totals.json").unlink(missing_ok=True)  # comes last: where it is, the truth is whole
        self.totals = Totals()
        self._folder = folder
        self._simulation = simulation
        self._lateness = lateness or (lambda *_: simulation.settings.lateness // NANO_PER_MILLI)
        self._files = {name: (folder / f"{name}.jsonl").open("wb") for name in FILES}
        self._numbers: dict[tuple[int, int], _Numbers] = {}  # by window start and machine
        self._counts: dict[tuple[int, int], _Counts] = {}
        self._coming = sorted(simulation.settings.faults, key=lambda fault: fault.start)
        self._series = [[instrument.series for instrument in row] for row in simulation.instruments]
        self._flushed = 0
        start = simulation.settings.start_unix_nano
        (folder / "plan.json").write_bytes(orjson.dumps([fault.spec for fault in self._coming]))
        (folder / "cloud.json").write_bytes(orjson.dumps([m.inventory(start) for m in simulation.machines]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flush(before=2**63)
        for file in self._files.values():
            file.close()
        (self._folder / "totals.json").write_bytes(orjson.dumps(self.totals.as_dict()))

    def delivered(self, record: Record, timestamp_ms: int) -> None:
        """Record that Kafka has a record, with the timestamp that Kafka gave it, which decides what is late."""
        now = timestamp_ms * NANO_PER_MILLI
        self._begin_faults(now)
        match record.content:
            case Scrape():
                self._scrape(record, record.content, now)
            case Lines():
                self._lines(record, record.content, now)
            case Malformed():
                self._malformed(record)
            case Inventory():
                pass
        if now >= self._flushed + WINDOW:
            self._flushed = now
            self._flush(before=now - self._simulation.settings.lateness - GRACE)

    def _scrape(self, record: Record, scrape: Scrape, now: int) -> None:
        values, time = scrape.values[record.part], scrape.time_unix_nano
        times = np.full(len(values), time)
        if not self._judge(record, "metric", times, value_identity(times, values), now).any():
            return
        key = window_start(time), scrape.machine
        if key not in self._numbers:
            self._numbers[key] = _Numbers.of(len(scrape.values))
        self._numbers[key].add(record.part, times, values)

    def _lines(self, record: Record, content: Lines, now: int) -> None:
        lines = content.lines[record.part]
        times = np.array([simulated.line.time_unix_nano for simulated in lines])
        identities = line_identity(times, [simulated.line.body for simulated in lines])
        for index in np.flatnonzero(self._judge(record, "log", times, identities, now)).tolist():
            key = window_start(int(times[index])), content.machine
            self._counts.setdefault(key, _Counts()).add(lines[index].template.masked, int(identities[index]))

    def _judge(self, record: Record, kind: str, times: Times, identities: Hashes, now: int) -> NDArray[np.bool_]:
        """Which of the record's events are accepted; the others are counted and written down."""
        settings = self._simulation.settings
        lateness = self._lateness(record.topic, now // NANO_PER_MILLI) * NANO_PER_MILLI
        future, late = times - now > settings.future, now - times > lateness
        accepted = ~(future | late)
        self.totals.accepted += int(accepted.sum())
        if future.any():
            self.totals.future += int(future.sum())
            self._write_events("rejected", record, identities[future], {"kind": kind, "code": "future"})
        if late.any():
            self.totals.late += int(late.sum())
            self._write_events("late", record, identities[late], {"kind": kind})
        return accepted

    def _malformed(self, record: Record) -> None:
        self.totals.malformed += 1
        facts = {"topic": record.topic, "machine": record.key.decode(), "code": "malformed", "events": 1}
        self._write("rejected", {**facts, "sha256": sha256(record.value).hexdigest()})

    def _write_events(self, name: str, record: Record, identities: Hashes, facts: dict[str, str]) -> None:
        events, identity = len(identities), int(identities.sum())
        machine = record.key.decode()
        self._write(name, {"topic": record.topic, "machine": machine, **facts, "events": events, "identity": identity})

    def _begin_faults(self, now: int) -> None:
        start = self._simulation.settings.start_unix_nano
        while self._coming and start + self._coming[0].start <= now:
            self._write("faults", self._simulation.fault_facts(self._coming.pop(0)))

    def _flush(self, before: int) -> None:
        for kind, start, machine, facts in [*self._closed_metrics(before), *self._closed_logs(before)]:
            name = self._simulation.machines[machine].name
            self._write("windows", {"machine": name, "kind": kind, "start_unix_nano": start, "series": facts})
        self._files["windows"].flush()

    def _closed_metrics(self, before: int) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
        for key in [key for key in self._numbers if key[0] + WINDOW <= before]:
            yield "metric", *key, self._numbers.pop(key).as_dict(self._series[key[1]])

    def _closed_logs(self, before: int) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
        for key in [key for key in self._counts if key[0] + WINDOW <= before]:
            yield "log", *key, self._counts.pop(key).as_dict()

    def _write(self, name: str, facts: dict[str, Any]) -> None:
        self._files[name].write(orjson.dumps(facts) + b"\n")
        if name != "windows":
            self._files[name].flush()

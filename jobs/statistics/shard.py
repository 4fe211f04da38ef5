"""The statistics of one shard: a fold over one partition of `events`.

Points wait in their columns until a tick says that their window is complete; only then is anything computed, once. So
neither the order of arrival nor the cut into batches can show in a result, and the state is the open windows' points.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import orjson

from jobs.runtime.fold import Input, Output
from jobs.runtime.packing import pack, unpack
from jobs.statistics.settings import StatisticsSettings
from jobs.statistics.windows import NANO, Points, summarise, window_start

SCHEMA_VERSION = b"statistics/1"
# A series that is seen no more is forgotten when this many idle ones have gathered.
IDLE_SERIES = 1024
METRIC_STATISTICS = ("sum", "mean", "variance", "min", "max", "first", "last")


class OutOfOrderError(Exception):
    """An event is older than a tick that came before it: its window may have been told already."""


class Series(NamedTuple):
    """What a series is called; the rest of a statistic is computed."""

    machine: str
    kind: str
    series: str
    name: str | None
    unit: str | None
    attributes: dict[str, str] | None


SeriesKey = tuple[str, str | None]  # series and unit: values of two units don't add up
Facts = tuple[int, str, dict[str, Any]]  # (event time, id of the record, inventory): the greatest is a window's


@dataclass
class Shard:
    """The state: open points, the names of their series, and the machines' facts by window."""

    sizes: tuple[int, ...]  # of the windows in ns, ascending
    tick: int = 0
    points: Points = field(default_factory=Points.empty)
    series: list[Series] = field(default_factory=list)
    facts: dict[tuple[str, int], Facts] = field(default_factory=dict)  # (machine, start of smallest window)

    def __post_init__(self) -> None:
        self._numbers: dict[tuple[str, str], dict[SeriesKey, int]] = defaultdict(dict)
        for number, series in enumerate(self.series):
            self._numbers[series.machine, series.kind][series.series, series.unit] = number

    def add(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Take new (offset, value) records of `events`, ticks among them.

        Raises OutOfOrderError if one contradicts an earlier tick.
        """
        parts = []
        for offset, value in records:
            record = orjson.loads(value)
            if "tick_unix_nano" in record:
                self.tick = max(self.tick, record["tick_unix_nano"])
            elif not self._came_back_late(record):
                parts.append(self._points_of(record, offset))
        if parts:
            self.points = self.points.plus(parts)

    def _came_back_late(self, record: dict[str, Any]) -> bool:
        """Whether it was rejected, sent again after a fix, and has an event whose window may have been told."""
        return "retried" in record and min(event["time_unix_nano"] for event in record["events"]) < self.tick

    def _points_of(self, record: dict[str, Any], offset: int) -> Points:
        events = record["events"]
        time = np.array([event["time_unix_nano"] for event in events], np.int64)
        if time.min() < self.tick:
            raise OutOfOrderError(
                f"record {record['id']} at offset {offset} has an event at {time.min()}, before the tick {self.tick}: "
                "was something else than enrichment writing to `events`, or a broker's clock set back by more than 1 s?"
            )
        self._note_facts(record, time)
        if record["kind"] == "log":
            # Lines are only counted; their severity stands in for the value, so that a window has its highest.
            value = np.array([event.get("severity_number") or 0 for event in events], np.float64)
        else:
            value = np.array([event["value"] for event in events], np.float64)
        numbers = self._numbers[record["machine"], record["kind"]]
        series = np.array([numbers.get((e["series"], e.get("unit")), -1) for e in events], np.int64)
        for row in np.flatnonzero(series < 0):
            series[row] = self._number(record, events[row], numbers)
        return Points(series, time, value, np.full(len(events), offset, np.int64))

    def _number(self, record: dict[str, Any], event: dict[str, Any], numbers: dict[SeriesKey, int]) -> int:
        key = (event["series"], event.get("unit"))
        if (found := numbers.get(key)) is not None:
            return found
        numbers[key] = len(self.series)
        self.series.append(
            Series(
                record["machine"],
                record["kind"],
                event["series"],
                event.get("name"),
                event.get("unit"),
                event.get("attributes") if record["kind"] == "metric" else None,
            )
        )
        return len(self.series) - 1

    def _note_facts(self, record: dict[str, Any], time: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        for start in np.unique(window_start(time, self.sizes[0])).tolist():
            facts: Facts = (int(time[0]), record["id"], record["inventory"])
            key = (record["machine"], start)
            known = self.facts.get(key)
            if known is None or known[:2] < facts[:2]:
                self.facts[key] = facts

    def close(self, since: int) -> list["Closed"]:
        """The windows that ended after tick `since` and not after the present one, in order of their end."""
        closed = [window for size in self.sizes for window in self._close_size(size, since)]
        self._forget()
        return sorted(closed, key=lambda window: (window.end, window.size, window.machine))

    def _close_size(self, size: int, since: int) -> Iterator["Closed"]:
        begin, end = since - since % size, self.tick - self.tick % size
        rows = (self.points.time >= begin) & (self.points.time < end)
        summary = summarise(self.points.take(rows), size)
        machines: dict[tuple[str, int], list[int]] = defaultdict(list)
        for row, (number, start) in enumerate(zip(summary.series.tolist(), summary.start.tolist(), strict=True)):
            machines[self.series[number].machine, start].append(row)
        # As lists: reading single numbers out of numpy is slow.
        columns = {column.name: getattr(summary, column.name).tolist() for column in fields(summary)}
        for (machine, start), members in machines.items():
            statistics = [(self.series[columns["series"][row]], row) for row in members]
            statistics.sort(key=lambda pair: (pair[0].kind, pair[0].series, pair[0].unit or ""))
            yield Closed(machine, size, start, self._facts_of(machine, start, size), statistics, columns)

    def _facts_of(self, machine: str, start: int, size: int) -> dict[str, Any]:
        within = range(start, start + size, self.sizes[0])
        return max(self.facts[machine, s] for s in within if (machine, s) in self.facts)[2]

    def _forget(self) -> None:
        """Drop what no open window needs."""
        largest = self.sizes[-1]
        horizon = self.tick - self.tick % largest
        self.points = self.points.take(self.points.time >= horizon)
        self.facts = {key: facts for key, facts in self.facts.items() if key[1] + self.sizes[0] > horizon}
        used = np.unique(self.points.series)
        if len(self.series) <= 2 * len(used) + IDLE_SERIES:
            return
        self.series = [self.series[number] for number in used]
        self.points = Points(
            np.searchsorted(used, self.points.series), self.points.time, self.points.value, self.points.offset
        )
        self.__post_init__()

    def to_bytes(self) -> bytes:
        """The packed state."""
        header = {
            "sizes": self.sizes,
            "tick": self.tick,
            "series": [tuple(series) for series in self.series],
            "facts": [[*key, *facts] for key, facts in self.facts.items()],
        }
        p = self.points
        return pack(header, {"series": p.series, "time": p.time, "value": p.value, "offset": p.offset})

    @classmethod
    def from_bytes(cls, state: bytes) -> "Shard":
        """The inverse of `to_bytes`."""
        header, columns = unpack(state)
        return cls(
            tuple(header["sizes"]),
            header["tick"],
            Points(**columns),
            [Series(*series) for series in header["series"]],
            {(machine, start): (time, id_, facts) for machine, start, time, id_, facts in header["facts"]},
        )


class Closed(NamedTuple):
    """One machine's complete window; `statistics` are (series, row of columns)."""

    machine: str
    size: int
    start: int
    inventory: dict[str, Any]
    statistics: list[tuple[Series, int]]
    columns: dict[str, list[Any]]

    @property
    def end(self) -> int:
        """End of the window, exclusive."""
        return self.start + self.size

    def record(self, source: str, partition: int) -> dict[str, Any]:
        """As JSON of the schema `statistics`."""
        seconds = self.size / NANO
        rows = [row for _, row in self.statistics]
        return {
            "id": f"{self.machine}/{seconds:g}s/{self.start}",
            "machine": self.machine,
            "inventory": self.inventory,
            "window": {
                "kind": "tumbling",
                "size_seconds": seconds,
                "start_unix_nano": self.start,
                "end_unix_nano": self.end,
            },
            "source": {
                "topic": source,
                "partition": partition,
                "first_offset": min(self.columns["first_offset"][row] for row in rows),
                "last_offset": max(self.columns["last_offset"][row] for row in rows),
            },
            "statistics": [self._statistic(series, row) for series, row in self.statistics],
        }

    def _statistic(self, series: Series, row: int) -> dict[str, Any]:
        found: dict[str, Any] = {
            "series": series.series,
            "kind": series.kind,
            "name": series.name,
            "unit": series.unit,
            "attributes": series.attributes,
            "count": self.columns["count"][row],
        }
        if series.kind == "log":
            found["severity_number"] = int(self.columns["max"][row]) or None
        else:
            found |= {name: self.columns[name][row] for name in METRIC_STATISTICS}
        return {name: value for name, value in found.items() if value is not None}


def fold(settings: StatisticsSettings, state: bytes | None, batch: Input) -> tuple[bytes, list[Output]]:
    """One batch of a partition of `events` -> the new state and the records for the same partition of `statistics`."""
    shard = Shard.from_bytes(state) if state else Shard(tuple(size * NANO for size in settings.tumbling_seconds))
    before = shard.tick
    shard.add(zip(batch.offsets, batch.values, strict=True))
    if shard.tick == before:
        return shard.to_bytes(), []
    outputs = [_output(window, batch) for window in shard.close(before)]
    tick = Output(None, orjson.dumps({"tick_unix_nano": shard.tick}), shard.tick)
    return shard.to_bytes(), [*outputs, tick]


def _output(window: Closed, batch: Input) -> Output:
    record = window.record(batch.topic, batch.shard)
    source = record["source"]
    trace = f"{batch.topic}/{batch.shard}/{source['first_offset']}-{source['last_offset']}".encode()
    headers = (("kappa.source", trace), ("kappa.schema", SCHEMA_VERSION))
    return Output(window.machine, orjson.dumps(record), window.end, headers)

"""A day of a large fleet in which only what is arranged goes wrong: how many alerts are about nothing.

Windows of 10 s go through the detector's own fold, without servers. Beside the simulator's daily rhythm, machines come
and go, hosts are maintained under an order that suppresses what they and their guests say, all machines of a role at a
site get bursts of traffic, memory leaks for hours, hosts take time from their guests, and at midnight the weekend
begins.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from infra.contract.inventory import VALID_TO
from jobs.detector.control import allow, suppress
from jobs.detector.rules import Rule
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard
from ops.simulator import cloud, logs, signals
from ops.simulator.cloud import Machine
from ops.simulator.faults import KINDS, SECOND, STEAL, USED, Effect
from ops.simulator.signals import Floats

MACHINES = 280
START = 1_700_222_400 * SECOND  # a Friday, at noon: the weekend is its second half
WINDOW_SECONDS = 10
HOUR = 3600 // WINDOW_SECONDS  # times here are numbers of windows
MINUTE = 60 // WINDOW_SECONDS
AFTERMATH = 5 * MINUTE  # after an event, in which novelties of its machines follow from it
WEEKEND = 0.8  # of the traffic of a working day; it becomes so within three hours around midnight
BURST = 1.5
TRAFFIC_DAILY = 0.5  # the share of the daily rhythm in series that count traffic
EXAMPLE = ("time_unix_nano", "machine", "verdict", "series", "score", "text")  # of a false alarm

Record = dict[str, Any]


class Event(NamedTuple):
    """Something that is arranged, from a window to another, on some machines of `Fleet.machines`."""

    kind: str
    rows: tuple[int, ...]
    begin: int
    end: int

    def explains(self, name_of: Sequence[str], novelty: Record, window: int) -> bool:
        """Whether a novelty follows from it. Of what is maintained nothing may be told."""
        if self.kind == "maintenance" or novelty["machine"] not in {name_of[row] for row in self.rows}:
            return False
        if self.kind == "retirement":
            return bool(novelty["verdict"] == "gone")
        return self.begin <= window <= self.end + AFTERMATH


class Fleet:
    """The machines, those that join during the day at the end, and what happens to them."""

    def __init__(self, count: int, hours: int, seed: int) -> None:
        self.hours, self.seed = hours, seed
        born = [f"vm-new-{number:02d}" for number in range(hours - 1)]
        present = cloud.build(count)
        self.machines: tuple[Machine, ...] = (*present, *cloud.newcomers(present, born))
        self.names = [machine.name for machine in self.machines]
        self.events = tuple(self._events(len(present), np.random.default_rng(seed)))

    def guests(self, host: int) -> tuple[int, ...]:
        """The machines on a host, of those that are there from the beginning on or join."""
        return tuple(row for row, one in enumerate(self.machines) if one.hypervisor == self.names[host])

    def _events(self, present: int, rng: np.random.Generator) -> Iterator[Event]:
        """After an hour in which nothing happens: each on machines of its own, but for bursts."""
        hours = range(1, self.hours)
        for number, hour in enumerate(hours):
            yield Event("birth", (present + number,), hour * HOUR, hour * HOUR)
        hosts = rng.permutation([row for row, one in enumerate(self.machines) if one.hypervisor is None]).tolist()
        third = len(hosts) // 3
        maintained, slow, others = hosts[:third], hosts[third : 2 * third], hosts[2 * third :]
        for host, hour in zip(maintained, hours[::2], strict=False):
            begin = hour * HOUR + 10 * MINUTE
            yield Event("maintenance", (host, *self.guests(host)), begin, begin + 20 * MINUTE)
        for host, hour in zip(slow, hours[1::2], strict=False):
            begin = hour * HOUR + 20 * MINUTE
            yield Event("slow_host", (host, *self.guests(host)), begin, begin + 5 * MINUTE)
        free = [row for host in others for row in self.guests(host) if row < present]
        alone = iter(rng.permutation(free).tolist())
        for hour in hours:
            begin = hour * HOUR + 40 * MINUTE
            yield Event("retirement", (next(alone),), begin, self.hours * HOUR)
        for hour in hours[:-5:2]:
            yield Event("leak", (next(alone),), hour * HOUR, (hour + 4) * HOUR)
        groups = sorted({(one.role, one.site) for one in self.machines if one.hypervisor})
        for group, hour in zip(rng.permutation(len(groups)).tolist(), hours[1::2], strict=False):
            rows = [row for row, one in enumerate(self.machines) if (one.role, one.site) == groups[group]]
            yield Event("burst", tuple(rows), hour * HOUR + 50 * MINUTE, hour * HOUR + 53 * MINUTE)


class Day:
    """What the statistics job would write of a fleet's day."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._signals = signals.Signals(fleet.machines, fleet.seed, WINDOW_SECONDS)
        self._logs = logs.Logs(fleet.machines, fleet.seed, WINDOW_SECONDS)
        self._own = [signals.of_role(machine.role) for machine in fleet.machines]
        self._templates = [[one.masked for one in logs.of_role(machine.role)] for machine in fleet.machines]
        self._traffic = [
            (row, signal.instrument.series)
            for row, own in enumerate(self._own)
            for signal in own
            if signal.daily >= TRAFFIC_DAILY
        ]
        self._counts = np.array([[signal.instrument.monotonic for signal in own] for own in self._own])
        self._born = {event.rows[0]: event.begin for event in fleet.events if event.kind == "birth"}
        self._retired = {event.rows[0]: event.begin for event in fleet.events if event.kind == "retirement"}

    def windows(self) -> Iterator[list[bytes]]:
        """The records of each window in turn, with its watermark at the end."""
        before: Floats | None = None
        for window in range(self._fleet.hours * HOUR):
            seconds = np.full(len(self._own), START / SECOND + window * WINDOW_SECONDS)
            values = self._signals.advance(seconds, self._effects(window))
            counts = self._logs.counts(window)
            if before is not None:
                means = np.where(self._counts, (values - before) / WINDOW_SECONDS, values)
                yield list(self._records(window, means, counts))
            before = values

    def _effects(self, window: int) -> Iterator[tuple[int, Effect, float]]:
        weekend = 1 + (WEEKEND - 1) * float(np.clip((window - 10.5 * HOUR) / (3 * HOUR), 0, 1))
        bursting = {row for event in self._now("burst", window) for row in event.rows}
        for row, series in self._traffic:
            yield row, Effect(series, factor=weekend * (BURST if row in bursting else 1.0)), 1.0
        for event in self._now("leak", window):
            share = (window - event.begin) / (event.end - event.begin)
            yield event.rows[0], Effect(USED, add=0.3, ramp=True), share
        for event in self._now("slow_host", window):
            host, *guests = event.rows
            yield from ((host, effect, 1.0) for effect in KINDS["cpu_hog"].effects)
            yield from ((row, Effect(STEAL, add=0.2), 1.0) for row in guests)

    def _now(self, kind: str, window: int) -> Iterator[Event]:
        return (one for one in self._fleet.events if one.kind == kind and one.begin <= window < one.end)

    def _records(self, window: int, means: Floats, counts: Any) -> Iterator[bytes]:
        end = START + window * WINDOW_SECONDS * SECOND
        bounds = {
            "kind": "tumbling",
            "size_seconds": float(WINDOW_SECONDS),
            "start_unix_nano": end - WINDOW_SECONDS * SECOND,
            "end_unix_nano": end,
        }
        yield from self._orders(window, end)
        silent = self._silent(window)
        for row, (machine, values) in enumerate(zip(self._fleet.machines, means.tolist(), strict=True)):
            if row not in silent:
                table = self._table(row, values, counts[row].tolist())
                facts = {"known": True, **self._facts(row, machine)}
                yield orjson.dumps({"machine": machine.name, "inventory": facts, "window": bounds, "statistics": table})
        yield orjson.dumps({"watermark_unix_nano": end})

    def _orders(self, window: int, end: int) -> Iterator[bytes]:
        """At the beginning and the end of maintenance, of each machine."""
        for event in self._fleet.events:
            if event.kind == "maintenance" and window in (event.begin, event.end):
                for row in event.rows:
                    rule = Rule(machine=self._fleet.names[row])
                    order = suppress(rule) if window == event.begin else allow(rule.id)
                    yield orjson.dumps({"control": order, "time_unix_nano": end})

    def _silent(self, window: int) -> set[int]:
        """The machines that aren't there; what is maintained is down for five minutes."""
        down = (
            row
            for event in self._now("maintenance", window)
            if event.begin + 5 * MINUTE <= window < event.begin + 10 * MINUTE
            for row in event.rows
        )
        unborn = (row for row, begin in self._born.items() if window < begin)
        gone = (row for row, begin in self._retired.items() if window >= begin)
        return {*down, *unborn, *gone}

    def _facts(self, row: int, machine: Machine) -> Record:
        facts: Record = {"type": machine.type, "site": machine.site, "role": machine.role}
        if machine.hypervisor:
            facts["hypervisor"] = machine.hypervisor
        if row in self._retired:
            facts[VALID_TO] = START + self._retired[row] * WINDOW_SECONDS * SECOND
        return facts

    def _table(self, row: int, values: list[float], counts: list[int]) -> Record:
        templates = [(name, count) for name, count in zip(self._templates[row], counts, strict=False) if count]
        metrics, lines = len(values), len(templates)
        return {
            "kind": ["metric"] * metrics + ["log"] * lines,
            "series": [one.instrument.series for one in self._own[row]] + [name for name, _ in templates],
            "count": [1] * metrics + [count for _, count in templates],
            "mean": [*values, *[None] * lines],
        }


def measure(count: int, hours: int, seed: int = 1) -> dict[str, Any]:
    """How many novelties nothing explains, and of how many events of each kind something was told.

    Of retirements, births, slow hosts and leaks something must be told while they last, or soon after; of maintenance
    nothing may be; of a burst of traffic it is right either way.
    """
    fleet = Fleet(count, hours, seed)
    shard = Shard(DetectorSettings(window_seconds=float(WINDOW_SECONDS)), None)
    told: dict[Event, list[Record]] = defaultdict(list)
    unexplained, seen = list[Record](), set[str]()
    for records in Day(fleet).windows():
        for novelty in shard.feed(records):
            if novelty["id"] in seen:
                continue
            seen.add(novelty["id"])
            window = (novelty["time_unix_nano"] - START) // (WINDOW_SECONDS * SECOND)
            reasons = [event for event in fleet.events if event.explains(fleet.names, novelty, window)]
            for event in reasons:
                told[event].append(novelty)
            if not reasons:
                unexplained.append(novelty)
    arranged = Counter(event.kind for event in fleet.events)
    found = Counter(event.kind for event in told)
    return {
        "machines": count,
        "hours": hours,
        "events": {kind: {"arranged": number, "told": found[kind]} for kind, number in arranged.items()},
        "false_alarms": len(unexplained),
        "examples": [{name: one.get(name) for name in EXAMPLE} for one in unexplained[:50]],
    }

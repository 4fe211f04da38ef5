"""Simulates a cloud with faults as a stream of Kafka records, in the order in which they arrive."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, groupby
from typing import NamedTuple

import numpy as np
import orjson

from infra.errors import UserError
from ops.simulator import cloud, encode, faults, logs, signals
from ops.simulator.faults import KINDS, SECOND, Effect, Fault
from ops.simulator.logs import SimulatedLine
from ops.simulator.signals import Floats

DELAY_STREAM = 3
LEAST_DELAY = SECOND // 50
# The power that makes long delays rare: of records, 1 in 18 is delayed by more than 5/8 of the jitter.
DELAY_SKEW = 8
WRONG_CLOCK = 3600 * SECOND
PHASE = 0.6180339887498949  # the golden ratio spreads the machines' scrapes evenly over the interval


@dataclass(frozen=True, slots=True)
class Settings:
    """What to simulate. Times are in ns; `jitter` bounds a record's usual delay, `lateness` is the topics' limit.

    For `log_batch` a collector gathers log lines before it sends them; None: for the scrape interval.
    """

    start_unix_nano: int
    duration: int | None = None
    machines: int = 28
    sites: int = 2
    seed: int = 1
    scrape_interval: int = 5 * SECOND
    faults: Sequence[Fault] = ()
    log_batch: int | None = None
    jitter: int = 8 * SECOND
    lateness: int = 20 * SECOND
    future: int = 10 * SECOND
    format: str = "otlp"
    topic_prefix: str = ""
    name_prefix: str = ""

    def check(self) -> None:
        """Check the values.

        Raises:
            UserError: names the field, its value and the fix.
        """
        if not 0 <= self.seed < 2**32:
            raise UserError(f"seed {self.seed}: give a whole number from 0 to {2**32 - 1}")
        if self.format not in encode.TOPICS:
            raise UserError(f"topic-format {self.format!r}: use {' or '.join(encode.TOPICS)}")
        if self.scrape_interval < SECOND // 10:
            raise UserError(f"scrape-interval {self.scrape_interval / SECOND:g}s: give at least 100ms")
        if self.log_batch is not None and not SECOND // 100 <= self.log_batch <= self.scrape_interval:
            raise UserError(f"log-batch {self.log_batch / SECOND:g}s: give 10ms or more, at most the scrape interval")
        if self.scrape_interval + self.jitter >= self.lateness:
            longest = (self.lateness - self.jitter) / SECOND
            what = f"scrape-interval {self.scrape_interval / SECOND:g}s"
            raise UserError(f"{what}: usual records would be late; give less than {longest:g}s")


class Scrape(NamedTuple):
    """The data points of one machine at one time; `numbers` is the JSON of `values`."""

    machine: int
    time_unix_nano: int
    values: Floats
    numbers: list[bytes]


class Lines(NamedTuple):
    """The log lines of one machine in one step."""

    machine: int
    lines: list[SimulatedLine]


class Malformed(NamedTuple):
    """A malformed record of a machine."""

    machine: int
    value: bytes


class Inventory(NamedTuple):
    """The inventory record of a machine, valid from a time on."""

    machine: int
    valid_from_unix_nano: int


Content = Scrape | Lines | Malformed | Inventory
Arrival = tuple[int, Content]  # time of arrival in Unix ns, and what arrives


class Record(NamedTuple):
    """A Kafka record; `part` says which events of `content` it carries. `timestamp_ms` is when it arrives."""

    topic: str
    key: bytes
    value: bytes
    timestamp_ms: int
    content: Content
    part: slice = slice(None)


class _Moment(NamedTuple):
    """A machine at a step; `clock` is the time by the machine's own clock, which a fault may put wrong."""

    row: int
    step: int
    time: int
    clock: int
    faults: list[Fault]
    newborn: bool

    def has_fault(self, kind: str) -> bool:
        return any(fault.kind == kind for fault in self.faults)


class Simulation:
    """A cloud and its faults. Every call of `records` starts from the beginning and gives the same records."""

    def __init__(self, settings: Settings) -> None:
        """Checks the settings and builds the cloud.

        Raises:
            UserError: the settings or a fault make no sense.
        """
        settings.check()
        self.settings = settings
        machines = cloud.build(settings.machines, settings.sites, settings.name_prefix)
        faults.check(settings.faults, {machine.name for machine in machines})
        self._born = {fault.machine: fault.start for fault in settings.faults if fault.kind == "new_vm"}
        self.machines = (*machines, *cloud.newcomers(machines, self._born))
        self.instruments = [[s.instrument for s in signals.of_role(m.role)] for m in self.machines]
        self._row = {machine.name: row for row, machine in enumerate(self.machines)}
        self._templates = [
            encode.MetricTemplate(machine, instruments, self._birth(row))
            for row, (machine, instruments) in enumerate(zip(self.machines, self.instruments, strict=True))
        ]

    def topics(self) -> list[str]:
        """The topics that the simulation writes."""
        return [self.settings.topic_prefix + topic for topic in encode.TOPICS[self.settings.format]]

    def records(self, since_unix_nano: int = 0, until_unix_nano: int | None = None) -> Iterator[Record]:
        """The records that arrive in [since, until), in order of arrival; without `until` all, maybe endless."""
        for arrival, content in self._arrivals():
            if until_unix_nano is not None and arrival >= until_unix_nano:
                return
            if arrival >= since_unix_nano:
                yield from self._encode(content, arrival // 1_000_000)

    def fault_facts(self, fault: Fault) -> dict[str, object]:
        """The line of a fault in the truth."""
        machine = self.machines[self._row[fault.machine]]
        series = [template.masked for template in logs.extra([fault.kind], machine.role)]
        guests = [other.name for other in self.machines if other.hypervisor == machine.name]
        return fault.as_dict(self.settings.start_unix_nano, series, guests)

    def _birth(self, row: int) -> int:
        return self.settings.start_unix_nano + self._born.get(self.machines[row].name, 0)

    def _arrivals(self) -> Iterator[Arrival]:
        """All arrivals in order; of a step, log lines alone may arrive before it begins, by less than an interval."""
        waiting: list[tuple[int, int, Content]] = []
        number = count()  # what arrives at the same time comes in the order in which it was made
        for step_start, arrivals in self._steps():
            while waiting and waiting[0][0] < step_start - self.settings.scrape_interval:
                arrival, _, content = heappop(waiting)
                yield arrival, content
            for arrival, content in arrivals:
                heappush(waiting, (arrival, next(number), content))
        while waiting:
            arrival, _, content = heappop(waiting)
            yield arrival, content

    def _steps(self) -> Iterator[tuple[int, Iterator[Arrival]]]:
        settings = self.settings
        interval = settings.scrape_interval
        phases = np.array([round(row * PHASE % 1 * interval) for row in range(len(self.machines))])
        metrics = signals.Signals(self.machines, settings.seed, interval / SECOND)
        lines = logs.Logs(self.machines, settings.seed, interval / SECOND)
        for step in count():
            if settings.duration is not None and step * interval >= settings.duration:
                return
            begin = settings.start_unix_nano + step * interval
            moments = [self._moment(row, step, time) for row, time in enumerate((begin + phases).tolist())]
            values = metrics.advance((begin + phases) / SECOND, self._effects(moments))
            yield begin, self._step(begin, moments, values, lines)

    def _moment(self, row: int, step: int, time: int) -> _Moment:
        name, offset = self.machines[row].name, time - self.settings.start_unix_nano
        active = [fault for fault in self.settings.faults if fault.machine == name and fault.active(offset)]
        shift = WRONG_CLOCK if any(fault.kind == "wrong_clock" for fault in active) else 0
        newborn = time - self.settings.scrape_interval < self._birth(row) <= time
        return _Moment(row, step, time, time + shift, active, newborn)

    def _effects(self, moments: Iterable[_Moment]) -> Iterator[tuple[int, Effect, float]]:
        for moment in moments:
            for fault in moment.faults:
                offset = moment.time - self.settings.start_unix_nano
                for effect in KINDS[fault.kind].effects:
                    yield moment.row, effect, fault.strength(effect, offset)
                yield from self._guest_effects(fault)

    def _guest_effects(self, fault: Fault) -> Iterator[tuple[int, Effect, float]]:
        for row, machine in enumerate(self.machines):
            if machine.hypervisor == fault.machine:
                yield from ((row, effect, 1.0) for effect in KINDS[fault.kind].guest_effects)

    def _step(self, begin: int, moments: list[_Moment], values: Floats, lines: logs.Logs) -> Iterator[Arrival]:
        step = moments[0].step
        rng = np.random.default_rng([self.settings.seed, DELAY_STREAM, step])
        delays = rng.random((len(moments), 2)) ** DELAY_SKEW * self.settings.jitter + LEAST_DELAY
        numbers, counts = encode.numbers(values), lines.counts(step)
        for moment, (delay, log_delay) in zip(moments, delays.astype(int).tolist(), strict=True):
            row = moment.row
            if moment.newborn:
                yield max(self._birth(row), begin), Inventory(row, self._birth(row))
            if moment.time < self._birth(row) or moment.has_fault("silence"):
                continue
            sent = moment.time + self._held_back(moment)
            yield from self._metrics(moment, Scrape(row, moment.clock, values[row], numbers[row]), sent + delay)
            if not moment.newborn:  # its lines would be older than itself
                yield from self._logs(moment, lines, counts[row], sent + log_delay)

    def _held_back(self, moment: _Moment) -> int:
        """The additional delay: with the fault `late` every other step is late, so that the machine isn't silent."""
        return 2 * self.settings.lateness if moment.has_fault("late") and moment.step % 2 else 0

    def _metrics(self, moment: _Moment, scrape: Scrape, arrival: int) -> Iterator[Arrival]:
        yield arrival, scrape
        if moment.has_fault("malformed"):
            good = next(iter(self._encode(scrape, 0))).value
            yield arrival, Malformed(moment.row, encode.malformed(moment.step, good))

    def _logs(self, moment: _Moment, lines: logs.Logs, counts: Iterable[int], arrival: int) -> Iterator[Arrival]:
        extra = logs.extra((fault.kind for fault in moment.faults), self.machines[moment.row].role)
        written = lines.lines(moment.row, moment.step, counts, moment.clock, extra)
        for before, batch in self._batches(written, moment.clock):
            yield arrival - before, Lines(moment.row, batch)

    def _batches(self, lines: list[SimulatedLine], end: int) -> Iterator[tuple[int, list[SimulatedLine]]]:
        """The lines of a step as a collector sends them, and how long before the step's `end` it does."""
        length = self.settings.log_batch or self.settings.scrape_interval
        for number, batch in groupby(lines, lambda one: (end - 1 - one.line.time_unix_nano) // length):
            yield number * length, list(batch)

    def _encode(self, content: Content, timestamp_ms: int) -> Iterator[Record]:
        key, prefix = self._key(content), self.settings.topic_prefix
        for topic, value, part in self._values(content):
            yield Record(prefix + topic, key, value, timestamp_ms, content, part)

    def _key(self, content: Content) -> bytes:
        name = self.machines[content.machine].name
        # Compaction keeps one inventory record a machine and beginning, and with it the history.
        return (f"{name}@{content.valid_from_unix_nano}" if isinstance(content, Inventory) else name).encode()

    def _values(self, content: Content) -> Iterator[tuple[str, bytes, slice]]:
        machine, everything = self.machines[content.machine], slice(None)
        single = self.settings.format == "lines"
        match content:
            case Inventory():
                yield encode.INVENTORY_TOPIC, orjson.dumps(machine.inventory(content.valid_from_unix_nano)), everything
            case Malformed():
                yield encode.TOPICS[self.settings.format][0], content.value, everything
            case Scrape() if single:
                yield from _each(self._points(content))
            case Lines() if single:
                yield from _each(encode.log_line(machine, simulated) for simulated in content.lines)
            case Scrape():
                template = self._templates[content.machine]
                yield encode.METRICS_TOPIC, template.fill(content.time_unix_nano, content.numbers), everything
            case Lines():
                yield encode.LOGS_TOPIC, encode.log_request(machine, content.lines), everything

    def _points(self, scrape: Scrape) -> Iterator[bytes]:
        machine = self.machines[scrape.machine]
        for instrument, number in zip(self.instruments[scrape.machine], scrape.numbers, strict=True):
            yield encode.metric_line(machine, instrument, scrape.time_unix_nano, number)


def _each(values: Iterable[bytes]) -> Iterator[tuple[str, bytes, slice]]:
    return ((encode.LINES_TOPIC, value, slice(n, n + 1)) for n, value in enumerate(values))

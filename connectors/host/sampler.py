"""This machine's metrics, read through psutil and named as OpenTelemetry's host metrics are."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import psutil

from connectors.otlp import Instrument

Point = tuple[Instrument, int | float]

CPU_STATES = {"iowait": "wait", "irq": "interrupt"}  # psutil's name -> OpenTelemetry's; the others are the same
CPU_OF_OTHERS = ("guest", "guest_nice")  # counted in user and nice already
MEMORY_STATES = ("used", "free", "cached", "buffers")
LOAD_MINUTES = (1, 5, 15)
IGNORED_DEVICES = ("lo", "loop", "ram")


class ProcessGroup(NamedTuple):
    """All processes of the same name."""

    processes: int = 0
    memory_bytes: int = 0
    cpu_seconds: float = 0.0

    def plus(self, other: "ProcessGroup") -> "ProcessGroup":
        """The sum of both."""
        return ProcessGroup(
            self.processes + other.processes,
            self.memory_bytes + other.memory_bytes,
            self.cpu_seconds + other.cpu_seconds,
        )


class Sampler:
    """Samples all metrics of this machine; CPU shares are since the previous sample (at first: since construction)."""

    def __init__(self, top: int) -> None:
        """`top`: how many process groups get metrics: those with most memory, each for as long as it lives."""
        self._top = top
        self._reported: set[str] = set()
        self._cpu_seconds: dict[tuple[int, float], float] = {}  # by process: pid and start time
        self._sampled = time.monotonic()
        psutil.cpu_times_percent()
        self._groups()

    def sample(self) -> list[Point]:
        """A data point of each series, as of now; those of one metric are adjacent."""
        return [*_cpu(), *_memory(), *_load(), *_disks(), *_file_systems(), *_network(), *self._processes()]

    def _processes(self) -> Iterator[Point]:
        elapsed = time.monotonic() - self._sampled
        self._sampled += elapsed
        groups = self._groups()
        largest = sorted(groups, key=lambda name: -groups[name].memory_bytes)[: self._top]
        self._reported = (self._reported & groups.keys()) | set(largest)
        reported = {name: groups[name] for name in sorted(self._reported)}
        yield _gauge("system.processes.count", "{process}", sum(group.processes for group in groups.values()))
        for name, group in reported.items():
            yield _gauge("process.group.count", "{process}", group.processes, **{"process.executable.name": name})
        for name, group in reported.items():
            yield _gauge("process.memory.usage", "By", group.memory_bytes, **{"process.executable.name": name})
        for name, group in reported.items():
            share = group.cpu_seconds / elapsed if elapsed else 0.0
            yield _gauge("process.cpu.utilization", "1", share, **{"process.executable.name": name})

    def _groups(self) -> dict[str, ProcessGroup]:
        """The process groups by name; their CPU seconds are those used since the last call."""
        groups: dict[str, ProcessGroup] = defaultdict(ProcessGroup)
        used: dict[tuple[int, float], float] = {}
        for process in psutil.process_iter(["pid", "create_time", "name", "memory_info", "cpu_times"]):
            facts = process.info  # type: ignore[attr-defined]
            if facts["cpu_times"] is None or facts["memory_info"] is None:
                continue  # access denied
            key = facts["pid"], facts["create_time"]
            used[key] = facts["cpu_times"].user + facts["cpu_times"].system
            fresh = used[key] - self._cpu_seconds.get(key, 0.0)
            group = ProcessGroup(1, facts["memory_info"].rss, fresh)
            groups[facts["name"]] = groups[facts["name"]].plus(group)
        self._cpu_seconds = used
        return groups


def _gauge(name: str, unit: str, value: float, **labels: str) -> Point:
    return Instrument(name, unit, attributes=tuple(labels.items())), value


def _counters(name: str, unit: str, values: Iterable[tuple[str, str, int]]) -> Iterator[Point]:
    for device, direction, value in values:
        labels = (("device", device), ("direction", direction))
        yield Instrument(name, unit, "sum", monotonic=True, attributes=labels), value


def _cpu() -> Iterator[Point]:
    for state, percent in psutil.cpu_times_percent()._asdict().items():
        if state not in CPU_OF_OTHERS:
            yield _gauge("system.cpu.utilization", "1", round(percent / 100, 5), state=CPU_STATES.get(state, state))


def _memory() -> Iterator[Point]:
    memory = psutil.virtual_memory()
    states = {state: size for state in MEMORY_STATES if (size := getattr(memory, state, None)) is not None}
    for state, size in states.items():
        yield Instrument("system.memory.usage", "By", "sum", attributes=(("state", state),)), size
    for state, size in states.items():
        yield _gauge("system.memory.utilization", "1", size / memory.total, state=state)
    yield _gauge("system.paging.utilization", "1", psutil.swap_memory().percent / 100)


def _load() -> Iterator[Point]:
    for minutes, load in zip(LOAD_MINUTES, psutil.getloadavg(), strict=True):
        yield _gauge(f"system.cpu.load_average.{minutes}m", "{thread}", load)


def _disks() -> Iterator[Point]:
    counters = psutil.disk_io_counters(perdisk=True) or {}
    disks = {name: disk for name, disk in sorted(counters.items()) if not name.startswith(IGNORED_DEVICES)}
    sides = (("read", "read_bytes", "read_count"), ("write", "write_bytes", "write_count"))
    for metric, unit, column in (("system.disk.io", "By", 1), ("system.disk.operations", "{operation}", 2)):
        values = ((name, side[0], getattr(disk, side[column])) for name, disk in disks.items() for side in sides)
        yield from _counters(metric, unit, values)


def _file_systems() -> Iterator[Point]:
    mounts: dict[str, str] = {}
    for partition in psutil.disk_partitions():
        mounts.setdefault(partition.device, partition.mountpoint)  # the others are bind mounts of it
    for mount in sorted(mounts.values()):
        yield _gauge("system.filesystem.utilization", "1", psutil.disk_usage(mount).percent / 100, mountpoint=mount)


def _network() -> Iterator[Point]:
    cards = {n: c for n, c in sorted(psutil.net_io_counters(pernic=True).items()) if not n.startswith(IGNORED_DEVICES)}
    for metric, unit, columns in (
        ("system.network.io", "By", {"receive": "bytes_recv", "transmit": "bytes_sent"}),
        ("system.network.packets", "{packet}", {"receive": "packets_recv", "transmit": "packets_sent"}),
        ("system.network.errors", "{error}", {"receive": "errin", "transmit": "errout"}),
        ("system.network.dropped", "{packet}", {"receive": "dropin", "transmit": "dropout"}),
    ):
        values = ((n, side, getattr(card, column)) for n, card in cards.items() for side, column in columns.items())
        yield from _counters(metric, unit, values)

"""Generates metrics: daily rhythm, noise shared by a hypervisor and its guests, counters; a matrix for each step.

The value of a series at time t is level * (1 + daily * rhythm(t) + shared * H + own * M + noise * E), where H, M and E
are first-order autoregressive processes with unit variance: one for each hypervisor, machine and series. Counters are
running sums of such a rate.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from connectors.otlp import Instrument
from ops.simulator.cloud import HYPERVISOR_ROLE, Machine
from ops.simulator.faults import Effect

Floats = NDArray[np.float64]

DAY_S = 86_400.0
MEMORY_BYTES = 16 * 2**30
PERSISTENCE_SHARED, PERSISTENCE_OWN, PERSISTENCE_SERIES = 0.8, 0.7, 0.2
NOISE_STREAM = 1
LEVEL_SPREAD = 0.15  # between machines, as the standard deviation of the level's logarithm


class Signal(NamedTuple):
    """The parameters of a series: its level (of a counter: per second), and its components' weights relative to it."""

    instrument: Instrument
    level: float
    daily: float = 0.2
    shared: float = 0.03
    own: float = 0.05
    noise: float = 0.05
    high: float = np.inf
    decimals: int = 3


def _gauge(name: str, unit: str, level: float, *labels: tuple[str, str], **shape: float) -> Signal:
    return Signal(Instrument(name, unit, "gauge", attributes=labels), level, **shape)  # type: ignore[arg-type]


def _counter(name: str, unit: str, per_second: float, *labels: tuple[str, str], **shape: float) -> Signal:
    instrument = Instrument(name, unit, "sum", monotonic=True, attributes=labels)
    return Signal(instrument, per_second, **shape)  # type: ignore[arg-type]


def _cpu(state: str, level: float, **shape: float) -> Signal:
    return _gauge("system.cpu.utilization", "1", level, ("state", state), high=1.0, decimals=5, **shape)


def _memory(state: str, level: float, **shape: float) -> Signal:
    return _gauge("system.memory.utilization", "1", level, ("state", state), high=1.0, decimals=5, **shape)


def _io(name: str, unit: str, rate: float, device: str, direction: str) -> Signal:
    return _counter(name, unit, rate, ("device", device), ("direction", direction))


STEADY = {"daily": 0.02, "shared": 0.0, "own": 0.01, "noise": 0.01}

SYSTEM_GAUGES = (
    _cpu("user", 0.22),
    _cpu("system", 0.06),
    _cpu("wait", 0.015, noise=0.15),
    _cpu("steal", 0.01, noise=0.2, shared=0.1),
    _cpu("idle", 0.0),
    _memory("used", 0.35, **STEADY),
    _memory("cached", 0.25, **STEADY),
    _memory("free", 0.0),
    Signal(Instrument("system.memory.usage", "By", "sum", attributes=(("state", "used"),)), 0.0, decimals=0),
    _gauge("system.cpu.load_average.1m", "{thread}", 1.4, noise=0.1),
    _gauge("system.filesystem.utilization", "1", 0.4, ("mountpoint", "/"), high=1.0, decimals=5, **STEADY),
    _gauge("system.processes.count", "{process}", 3.0, ("status", "running"), noise=0.2, decimals=0),
    _gauge("system.processes.count", "{process}", 210.0, ("status", "sleeping"), decimals=0, **STEADY),
    _gauge(
        "system.network.connections", "{connection}", 150.0, ("protocol", "tcp"), ("state", "ESTABLISHED"), decimals=0
    ),
)
SYSTEM_COUNTERS = (
    _io("system.network.io", "By", 2.5e6, "eth0", "receive"),
    _io("system.network.io", "By", 3.1e6, "eth0", "transmit"),
    _io("system.network.packets", "{packet}", 3200.0, "eth0", "receive"),
    _io("system.network.packets", "{packet}", 3600.0, "eth0", "transmit"),
    _io("system.network.errors", "{error}", 0.4, "eth0", "receive"),
    _io("system.disk.io", "By", 4.0e5, "vda", "read"),
    _io("system.disk.io", "By", 9.0e5, "vda", "write"),
    _io("system.disk.operations", "{operation}", 40.0, "vda", "read"),
    _io("system.disk.operations", "{operation}", 95.0, "vda", "write"),
)

# Four gauges, then two counters: every role has equally many, so that a cloud is one matrix.
ROLE_SIGNALS: dict[str, tuple[Signal, ...]] = {
    HYPERVISOR_ROLE: (
        _gauge("hw.temperature", "Cel", 46.0, ("sensor", "cpu0"), **STEADY),
        _gauge("hw.power", "W", 310.0, decimals=1, daily=0.1),
        _gauge("hw.fan.speed", "rpm", 5400.0, decimals=0, **STEADY),
        _gauge("kvm.vcpu.wait", "ms", 0.8, noise=0.15),
        _counter("kvm.exits", "{exit}", 42_000.0),
        _counter("ovs.datapath.lookups", "{lookup}", 51_000.0),
    ),
    "AMF": (
        _gauge("amf.ue.registered", "{ue}", 84_000.0, decimals=0, **STEADY),
        _gauge("amf.gnb.connected", "{gnb}", 620.0, decimals=0, **STEADY),
        _gauge("amf.registration.latency", "ms", 38.0, noise=0.08),
        _gauge("amf.paging.queue", "{request}", 25.0, decimals=0, noise=0.15),
        _counter("amf.registration.requests", "{request}", 130.0, daily=0.5),
        _counter("amf.authentication.failures", "{request}", 0.6),
    ),
    "SMF": (
        _gauge("smf.pdu.sessions", "{session}", 120_000.0, decimals=0, **STEADY),
        _gauge("smf.n4.associations", "{association}", 12.0, decimals=0, **STEADY),
        _gauge("smf.session.setup.latency", "ms", 55.0, noise=0.08),
        _gauge("smf.ip.pool.utilization", "1", 0.55, high=1.0, decimals=5, **STEADY),
        _counter("smf.session.establishment.requests", "{request}", 95.0, daily=0.5),
        _counter("smf.session.establishment.failures", "{request}", 0.4),
    ),
    "UPF": (
        _gauge("upf.sessions", "{session}", 60_000.0, decimals=0, **STEADY),
        _gauge("upf.throughput", "Mbit/s", 1_900.0, ("direction", "downlink"), daily=0.5),
        _gauge("upf.throughput", "Mbit/s", 240.0, ("direction", "uplink"), daily=0.5),
        _gauge("upf.n3.latency", "ms", 4.2, noise=0.08),
        _counter("upf.gtpu.packets", "{packet}", 310_000.0, daily=0.5),
        _counter("upf.gtpu.dropped", "{packet}", 2.0),
    ),
    "UDM": (
        _gauge("udm.subscribers.cached", "{subscriber}", 210_000.0, decimals=0, **STEADY),
        _gauge("udm.authentication.latency", "ms", 12.0, noise=0.08),
        _gauge("udm.udr.connections", "{connection}", 48.0, decimals=0, **STEADY),
        _gauge("udm.queue", "{request}", 9.0, decimals=0, noise=0.2),
        _counter("udm.authentication.requests", "{request}", 140.0, daily=0.5),
        _counter("udm.subscription.changes", "{change}", 4.0),
    ),
    "HSS": (
        _gauge("hss.subscribers.cached", "{subscriber}", 180_000.0, decimals=0, **STEADY),
        _gauge("hss.diameter.peers", "{peer}", 16.0, decimals=0, **STEADY),
        _gauge("hss.diameter.latency", "ms", 15.0, noise=0.08),
        _gauge("hss.queue", "{request}", 7.0, decimals=0, noise=0.2),
        _counter("hss.diameter.requests", "{request}", 160.0, daily=0.5),
        _counter("hss.diameter.timeouts", "{request}", 0.3),
    ),
    "PCF": (
        _gauge("pcf.policy.associations", "{association}", 110_000.0, decimals=0, **STEADY),
        _gauge("pcf.rules.active", "{rule}", 540.0, decimals=0, **STEADY),
        _gauge("pcf.decision.latency", "ms", 9.0, noise=0.08),
        _gauge("pcf.queue", "{request}", 6.0, decimals=0, noise=0.2),
        _counter("pcf.policy.requests", "{request}", 115.0, daily=0.5),
        _counter("pcf.policy.rejections", "{request}", 0.5),
    ),
}
ROLE_GAUGES = 4
GAUGES = len(SYSTEM_GAUGES) + ROLE_GAUGES  # columns before this one are gauges, the others counters


def of_role(role: str) -> tuple[Signal, ...]:
    """The signals of a machine of this role, in the order of the matrix's columns."""
    own = ROLE_SIGNALS[role]
    return SYSTEM_GAUGES + own[:ROLE_GAUGES] + SYSTEM_COUNTERS + own[ROLE_GAUGES:]


USER, SYSTEM, WAIT, STEAL, IDLE, USED, CACHED, FREE, USED_BYTES = range(9)


def rhythm(time_s: Floats) -> Floats:
    """The traffic's daily rhythm, -1 to 1: low at five in the morning UTC, high in the evening."""
    angle = 2 * np.pi * time_s / DAY_S
    evening: Floats = 0.85 * np.cos(angle - 2 * np.pi * 18 / 24) + 0.15 * np.cos(2 * angle - 2 * np.pi * 20 / 24)
    return evening


class Signals:
    """Generates the cloud's metrics step by step from the first step on, from the seed alone.

    Rows are machines, columns the series of `of_role`. A machine added at the end changes no other row.
    """

    def __init__(self, machines: Sequence[Machine], seed: int, interval_s: float) -> None:
        self._seed = seed
        self._interval_s = interval_s
        shapes = np.array([[signal[1:7] for signal in of_role(machine.role)] for machine in machines])
        self._level, self._daily, self._shared, self._own, self._noise, self._high = np.moveaxis(shapes, 2, 0)
        self._level = self._level * _spread(machines, seed, self._level.shape[1])
        self._scale = 10.0 ** np.array([[s.decimals for s in of_role(m.role)] for m in machines])
        hosts = {machine.hypervisor or machine.name for machine in machines}
        order = {name: row for row, name in enumerate(sorted(hosts))}
        self._host = np.array([order[machine.hypervisor or machine.name] for machine in machines])
        self._column = [{s.instrument.series: i for i, s in enumerate(of_role(m.role))} for m in machines]
        self._host_noise = np.zeros(len(hosts))
        self._machine_noise = np.zeros(len(machines))
        self._series_noise = np.zeros(self._level.shape)
        self._counters = np.zeros((len(machines), self._level.shape[1] - GAUGES))
        self._step = 0

    def column(self, machine: int, series: str) -> int:
        """The column of this series in the machine's row."""
        return self._column[machine][series]

    def advance(self, time_s: Floats, effects: Iterable[tuple[int, Effect, float]] = ()) -> Floats:
        """The next step's values.

        Args:
            time_s: when each machine is scraped, seconds since the epoch.
            effects: what faults do now: machine, effect, its strength from 0 to 1.

        Returns:
            machines x series; whole numbers in the counters' columns.
        """
        self._advance_noise()
        moves = 1 + self._daily * rhythm(time_s)[:, None] + self._noises()
        values: Floats = self._level * np.maximum(moves, 0)
        for machine, effect, strength in effects:
            column = self._column[machine][effect.series]
            values[machine, column] = values[machine, column] * effect.factor + effect.add * strength
        values = np.minimum(values, self._high)
        _derive(values)
        self._counters += np.round(values[:, GAUGES:] * self._interval_s)
        values[:, GAUGES:] = self._counters
        # Dividing by a power of ten gives the double next to the short decimal, so the JSON stays short.
        values[:, :GAUGES] = np.round(values[:, :GAUGES] * self._scale[:, :GAUGES]) / self._scale[:, :GAUGES]
        return values

    def _advance_noise(self) -> None:
        rng = np.random.default_rng([self._seed, NOISE_STREAM, self._step])
        hosts = rng.standard_normal(len(self._host_noise))
        # One draw, machine by machine: a machine added at the end leaves the others' noise alone.
        rows = rng.standard_normal((len(self._machine_noise), self._series_noise.shape[1] + 1))
        first = self._step == 0
        self._host_noise = _autoregress(self._host_noise, hosts, PERSISTENCE_SHARED, first)
        self._machine_noise = _autoregress(self._machine_noise, rows[:, 0], PERSISTENCE_OWN, first)
        self._series_noise = _autoregress(self._series_noise, rows[:, 1:], PERSISTENCE_SERIES, first)
        self._step += 1

    def _noises(self) -> Floats:
        hosts, machines = self._host_noise[self._host][:, None], self._machine_noise[:, None]
        noises: Floats = self._shared * hosts + self._own * machines + self._noise * self._series_noise
        return noises


def _autoregress(state: Floats, innovation: Floats, persistence: float, first: bool) -> Floats:
    if first:
        return innovation
    following: Floats = persistence * state + np.sqrt(1 - persistence**2) * innovation
    return following


def _derive(values: Floats) -> None:
    """Set the series that depend on others, in place: CPU states and memory states sum to 1."""
    others = values[:, [SYSTEM, WAIT, STEAL]].sum(axis=1)
    values[:, USER] = np.clip(values[:, USER], 0, np.maximum(1 - others, 0))
    values[:, IDLE] = np.maximum(1 - others - values[:, USER], 0)
    values[:, CACHED] = np.minimum(values[:, CACHED], 1 - values[:, USED])
    values[:, FREE] = 1 - values[:, USED] - values[:, CACHED]
    values[:, USED_BYTES] = values[:, USED] * MEMORY_BYTES


def _spread(machines: Sequence[Machine], seed: int, columns: int) -> Floats:
    rngs = (np.random.default_rng([seed, crc32(machine.name.encode())]) for machine in machines)
    return np.exp(LEVEL_SPREAD * np.array([rng.standard_normal(columns) for rng in rngs]))

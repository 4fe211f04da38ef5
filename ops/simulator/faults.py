"""The faults that can be simulated: what each kind does, which answers are right, and how one is specified."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from infra.errors import UserError

SECOND = 1_000_000_000
UNITS = {"ms": SECOND // 1000, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
SPEC = re.compile(r"(?P<kind>[^:]*):(?P<machine>[^@]*)@\+(?P<start>[^/]*)(?:/(?P<duration>.*))?")
FORM = "KIND:MACHINE@+START[/DURATION], for example cpu_hog:vm-17@+60s/30s"

USED = "system.memory.utilization{state=used}"
FREE = "system.memory.utilization{state=free}"
USED_BYTES = "system.memory.usage{state=used}"
IDLE = "system.cpu.utilization{state=idle}"
USER = "system.cpu.utilization{state=user}"
STEAL = "system.cpu.utilization{state=steal}"
LOAD = "system.cpu.load_average.1m"
SLEEPING = "system.processes.count{status=sleeping}"
ESTABLISHED = "system.network.connections{protocol=tcp,state=ESTABLISHED}"


@dataclass(frozen=True, slots=True)
class Effect:
    """A change of one series while the fault lasts: value * factor + add; with `ramp`, `add` grows from 0."""

    series: str
    factor: float = 1.0
    add: float = 0.0
    ramp: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of fault does, and the answers that are right for it.

    `duration` is in ns, None if it stays. `derived` are series that follow from the effects, `guest_effects` are for
    virtual machines of a hypervisor that has the fault. `tolerated` are verdicts that follow from the fault: neither
    required nor false alarms.
    """

    duration: int | None
    answers: tuple[dict[str, str], ...]
    effects: tuple[Effect, ...] = ()
    derived: tuple[str, ...] = ()
    guest_effects: tuple[Effect, ...] = ()
    guest_derived: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()


def _novelty(*verdicts: str) -> tuple[dict[str, str], ...]:
    return tuple({"topic": "novelties", "verdict": verdict} for verdict in verdicts)


KINDS = {
    "cpu_hog": Kind(
        60 * SECOND,
        _novelty("anomaly", "state_change"),
        (Effect(USER, add=0.55), Effect(LOAD, add=6.0)),
        (IDLE,),
        (Effect(STEAL, add=0.2),),
        (IDLE,),
    ),
    "memory_leak": Kind(
        300 * SECOND, _novelty("anomaly", "state_change"), (Effect(USED, add=0.4, ramp=True),), (FREE, USED_BYTES)
    ),
    "state_change": Kind(
        None,
        _novelty("state_change"),
        (Effect(USED, add=0.2), Effect(SLEEPING, 1.5), Effect(ESTABLISHED, 1.7)),
        (FREE, USED_BYTES),
        tolerated=("anomaly",),
    ),
    "new_vm": Kind(None, _novelty("new_entity")),
    "silence": Kind(60 * SECOND, _novelty("silence"), tolerated=("anomaly",)),
    "log_burst": Kind(30 * SECOND, _novelty("anomaly"), tolerated=("state_change",)),
    "new_template": Kind(30 * SECOND, _novelty("new_entity"), tolerated=("anomaly",)),
    "late": Kind(30 * SECOND, ({"topic": "events.late"},), tolerated=("anomaly",)),
    "malformed": Kind(30 * SECOND, ({"topic": "events.rejected"},)),
    "wrong_clock": Kind(
        30 * SECOND, ({"topic": "events.rejected", "code": "future"},), tolerated=("silence", "anomaly")
    ),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault on one machine; `start` and `duration` in ns, start counted from the simulation's."""

    kind: str
    machine: str
    start: int
    duration: int | None
    spec: str = field(compare=False)

    @property
    def end(self) -> int | None:
        """When it ends, ns from the simulation's start; None if it stays."""
        return None if self.duration is None else self.start + self.duration

    def active(self, offset: int) -> bool:
        """Whether the fault is active at `offset`, ns from the simulation's start."""
        return self.start <= offset and (self.end is None or offset < self.end)

    def strength(self, effect: Effect, offset: int) -> float:
        """The share of `effect.add` that applies at `offset`: 1, or for a ramp the elapsed share of the duration."""
        if not effect.ramp or self.duration is None:
            return 1.0
        return (offset - self.start) / self.duration

    def as_dict(self, start_unix_nano: int, log_series: list[str], guests: list[str]) -> dict[str, Any]:
        """The line of the fault in the truth: where and when it happens, the series that show it, the right answers."""
        kind = KINDS[self.kind]
        guest_series = [effect.series for effect in kind.guest_effects] + list(kind.guest_derived)
        return {
            "spec": self.spec,
            "kind": self.kind,
            "machine": self.machine,
            "start_unix_nano": start_unix_nano + self.start,
            "end_unix_nano": None if self.end is None else start_unix_nano + self.end,
            "series": [effect.series for effect in kind.effects] + list(kind.derived) + log_series,
            "guests": {name: guest_series for name in guests if guest_series},
            "answers": list(kind.answers),
            "tolerated": list(kind.tolerated),
        }


def parse(spec: str) -> Fault:
    """A fault from `KIND:MACHINE@+START[/DURATION]`; without a duration the kind's own.

    Raises:
        UserError: the spec can't be understood.
    """
    match = SPEC.fullmatch(spec.strip())
    if not match:
        raise UserError(f"fault {spec!r}: write {FORM}")
    kind, machine, start, length = match.groups()
    if kind not in KINDS:
        raise UserError(f"fault {spec!r}: unknown kind {kind!r}; use one of {', '.join(KINDS)}")
    if not machine:
        raise UserError(f"fault {spec!r}: the machine is missing; write {FORM}")
    asked = KINDS[kind].duration if length is None else duration(length, f"duration of fault {spec!r}")
    if asked == 0:
        raise UserError(f"duration of fault {spec!r}: give more than 0, or leave it out for the kind's own")
    return Fault(kind, machine, duration(start, f"start of fault {spec!r}"), asked, spec.strip())


def duration(text: str, what: str) -> int:
    """Nanoseconds from `90s`, `1.5m`, `2h` or `500ms`.

    Raises:
        UserError: not of that form; `what` names the field.
    """
    match = DURATION.fullmatch(text.strip())
    if not match:
        raise UserError(f"{what}: {text!r} is not a time; write a number and ms, s, m or h, for example 60s")
    return round(float(match[1]) * UNITS[match[2]])


def check(faults: Collection[Fault], machines: Collection[str]) -> None:
    """Check that every fault's machine exists, and that a new VM doesn't.

    Raises:
        UserError: names the first fault that fits no machine.
    """
    new = [fault.machine for fault in faults if fault.kind == "new_vm"]
    known = set(machines) | set(new)
    for fault in faults:
        if fault.kind == "new_vm" and (fault.machine in machines or new.count(fault.machine) > 1):
            raise UserError(f"fault {fault.spec!r}: machine {fault.machine!r} is there already; choose a new name")
        if fault.machine not in known:
            names = sorted(machines)
            fix = f"choose one from {names[0]} to {names[-1]}, or add it by new_vm"
            raise UserError(f"fault {fault.spec!r}: no machine {fault.machine!r} in the cloud; {fix}")

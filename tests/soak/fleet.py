"""What a small fleet sends, as a function of the minute of event time alone: so its truth needs no memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import orjson

MINUTE = 60 * 10**9  # ns
DAY = 1_440  # minutes
MACHINES = tuple(f"vm-{number:02d}" for number in range(20))
SERIES = tuple(f"system.soak.{number}" for number in range(5))
TOPIC = "telemetry.lines"
BROKEN = b'{"broken'
POD_HOURS = range(4, 16)  # of a day, in which that day's pod lives
BUSY_HOURS = range(6, 8)  # in which a machine is busy, each day another one
SILENT_HOURS = range(12, 14)
BROKEN_EVERY, LATE_EVERY = 30, 60  # minutes
LATE_MINUTES = 10


@dataclass(frozen=True)
class Fleet:
    """Machines that send each of their series once a minute, and each day a pod that lives for half of it."""

    start: int  # ns, the beginning of a day

    def machines(self, minute: int) -> list[str]:
        """Those that send in a minute, counted from the start."""
        day, hour = minute // DAY, minute % DAY // 60
        silent = MACHINES[(day + 7) % len(MACHINES)] if hour in SILENT_HOURS else None
        pods = [f"pod-{day:02d}"] if hour in POD_HOURS else []
        return [machine for machine in (*MACHINES, *pods) if machine != silent]

    def value(self, machine: str, series: int, minute: int) -> float:
        """What a series of a machine is in a minute."""
        day, hour = minute // DAY, minute % DAY // 60
        number = MACHINES.index(machine) if machine in MACHINES else len(MACHINES)
        is_busy = series == 0 and hour in BUSY_HOURS and number == day % len(MACHINES)
        return 10.0 * (series + 1) + (30.0 if is_busy else 0.0) + float(_noise(minute)[number, series])

    def values(self, machine: str, minute: int) -> dict[str, float]:
        """All series of a machine in a minute."""
        return {name: self.value(machine, number, minute) for number, name in enumerate(SERIES)}

    def records(self, minute: int) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values of what comes in a minute: events, and now and then one that is broken, or late."""
        time = self.start + minute * MINUTE
        for machine in self.machines(minute):
            for name, value in self.values(machine, minute).items():
                yield machine.encode(), _line(machine, name, value, time)
        if minute % BROKEN_EVERY == 0:
            yield b"broken", BROKEN
        if minute % LATE_EVERY == 0:
            yield b"late", _line("late", "late", float(minute), time - LATE_MINUTES * MINUTE)


def _line(machine: str, name: str, value: float, time: int) -> bytes:
    return orjson.dumps({"time_unix_nano": time, "machine": machine, "name": name, "value": value})


@lru_cache(maxsize=8)
def _noise(minute: int) -> np.ndarray:
    return np.random.default_rng(minute).normal(size=(len(MACHINES) + 1, len(SERIES))).round(3)

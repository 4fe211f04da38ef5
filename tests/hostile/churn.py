"""Days of a fleet whose machines come and go, through the folds of statistics and detector: what they keep, and cost.

Time is compressed: a window is half an hour instead of ten seconds, and all that is counted in windows is scaled with
it. A third of the fleet stays. The others are pods that live for some windows, each under a name that never returns:
half of them are members of workloads, of half nothing is known. No Spark, no Kafka.

    python -m tests.hostile.churn --days 30 --machines 1000 --names 100000
"""

import argparse
import gc
import json
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from infra.contract.watermarks import watermark_value
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard as DetectorShard
from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_state import Input
from jobs.statistics.settings import Windows
from jobs.statistics.shard import Shard as StatisticsShard

SECOND = 10**9
HOUR, DAY = 3600 * SECOND, 86_400 * SECOND
BEGIN = 1_700_006_400 * SECOND  # a midnight
METRICS = ("cpu", "memory", "requests")
TEMPLATES = ("request <*> took <*> ms", "session <*> opened")
WORKLOADS = 20
DUMPS_A_DAY = 6
BATCHES_KEPT = 20  # spark.sql.streaming.minBatchesToRetain of jobs/runtime/session.py


@dataclass(frozen=True)
class Fleet:
    """So many `machines` at any time, under so many `names` in all."""

    days: int = 30
    machines: int = 1_000
    names: int = 100_000
    window_seconds: int = 1_800
    every: int = 5  # days between two figures

    @property
    def windows_a_day(self) -> int:
        return 86_400 // self.window_seconds

    @property
    def stays(self) -> int:
        """Machines that are there all the time."""
        return self.machines // 3


def present(fleet: Fleet) -> Iterator[list[tuple[str, str | None]]]:
    """The machines of each window, with their workloads."""
    stay: list[tuple[str, str | None]] = [(f"vm-{number}", None) for number in range(fleet.stays)]
    windows, room = fleet.days * fleet.windows_a_day, fleet.machines - fleet.stays
    pods: deque[tuple[str, str | None]] = deque(maxlen=room)
    born, wanted = 0, fleet.names - fleet.stays
    for window in range(windows):
        while born < max(room, wanted * (window + 1) // windows):
            workload = f"Deployment/ns/app-{born % WORKLOADS}" if born % 2 else None
            pods.append((f"pod-{born}", workload))
            born += 1
        yield [*stay, *pods]


def records(fleet: Fleet, window: int, there: list[tuple[str, str | None]]) -> Iterator[bytes]:
    """What the machines of a window send, as records of `events`."""
    begin = BEGIN + window * fleet.window_seconds * SECOND
    times = [begin + part * fleet.window_seconds * SECOND // 2 + SECOND for part in range(2)]
    for number, (machine, workload) in enumerate(there):
        facts: dict[str, Any] = {"known": True, "site": f"s{number % 3}", "role": "node"}
        facts |= {"workload": workload} if workload else {}
        wave = (window * 7 + number * 13) % 17 / 17
        values = [50.0 + at + wave + part for part in range(2) for at in range(len(METRICS))]
        metrics = {"time_unix_nano": [one for one in times for _ in METRICS], "value": values}
        metrics |= {
            "labels": [*range(len(METRICS))] * 2,
            "series": METRICS,
            "unit": ["1"] * len(METRICS),
            "name": METRICS,
        }
        yield _record(machine, "metric", facts, metrics)
        lines = [times[0]] * len(TEMPLATES)
        logs = {"time_unix_nano": lines, "severity_number": [9] * len(lines), "series": TEMPLATES}
        yield _record(machine, "log", facts, logs)
    yield watermark_value(begin + fleet.window_seconds * SECOND)


def _record(machine: str, kind: str, facts: dict[str, Any], events: dict[str, Any]) -> bytes:
    return orjson.dumps({"id": machine, "machine": machine, "kind": kind, "inventory": facts, "events": events})


def folds(fleet: Fleet) -> tuple[StatisticsShard, DetectorShard]:
    """Both folds, with what is counted in windows scaled to the fleet's."""
    size = fleet.window_seconds
    declared = [
        {"kind": "tumbling", "size": f"{size}s"},
        {"kind": "sliding", "size": f"{2 * size}s", "slide": f"{size}s"},
    ]
    windows = Windows.model_validate({"windows": declared, "state_ttl": f"{4 * size}s"})
    hours, week = 6 * 3600 // size, 7 * fleet.windows_a_day
    settings = DetectorSettings(
        window_seconds=size,
        gone_windows=max(hours, 10),
        state_ttl_windows=max(week, 100),
        seen_before_windows=week,
    )
    return StatisticsShard(windows), DetectorShard(settings)


class Kept:
    """What Spark keeps of a fold: bytes of its state, and at most of its checkpoint, before compression.

    The checkpoint has two snapshots, and of each of the batches that can be returned to the parts that it changed.
    """

    def __init__(self, fold: StatisticsShard | DetectorShard) -> None:
        self._fold, self._parts = fold, Parts()

    def sizes(self) -> tuple[int, int]:
        """(bytes of the state, bytes of the checkpoint); what changed since the last call is taken for a batch's."""
        before, self._parts = self._parts, self._fold.dump()
        state = sum(map(len, self._parts.values()))
        changed = sum(len(part) for name, part in self._parts.items() if before.get(name) != part)
        return state, 2 * state + BATCHES_KEPT * changed


def measure(fleet: Fleet) -> dict[str, Any]:
    """Lead the fleet through the folds.

    At each `every` days: the most bytes of state and of checkpoint, and the mean CPU seconds a window, of that day.
    """
    statistics, detector = folds(fleet)
    kept = [Kept(statistics), Kept(detector)]
    figures: dict[str, list[float]] = {"days": [], "state_bytes": [], "disk_bytes": [], "window_seconds": []}
    verdicts: Counter[str] = Counter()
    names: set[str] = set()
    spent, states, disks, offset = 0.0, [], [], 0
    for window, there in enumerate(present(fleet)):
        names.update(machine for machine, _ in there)
        values = list(records(fleet, window, there))
        began = time.process_time()
        batch = Input("events", 0, range(offset, offset + len(values)), values)
        written = statistics.feed(batch)
        said = detector.feed([one.value for one in written if one.topic is None])
        spent += time.process_time() - began
        offset += len(values)
        verdicts.update(f"{one['verdict']} {one['phase']}" for one in said)
        if (window + 1) % max(fleet.windows_a_day // DUMPS_A_DAY, 1) == 0:
            sizes = [one.sizes() for one in kept]
            states.append(sum(state for state, _ in sizes))
            disks.append(sum(disk for _, disk in sizes))
        if (window + 1) % fleet.windows_a_day == 0:
            day = (window + 1) // fleet.windows_a_day
            if day % fleet.every == 0 or day == 2:
                of_day = (day, max(states), max(disks), round(spent / fleet.windows_a_day, 4))
                for figure, value in zip(figures.values(), of_day, strict=True):
                    figure.append(value)
            spent, states, disks = 0.0, [], []
            gc.collect()
    return {"names": len(names), **figures, "verdicts": dict(verdicts)}


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in Fleet.__annotations__.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=getattr(Fleet, name))
    print(json.dumps(measure(Fleet(**vars(parser.parse_args())))))


if __name__ == "__main__":
    main()

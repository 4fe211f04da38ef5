"""Recorded statistics of three machines, one of which has a burst; two partitions with the same."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import orjson

from infra.contract.columnar import to_columns
from jobs.detector.settings import DetectorSettings
from ops.backtest.records import Batch

SETTINGS = DetectorSettings(alarms_per_day=5.0)
SECOND = 10**9
SIZE = 10 * SECOND
FIRST = 170_000_000  # the first window's number
WINDOWS, BURST = 220, 200
FAINT = 180  # a window in which another machine is a little strange


def record(machine: str, window: int) -> bytes:
    rng = np.random.default_rng([window, ord(machine[-1])])
    value = float(10.0 + rng.normal())
    if (machine, window) == ("vm-a", BURST):
        value = 60.0
    if (machine, window) == ("vm-b", FAINT):
        value = 17.0
    metrics = [{"series": "cpu", "name": "cpu", "kind": "metric", "unit": "1", "count": 1, "mean": value}]
    end = (FIRST + window) * SIZE
    span = {"kind": "tumbling", "size_seconds": 10.0, "start_unix_nano": end - SIZE, "end_unix_nano": end}
    return orjson.dumps({"machine": machine, "inventory": {}, "window": span, "statistics": to_columns(metrics)})


def stream() -> list[bytes]:
    found = []
    for window in range(WINDOWS):
        found += [record(machine, window) for machine in ("vm-a", "vm-b", "vm-c")]
        found.append(orjson.dumps({"watermark_unix_nano": (FIRST + window) * SIZE}))
    return found


@dataclass(frozen=True)
class Recorded:
    """A `Records` in memory; processes that are given it hold it too."""

    partitions: dict[int, list[bytes]] = field(default_factory=lambda: {0: stream()})

    def sizes(self) -> dict[int, int]:
        return {partition: len(values) for partition, values in self.partitions.items()}

    def read(self, partition: int) -> Iterator[Batch]:
        values = self.partitions[partition]
        for first in range(0, len(values), 97):
            yield values[first : first + 97]

"""What a running chain takes of disk, memory and documents, and whether that still grows."""

import os
import statistics
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.chaos.processes import session_of

WARM_SECONDS = 600.0  # a process that was started again takes less at first
NOT_COUNTED = ("log", "jars", "truth")  # logs are the orchestrator's to rotate


class Sample(NamedTuple):
    """A look at everything, so many seconds after the start."""

    seconds: float
    disk_bytes: dict[str, int]  # by folder below the home
    memory_bytes: dict[str, int]  # by process and what it has started; shared pages in shares
    age_seconds: dict[str, float]  # of each of these processes
    documents: dict[str, int]  # by kind


def disk_bytes(home: Path) -> dict[str, int]:
    """What each folder of a home takes on disk."""
    return {one.name: _tree(one) for one in home.iterdir() if one.is_dir() and one.name not in NOT_COUNTED}


def _tree(folder: Path) -> int:
    total = 0
    for at, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # it was deleted meanwhile
                total += (Path(at) / name).lstat().st_blocks * 512
    return total


def memory_bytes(leader: int) -> int:
    """Of all processes of a session."""
    total = 0
    for process in session_of(leader):
        with suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total


def age_seconds(leader: int) -> float:
    """Since a process was started; 0 if it is gone."""
    try:
        return time.time() - psutil.Process(leader).create_time()
    except psutil.NoSuchProcess:
        return 0.0


def growth(values: Sequence[float]) -> float:
    """By which share the last third of the second half is above its first third, as medians; below 0 if it is less."""
    half = list(values)[len(values) // 2 :]
    third = max(1, len(half) // 3)
    first, last = statistics.median(half[:third]), statistics.median(half[-third:])
    return (last - first) / first if first else 0.0


def totals(samples: Iterable[Sample], field: str) -> list[int]:
    """The sum of a field of each sample."""
    return [sum(getattr(sample, field).values()) for sample in samples]


def settled(samples: Iterable[Sample]) -> list[int]:
    """The memory of each sample, in which a process that was just started again counts as what it took before."""
    known: dict[str, int] = {}
    totals = []
    for one in samples:
        for name, value in one.memory_bytes.items():
            if name not in known or one.age_seconds.get(name, 0.0) >= WARM_SECONDS:
                known[name] = value
        totals.append(sum(known.values()))
    return totals

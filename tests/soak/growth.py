"""What a running chain takes of disk, memory and documents, and whether that still grows."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

from tests.chaos.processes import session_of

NOT_COUNTED = ("log", "jars", "truth")  # logs are the orchestrator's to rotate
DELTA_LOG = "_delta_log"  # deleted by days of the wall clock, whatever its retention
WARM_SECONDS = 300.0  # after its start a JVM grows for minutes, whatever it does
# Documents go by whole days: what counts is how many there are before. Folders and processes also hold what a round of
# maintenance needs: what they take in three of four samples is not that.
QUANTILES = {"documents": 1.0, "disk_bytes": 0.25, "memory_bytes": 0.25}


class Sample(NamedTuple):
    """A look at everything, so many seconds after the start."""

    seconds: float
    disk_bytes: dict[str, int]  # by folder below the home
    memory_bytes: dict[str, int]  # by process and what it has started, if it is warm; shared pages in shares
    documents: dict[str, int]  # by kind


def disk_bytes(home: Path) -> dict[str, int]:
    """What each folder of a home takes on disk."""
    return {one.name: _tree(one) for one in home.iterdir() if one.is_dir() and one.name not in NOT_COUNTED}


def checkpoint_bytes(home: Path) -> dict[str, int]:
    """What each query's checkpoint takes of the folder `checkpoints`, and all savepoints together: to explain it."""
    folders = [*(home / "checkpoints").glob("live/*"), home / "checkpoints" / ".savepoints"]
    return {one.name: _tree(one) for one in folders}


def _tree(folder: Path) -> int:
    total = 0
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != DELTA_LOG]
        for name in files:
            with suppress(OSError):  # it was deleted meanwhile
                total += (Path(at) / name).lstat().st_blocks * 512
    return total


def is_warm(leader: int) -> bool:
    """Whether a process is there, and has been for WARM_SECONDS."""
    try:
        return time.time() - psutil.Process(leader).create_time() >= WARM_SECONDS
    except psutil.Error:
        return False


def memory_bytes(leader: int) -> int:
    """Of all processes of a session."""
    total = 0
    for process in session_of(leader):
        with suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total


def growth(samples: Sequence[Sample], field: str, period: float) -> float | None:
    """By which share a field of the last samples is above that of those a period before; None if it ran for less.

    What is killed comes again after a period: so the processes of both are of the same ages.
    """
    end, width = samples[-1].seconds, period / 3
    first = [one for one in samples if end - period - width < one.seconds <= end - period]
    last = [one for one in samples if one.seconds > end - width]
    before, after = _usual(first, field), _usual(last, field)
    return (after - before) / before if before else None


def _usual(samples: Sequence[Sample], field: str) -> float:
    each: dict[str, list[int]] = {}
    for one in samples:
        for name, value in getattr(one, field).items():
            each.setdefault(name, []).append(value)
    return float(sum(np.quantile(values, QUANTILES[field]) for values in each.values()))

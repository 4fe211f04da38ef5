"""The Numenta Anomaly Benchmark: its data, and its scoring as the whitepaper has it (Lavin and Ahmad 2015).

A detector gives each row a score; rows at or above a threshold are detections. In a labelled window only the first
one counts, by how early it is; outside each one costs, less where a window has just ended. 100 is a detector that
hits the beginning of every window and nothing else, 0 one that detects nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray

from infra.errors import UserError
from jobs.detector.model.arrays import Floats

PROBATION = 0.15  # of the rows, at most of 5000: not scored
PROBATION_ROWS = 5000
STEEPNESS = 5.0
FAR_BEHIND = 3.0  # window widths behind a window: a false detection costs all


@dataclass(frozen=True)
class Profile:
    """What a missed window and a false detection cost; a window that is hit at once gives 1."""

    miss: float
    false: float


PROFILES = {"standard": Profile(1.0, 0.11), "low_fp": Profile(1.0, 0.22), "low_fn": Profile(2.0, 0.11)}


@dataclass(frozen=True)
class DataSet:
    """One file: row times in s since the epoch, values, and the rows (first, last) of each labelled window."""

    name: str
    times: NDArray[np.int64]
    values: Floats
    windows: Sequence[tuple[int, int]]

    @property
    def probation(self) -> int:
        return int(PROBATION * min(len(self.times), PROBATION_ROWS))


def load(folder: Path) -> list[DataSet]:
    """All files below `folder`/data that `folder`/labels/combined_windows.json names.

    Raises:
        UserError: the folder is not of that form.
    """
    labels = folder / "labels" / "combined_windows.json"
    if not labels.is_file():
        raise UserError(f"--nab {folder}: {labels} is missing; give a folder with data/ and labels/ as NAB has them")
    return [_read(folder / "data" / name, name, windows) for name, windows in orjson.loads(labels.read_bytes()).items()]


def _read(path: Path, name: str, windows: list[list[str]]) -> DataSet:
    rows = pd.read_csv(path)
    times = _seconds(rows["timestamp"])
    ends = [(int(first), int(last)) for first, last in np.searchsorted(times, _seconds(windows)).reshape(-1, 2)]
    return DataSet(name, times, rows["value"].to_numpy(float), ends)


def _seconds(stamps: pd.Series | list[list[str]]) -> NDArray[np.int64]:
    flat = pd.to_datetime(np.ravel(np.array(stamps, dtype=str)), format="ISO8601")
    return pd.DatetimeIndex(flat).as_unit("s").asi8


def score(
    data: Sequence[DataSet], scores: Mapping[str, Floats], profile: Profile, threshold: float | None = None
) -> float:
    """The normalised score at one threshold for all files; without one at the best, as NAB's own figures are."""
    total = 0.0
    thresholds, gains = [], []
    for item in data:
        start, level, gain = _gains(item, scores[item.name], profile)
        total += start
        thresholds.append(level)
        gains.append(gain)
    level, gain = np.concatenate(thresholds), np.concatenate(gains)
    misses = sum(_scorable(item) for item in data)
    raw = _at_best(total, level, gain) if threshold is None else total + float(gain[level >= threshold].sum())
    worst, best = -profile.miss * misses, float(misses)
    return 100.0 * (raw - worst) / (best - worst)


def _scorable(item: DataSet) -> int:
    return sum(last >= item.probation for _, last in item.windows)


def _at_best(total: float, level: Floats, gain: Floats) -> float:
    order = np.argsort(-level, kind="stable")
    sums = total + np.cumsum(gain[order])
    last_of_level = np.append(np.diff(level[order]) != 0, True)
    return max(total, float(sums[last_of_level].max()))


def _gains(item: DataSet, scores: Floats, profile: Profile) -> tuple[float, Floats, Floats]:
    """The score with no detections, and what each detection adds as the threshold falls to its level."""
    worth, window = _worth(item, profile)
    begin = item.probation
    outside = np.flatnonzero(window[begin:] < 0) + begin
    levels, gains = [scores[outside]], [worth[outside]]
    start = 0.0
    for number in range(len(item.windows)):
        rows = np.flatnonzero(window[begin:] == number) + begin
        if not len(rows):
            continue
        start -= profile.miss
        order = rows[np.argsort(-scores[rows], kind="stable")]
        best = np.maximum.accumulate(np.append(-profile.miss, worth[order]))
        levels.append(scores[order])
        gains.append(np.diff(best))
    return start, np.concatenate(levels), np.concatenate(gains)


def _worth(item: DataSet, profile: Profile) -> tuple[Floats, NDArray[np.int64]]:
    """What a detection at each row is worth, and the row's window (-1 outside)."""
    rows = np.arange(len(item.times))
    position, window = np.full(len(rows), FAR_BEHIND), np.full(len(rows), -1)
    for number, (first, last) in enumerate(item.windows):
        width = last - first + 1
        after = rows > last
        position[after] = (rows[after] - last) / (width - 1.0)
        inside = (rows >= first) & (rows <= last)
        position[inside] = -(last - rows[inside] + 1.0) / width
        window[inside] = number
    sigmoid = np.where(position >= FAR_BEHIND, -1.0, 2.0 / (1.0 + np.exp(STEEPNESS * np.minimum(position, 3.0))) - 1.0)
    earliest = 2.0 / (1.0 + np.exp(-STEEPNESS)) - 1.0
    return np.where(window >= 0, sigmoid / earliest, profile.false * sigmoid), window

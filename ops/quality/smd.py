"""The Server Machine Dataset (Su and others 2019): 38 metrics a machine, one value a minute, labelled incidents.

Other folders of its form are read likewise, whatever their interval: ASD (Li and others 2021) has five minutes.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pandas as pd

from infra.contract.columnar import to_columns
from infra.errors import UserError
from jobs.detector.model.arrays import Bools, Floats
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard
from jobs.detector.trackers.machines import Seen

START = 1_680_000_000  # s since the epoch; the data have no clock
ALARMS_PER_DAY = 5.0  # of a machine

Detector = Callable[[Floats, int], Floats]  # (windows, metrics), the first to score -> a score a window, in one pass


@dataclass(frozen=True)
class Machine:
    """What came before the test, the test, and whether each window of the test belongs to an incident."""

    name: str
    train: Floats
    test: Floats
    labels: Bools


def load(folder: Path) -> list[Machine]:
    """All machines of a folder with NAME.train.csv.gz, NAME.test.csv.gz and NAME.test_label.txt.

    Raises:
        UserError: there is none.
    """
    names = sorted(path.name.removesuffix(".test_label.txt") for path in folder.glob("*.test_label.txt"))
    if not names:
        raise UserError(f"--smd {folder}: no *.test_label.txt in it; give a folder with the files of SMD")
    return [_read(folder, name) for name in names]


def _read(folder: Path, name: str) -> Machine:
    train, test = (
        pd.read_csv(folder / f"{name}.{part}.csv.gz", header=None).to_numpy(float) for part in ("train", "test")
    )
    labels = np.loadtxt(folder / f"{name}.test_label.txt").astype(bool)
    return Machine(name, train, test, labels)


class Ours(NamedTuple):
    """By machine, of each window of the test: the machine's score, whether a novelty of it starts, and by what the
    novelty ranks the machine's series, shape (windows, series)."""

    scores: dict[str, Floats]
    alerts: dict[str, Bools]
    ranks: dict[str, Floats]


def ours(machines: Sequence[Machine], interval: float = 60.0) -> Ours:
    """The detector's own fold over what came before and the test, in one pass; all machines are one shard.

    A window lasts `interval` s. The score is what lasts of the machine's strangeness.
    """
    shard = Shard(DetectorSettings(window_seconds=interval, alarms_per_day=ALARMS_PER_DAY * len(machines)))
    values = {m.name: np.concatenate([m.train, m.test]) for m in machines}
    windows = max(len(rows) for rows in values.values())
    scores, alerts = np.zeros((len(machines), windows)), np.zeros((len(machines), windows), bool)
    ranks = {name: np.zeros(rows.shape) for name, rows in values.items()}
    place = {m.name: at for at, m in enumerate(machines)}
    for window in range(windows):
        started = [one for one in shard.feed(list(_records(values, window, interval))) if one["phase"] == "start"]
        alerts[[place[one["machine"]] for one in started], window] = True
        seen = shard.detector.machine_tracker.newest
        if seen is not None:
            joint = seen.joint
            scores[[place[shard.detector.machines.names[at]] for at in joint.machines], window] = joint.lasting
            as_one = {one["machine"] for one in started if one["kind"] == "machine"}
            _spread(ranks, values, window, as_one, seen)
    test = {m.name: slice(len(m.train), len(m.train) + len(m.test)) for m in machines}
    return Ours(
        {name: scores[place[name], part] for name, part in test.items()},
        {name: alerts[place[name], part] for name, part in test.items()},
        {name: ranks[name][part] for name, part in test.items()},
    )


def _spread(
    ranks: Mapping[str, Floats], values: Mapping[str, Floats], window: int, as_one: Container[str], seen: Seen
) -> None:
    """Write to each machine by what a novelty of it ranks its series: of a machine as a whole, or of one of them.

    Series come in the order in which they were first seen, as they were fed.
    """
    begin = 0
    for name, rows in values.items():
        if window < len(rows):
            known = np.isfinite(rows[window])
            at = np.arange(begin, begin := begin + int(known.sum()))
            ranks[name][window, known] = seen.strangeness.alone(at) if name in as_one else seen.judgement.score[at]


def _records(values: Mapping[str, Floats], window: int, interval: float) -> Iterator[bytes]:
    """What the statistics job would write of a window, and its watermark; nothing of a machine whose test is over."""
    size = round(interval * 1e9)
    end = (START * 10**9 // size + window) * size
    span = {"kind": "tumbling", "size_seconds": interval, "start_unix_nano": end - size, "end_unix_nano": end}
    for name, rows in values.items():
        if window < len(rows):
            metrics = [_metric(number, value) for number, value in enumerate(rows[window].tolist()) if isfinite(value)]
            yield orjson.dumps({"machine": name, "window": span, "statistics": to_columns(metrics)})
    yield orjson.dumps({"watermark_unix_nano": end})


def _metric(number: int, value: float) -> dict[str, Any]:
    return {"kind": "metric", "series": f"metric-{number}", "count": 1, "mean": value}


def peer(machines: Sequence[Machine], detector: Detector) -> dict[str, Floats]:
    """A peer's score of each window of each test, in one pass over what came before and the test."""
    return {m.name: detector(np.concatenate([m.train, m.test]), len(m.train)) for m in machines}

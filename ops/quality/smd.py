"""The Server Machine Dataset (Su and others 2019): 38 metrics a machine, one value a minute, labelled incidents."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray

from infra.contract.columnar import to_columns
from infra.errors import UserError
from jobs.detector.model.arrays import Floats
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard

MINUTE = 60.0
MINUTES_PER_DAY = 1440
START = 28_000_000  # minutes since the epoch; the data have no clock
ALARM_GAP = 10  # minutes between detections that belong to one alarm
MOST_HITS = 0.2  # of all minutes; more are hardly alarms, though many in a row are few
BUDGET = 5.0  # false alarms a machine-day at which detectors are compared

Bools = NDArray[np.bool_]
Detector = Callable[[Floats, int], Floats]  # (minutes, metrics), the first to score -> a score a minute, in one pass


@dataclass(frozen=True)
class Machine:
    """What came before the test, the test, and whether each minute of the test belongs to an incident."""

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
    """By machine, a minute of the test each: the machine's score, and whether a novelty of it starts."""

    scores: dict[str, Floats]
    alerts: dict[str, Bools]


def ours(machines: Sequence[Machine]) -> Ours:
    """The detector's own fold over what came before and the test, in one pass; all machines are one shard."""
    shard = Shard(DetectorSettings(window_seconds=MINUTE, alarms_per_day=BUDGET * len(machines)))
    values = {m.name: np.concatenate([m.train, m.test]) for m in machines}
    minutes = max(len(rows) for rows in values.values())
    scores, alerts = np.zeros((len(machines), minutes)), np.zeros((len(machines), minutes), bool)
    place = {m.name: at for at, m in enumerate(machines)}
    for minute in range(minutes):
        for novelty in shard.feed(list(_records(values, minute))):
            alerts[place[novelty["machine"]], minute] |= novelty["phase"] == "start"
        joint = shard.detector.machine_tracker.joint
        if joint is not None:
            scores[[place[shard.detector.machines.names[at]] for at in joint.machines], minute] = joint.lasting
    test = {m.name: slice(len(m.train), len(m.train) + len(m.test)) for m in machines}
    return Ours(
        {name: scores[place[name], part] for name, part in test.items()},
        {name: alerts[place[name], part] for name, part in test.items()},
    )


def _records(values: Mapping[str, Floats], minute: int) -> Iterator[bytes]:
    """What the statistics job would write of a minute, and its watermark; nothing of a machine whose test is over."""
    end = (START + minute) * 60 * 10**9
    window = {"kind": "tumbling", "size_seconds": MINUTE, "start_unix_nano": end - 60 * 10**9, "end_unix_nano": end}
    for name, rows in values.items():
        if minute < len(rows):
            metrics = [_metric(number, value) for number, value in enumerate(rows[minute].tolist()) if isfinite(value)]
            yield orjson.dumps({"machine": name, "window": window, "statistics": to_columns(metrics)})
    yield orjson.dumps({"watermark_unix_nano": end})


def _metric(number: int, value: float) -> dict[str, Any]:
    return {"kind": "metric", "series": f"metric-{number}", "count": 1, "mean": value}


def peer(machines: Sequence[Machine], detector: Detector) -> dict[str, Floats]:
    """A peer's score a minute of each test, in one pass over what came before and the test."""
    return {m.name: detector(np.concatenate([m.train, m.test]), len(m.train)) for m in machines}


def areas(machines: Sequence[Machine], scores: Mapping[str, Floats]) -> dict[str, float]:
    """Area under precision and recall without point adjustment, mean of the machines."""
    return {"auc_pr": float(np.mean([average_precision(m.labels, scores[m.name]) for m in machines]))}


def at_budget(machines: Sequence[Machine], scores: Mapping[str, Floats]) -> dict[str, float]:
    """Events found and false alarms at the lowest threshold with at most BUDGET false alarms a machine-day."""
    level = _level_of_budget(machines, scores)
    return found(machines, {name: score >= level for name, score in scores.items()})


def found(machines: Sequence[Machine], hits: Mapping[str, Bools]) -> dict[str, float]:
    """Incidents with a detection in them, and false alarms a machine-day."""
    spans = {m.name: _spans(m.labels) for m in machines}
    seen = [bool(hits[name][first:last].any()) for name, events in spans.items() for first, last in events]
    false = sum(len(_alarms(hits[m.name] & ~m.labels)) for m in machines)
    return {
        "events": len(seen),
        "events_found": sum(seen),
        "false_alarms_per_day": false / (sum(len(m.labels) for m in machines) / MINUTES_PER_DAY),
    }


def _level_of_budget(machines: Sequence[Machine], scores: Mapping[str, Floats]) -> float:
    levels = np.unique(np.quantile(np.concatenate([scores[m.name] for m in machines]), np.linspace(0.5, 1.0, 400)))
    for level in levels:
        hits = {m.name: scores[m.name] >= level for m in machines}
        false = found(machines, hits)["false_alarms_per_day"]
        if false <= BUDGET and np.concatenate(list(hits.values())).mean() < MOST_HITS:
            return float(level)
    return float(levels[-1])


def average_precision(labels: Bools, scores: Floats) -> float:
    """Area under the precision-recall curve as its step-wise sum; equal scores are one step."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(labels[order])
    last = np.append(np.diff(scores[order]) != 0, True)
    precision = (hits / np.arange(1, len(hits) + 1))[last]
    recall = hits[last] / max(int(labels.sum()), 1)
    return float(np.sum(np.diff(np.append(0.0, recall)) * precision))


def _spans(flags: Bools) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]


def _alarms(flags: Bools) -> list[int]:
    """The beginnings of alarms: detections that follow each other closely are one."""
    at = np.flatnonzero(flags)
    return [int(row) for row in at[np.append(True, np.diff(at) > ALARM_GAP)]] if len(at) else []

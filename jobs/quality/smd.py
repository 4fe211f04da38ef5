"""The Server Machine Dataset (Su and others 2019): 38 metrics a machine, one value a minute, labelled incidents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from infra.errors import UserError
from jobs.detector.model_tails import Floats
from jobs.detector.settings import DetectorSettings
from jobs.quality import model_run

MINUTE = 60.0
MINUTES_PER_DAY = 1440
START = 28_000_000  # minutes since the epoch; the data have no clock
ALARM_GAP = 10  # minutes between detections that belong to one alarm

AT_A_THRESHOLD = ("events_found", "false_alarms_per_day")  # the figures that depend on one

Bools = NDArray[np.bool_]
Detector = Callable[[Floats], Floats]  # (minutes, metrics) -> a score a minute, in one pass


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


def ours(machines: Sequence[Machine]) -> dict[str, Floats]:
    """Each machine's score a minute of the test: its series judged by the model, joined by `machine_score`.

    The series of all machines take each step at once, which changes nothing for any of them.
    """
    values = _side_by_side([np.concatenate([m.train, m.test]) for m in machines])
    windows = START + np.arange(len(values)).reshape(-1, 1)
    series = machines[0].test.shape[1]
    settings = DetectorSettings(window_seconds=MINUTE)
    scores = model_run.run(values, windows, settings, threshold(series)).every
    parts = np.split(scores, len(machines), axis=1)
    return {
        m.name: machine_score(part[len(m.train) : len(m.train) + len(m.test)])
        for m, part in zip(machines, parts, strict=True)
    }


def _side_by_side(parts: Sequence[Floats]) -> Floats:
    longest = max(len(part) for part in parts)
    return np.hstack([np.pad(part, ((0, longest - len(part)), (0, 0)), constant_values=np.nan) for part in parts])


def threshold(series: int) -> float:
    """The score that spends the default budget of alarms, as in production, for one machine."""
    return DetectorSettings(window_seconds=MINUTE).threshold(series)


def machine_score(scores: Floats) -> Floats:
    """-ln of the harmonic mean of a window's probabilities over series (Wilson 2019): right under any dependence.

    So the strongest series leads, and correlated ones count once.
    """
    strongest = scores.max(axis=1)
    total = np.exp(scores - strongest[:, None]).mean(axis=1)
    return np.asarray(np.maximum(strongest + np.log(total), 0.0))


def peer(machines: Sequence[Machine], detector: Detector) -> dict[str, Floats]:
    """A peer's score a minute of each test, in one pass over what came before and the test."""
    return {m.name: detector(np.concatenate([m.train, m.test]))[len(m.train) :] for m in machines}


def figures(machines: Sequence[Machine], scores: Mapping[str, Floats], limit: float | None) -> dict[str, float]:
    """Area under precision and recall without point adjustment (mean of machines), and events at a threshold.

    Without a `limit` the threshold is the one that gives this detector BUDGET false alarms per machine-day.
    """
    areas = [average_precision(m.labels, scores[m.name]) for m in machines]
    level = limit if limit is not None else _level_of_budget(machines, scores)
    found, events, false, days = 0, 0, 0, 0.0
    for m in machines:
        hits = scores[m.name] >= level
        spans = _spans(m.labels)
        events += len(spans)
        found += sum(bool(hits[first:last].any()) for first, last in spans)
        false += len(_alarms(hits & ~m.labels))
        days += len(m.labels) / MINUTES_PER_DAY
    return {
        "auc_pr": float(np.mean(areas)),
        "events": events,
        "events_found": found,
        "false_alarms_per_day": false / days,
    }


BUDGET = 5.0  # false alarms a machine-day at which detectors without a threshold of their own are compared


def _level_of_budget(machines: Sequence[Machine], scores: Mapping[str, Floats]) -> float:
    pooled = np.concatenate([scores[m.name] for m in machines])
    days = sum(len(m.labels) for m in machines) / MINUTES_PER_DAY
    levels = np.unique(np.quantile(pooled, np.linspace(0.5, 1.0, 400)))
    for level in levels:
        false = sum(len(_alarms((scores[m.name] >= level) & ~m.labels)) for m in machines)
        if false / days <= BUDGET and (np.concatenate([scores[m.name] for m in machines]) >= level).mean() < 0.2:
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

"""Scores of machines and labelled incidents: areas under curves, events found, false alarms."""

from collections.abc import Mapping, Sequence

import numpy as np

from jobs.detector.model import sustained
from jobs.detector.model.arrays import Bools, Floats
from ops.quality.smd import Machine
from ops.quality.vus import events_of, period_of, vus_pr

DAY = 86400.0
ALARM_GAP = 10  # windows between detections that belong to one alarm
MOST_HITS = 0.2  # of all windows; more are hardly alarms, though many in a row are few
BUDGET = 5.0  # false alarms a machine-day at which detectors are compared

Scores = Mapping[str, Floats]  # by machine, one for each window of its test


def areas(machines: Sequence[Machine], scores: Scores) -> dict[str, dict[str, float]]:
    """By machine: the area under precision and recall without point adjustment, and VUS-PR."""
    return {
        one.name: {
            "auc_pr": average_precision(one.labels, scores[one.name]),
            "vus_pr": vus_pr(one.labels, scores[one.name], period_of(one.test[:, 0])),
        }
        for one in machines
    }


def smoothed(scores: Scores) -> dict[str, Floats]:
    """The mean of the last windows, as the machine's own score has it."""
    return {name: _running_mean(of_one) for name, of_one in scores.items()}


def _running_mean(scores: Floats) -> Floats:
    mean, means = np.zeros(1), np.empty_like(scores)
    for at, score in enumerate(scores):
        mean = sustained.running_mean(mean, np.array([score]))
        means[at] = mean[0]
    return means


def at_budget(machines: Sequence[Machine], scores: Scores, interval: float) -> dict[str, float]:
    """Events found and false alarms at the lowest threshold with at most BUDGET false alarms a machine-day."""
    level = _level_of_budget(machines, scores, interval)
    return found(machines, {name: score >= level for name, score in scores.items()}, interval)


def found(machines: Sequence[Machine], hits: Mapping[str, Bools], interval: float) -> dict[str, float]:
    """Incidents with a detection in them, and false alarms a machine-day; a window lasts `interval` s."""
    seen = [bool(hits[m.name][first:end].any()) for m in machines for first, end in events_of(m.labels)]
    false = sum(_alarms(hits[m.name] & ~m.labels) for m in machines)
    days = sum(len(m.labels) for m in machines) * interval / DAY
    return {"events": len(seen), "events_found": sum(seen), "false_alarms_per_day": false / days}


def _level_of_budget(machines: Sequence[Machine], scores: Scores, interval: float) -> float:
    levels = np.unique(np.quantile(np.concatenate([scores[m.name] for m in machines]), np.linspace(0.5, 1.0, 400)))
    for level in levels:
        hits = {m.name: scores[m.name] >= level for m in machines}
        false = found(machines, hits, interval)["false_alarms_per_day"]
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


def _alarms(flags: Bools) -> int:
    """How many alarms these detections are: those that follow each other closely are one."""
    at = np.flatnonzero(flags)
    return int(np.sum(np.diff(at) > ALARM_GAP)) + 1 if len(at) else 0

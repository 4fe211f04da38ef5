"""VUS-PR: the volume under the precision-recall surface (Paparrizos and others 2022), as TSB-AD scores detectors by it.

A labelled event is widened by a buffer of up to `window` rows, whose labels fall from it as the square root of the
distance; a detection in a buffer counts as much. The area under precision and recall is averaged over all buffers from
none to the whole window. Recall counts only as far as events are found at all, so that many hits in one event don't
make up for others that are missed.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jobs.detector.model.arrays import Bools, Floats, Ints

THRESHOLDS = 250
SHORTEST, LONGEST, UNKNOWN = 3, 300, 125  # periods, in rows
FIRST_LAG, LAGS, ROWS = 3, 400, 20_000


class Event(NamedTuple):
    """The rows of a labelled event: from `first` to before `end`."""

    first: int
    end: int


def vus_pr(labels: Bools, scores: Floats, window: int) -> float:
    """The mean area under precision and recall of all buffers up to `window` rows; 0 without an event."""
    events = events_of(labels)
    if not events:
        return 0.0
    rank = _ranks(scores)
    return float(np.mean([_area(labels, events, rank, buffer) for buffer in range(window + 1)]))


def period_of(values: Floats) -> int:
    """The window that TSB-AD takes: the lag with the highest peak of the autocorrelation of a series, in rows."""
    x = values[:ROWS] - values[:ROWS].mean()
    spectrum = np.fft.rfft(x, 2 * len(x))
    correlation = np.fft.irfft(spectrum * spectrum.conj())[FIRST_LAG : LAGS + 1]
    before, here, after = correlation[:-2], correlation[1:-1], correlation[2:]
    peaks = np.flatnonzero((here > before) & (here > after)) + 1
    if not len(peaks):
        return UNKNOWN
    highest = int(peaks[correlation[peaks].argmax()])
    return highest + FIRST_LAG if SHORTEST <= highest <= LONGEST else UNKNOWN


def events_of(labels: Bools) -> list[Event]:
    """Runs of labelled rows."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], labels.astype(np.int8), [0]])))
    return [Event(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def _ranks(scores: Floats) -> Ints:
    """The number of the first threshold at which each row is a detection; thresholds are scores, evenly by rank."""
    falling = -np.sort(-scores)
    thresholds = falling[np.linspace(0, len(scores) - 1, THRESHOLDS).astype(int)]
    return np.searchsorted(-thresholds, -scores)


def _area(labels: Bools, events: list[Event], rank: Ints, buffer: int) -> float:
    soft = _widened(labels, events, buffer)
    around = (soft > 0) & ~labels
    hits = _detections(rank[labels]) + _detections(rank[around], soft[around])
    exists = np.zeros(THRESHOLDS)
    joined = list(_joined(events, buffer // 2, len(labels)))
    for first, end in joined:
        exists[rank[first:end].min() :] += 1.0 / len(joined)
    positives = labels.sum() + _detections(rank[around], soft[around]) / 2
    recall = np.minimum(hits / positives, 1.0) * exists
    return float(np.sum(np.diff(recall, prepend=0.0) * hits / _detections(rank)))


def _detections(rank: Ints, weights: Floats | None = None) -> Floats:
    """How many rows are detections at each threshold, by weight."""
    return np.cumsum(np.bincount(rank, weights, minlength=THRESHOLDS)).astype(np.float64)


def _widened(labels: Bools, events: list[Event], buffer: int) -> Floats:
    """The labels from 0 to 1: events with their buffers."""
    soft = labels.astype(np.float64)
    for first, end in events:
        after = np.arange(end, min(end + buffer // 2, len(labels)))
        before = np.arange(max(first - buffer // 2, 0), first)
        soft[after] += np.sqrt(1.0 - (after - end + 1) / max(buffer, 1))
        soft[before] += np.sqrt(1.0 - (first - before) / max(buffer, 1))
    return np.minimum(soft, 1.0)


def _joined(events: list[Event], half: int, rows: int) -> Iterator[Event]:
    """Events with their buffers; those whose buffers meet are one."""
    first = max(events[0].first - half, 0)
    for event, following in pairwise(events):
        if event.end - 1 + half < following.first - half:
            yield Event(first, event.end + half)
            first = following.first - half
    yield Event(first, min(events[-1].end + half, rows))

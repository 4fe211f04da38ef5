"""Recorded series through the detector's model, in one pass and without a look at labels, as production does it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jobs.detector.model.arrays import Bools, Floats, Ints
from jobs.detector.model.cooldown import Cooldown
from jobs.detector.model.protocol import Judgement
from jobs.detector.model.scales import THRESHOLD_OFFSETS, Scales
from jobs.detector.settings import DetectorSettings

LEAST = 6.0  # no threshold of interest is lower


class Surprise(NamedTuple):
    """What one row of the data may alert: of which scale and series, scores on the scale of single windows."""

    at: int
    scale: int
    series: Ints
    window: Ints
    score: Floats
    news: Floats


class Scores(NamedTuple):
    """By row and series, shape (windows, series): the scores of single windows, and the alerts of any scale."""

    windows: Floats
    alerts: Bools
    surprises: list[Surprise]

    def alerts_at(self, threshold: float) -> Bools:
        """The alerts at another threshold; not below LEAST nor the one of the run."""
        alerts = np.zeros_like(self.alerts)
        cooldown = Cooldown.of(alerts.shape[1])
        for at, scale, series, window, score, news in self.surprises:
            alerts[at, series] |= cooldown.suppress(scale, series, score, news >= threshold, window)
        return alerts


def run(values: Floats, windows: Ints, settings: DetectorSettings, threshold: float) -> Scores:
    """Judge `values` (windows, series; NaN is a gap) at these window numbers, of the same shape or (windows, 1)."""
    model = Scales(settings)
    model.add(np.zeros(values.shape[1], bool), np.zeros(values.shape[1], np.int64), 0)
    numbers = np.broadcast_to(windows, values.shape)
    scores = Scores(np.zeros(values.shape), np.zeros(values.shape, bool), [])
    for at in range(len(values)):
        rows = np.flatnonzero(np.isfinite(values[at]))
        judgements = model.step(numbers[at, rows], rows, values[at, rows], np.ones(len(rows)), threshold)
        scores.windows[at, rows] = judgements[0].score
        for scale, judgement in enumerate(judgements):
            scores.alerts[at, judgement.rows] |= judgement.alert
            scores.surprises.extend(_surprises(at, scale, judgement, numbers[at]))
    return scores


def _surprises(at: int, scale: int, judgement: Judgement, windows: Ints) -> Iterator[Surprise]:
    news = judgement.news + THRESHOLD_OFFSETS[scale]
    some = (news >= LEAST) & (judgement.score > 0)
    if some.any():
        series = judgement.rows[some]
        yield Surprise(at, scale, series, windows[series], judgement.score[some] + THRESHOLD_OFFSETS[scale], news[some])

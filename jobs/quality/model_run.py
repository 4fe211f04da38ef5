"""Recorded series through the detector's model, in one pass and without a look at labels, as production does it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jobs.detector.model import Judgement, Model, Phase, Turn
from jobs.detector.model_tails import Floats
from jobs.detector.settings import DetectorSettings

Ints = NDArray[np.int64]


class Scores(NamedTuple):
    """By window and series: the score of what is told, 0 where nothing new is, and the score of every window."""

    told: Floats
    every: Floats
    started: NDArray[np.bool_]


def run(values: Floats, windows: Ints, settings: DetectorSettings, threshold: float) -> Scores:
    """Judge `values` (windows, series; NaN is a gap) at these window numbers, of the same shape or (windows, 1)."""
    model = Model(settings)
    model.add(np.zeros(values.shape[1], bool), np.zeros(values.shape[1], np.int64), 0)
    told, every, started = np.zeros(values.shape), np.zeros(values.shape), np.zeros(values.shape, bool)
    for at, (rows, resting, judgement) in enumerate(_steps(model, values, windows, threshold)):
        every[at, rows] = judgement.score
        told[at, rows] = np.where(resting, 0.0, judgement.score)
        started[at, rows] = judgement.turn == Turn.STARTED
    return Scores(told, every, started)


def _steps(
    model: Model, values: Floats, windows: Ints, threshold: float
) -> Iterator[tuple[Ints, NDArray[np.bool_], Judgement]]:
    numbers = np.broadcast_to(windows, values.shape)
    for at in range(len(values)):
        rows = np.flatnonzero(np.isfinite(values[at]))
        resting = model.columns["phase"][rows] == Phase.EPISODE
        yield rows, resting, model.step(numbers[at, rows], rows, values[at, rows], np.ones(len(rows)), threshold)

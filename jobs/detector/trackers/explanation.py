"""Which series of a machine were surprising at once, and by how much: what a novelty shows of a judgement."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jobs.detector import novelties
from jobs.detector.model.episodes import EPISODE_SCORE
from jobs.detector.model.protocol import Judgement
from jobs.detector.population.series import KnownSeries

CONTRIBUTORS = 5  # series that a novelty names


def evidence(series: KnownSeries, judgement: Judgement, at: int) -> dict[str, Any]:
    """What was seen of one series, at this place in the judgement, and what was expected."""
    definition = series.describe(int(judgement.rows[at]))
    return {
        "series": definition.series,
        "unit": definition.unit,
        "score": float(judgement.score[at]),
        "observed": float(judgement.observed[at]),
        "expected": float(judgement.expected[at]),
        "expected_low": float(judgement.low[at]),
        "expected_high": float(judgement.high[at]),
    }


def contributors(series: KnownSeries, judgement: Judgement, machine: int) -> list[int]:
    """The series of a machine that are surprised at once, alerted or not: places in the judgement, strongest first."""
    of_machine = series.machine[judgement.rows] == machine
    at = np.flatnonzero(of_machine & (judgement.alert | (judgement.score >= EPISODE_SCORE)))
    strongest_first: list[int] = at[np.lexsort((judgement.rows[at], -judgement.score[at]))].tolist()
    return strongest_first


def explained(
    series: KnownSeries, judgement: Judgement, places: Iterable[int], weights: Sequence[float] | None = None
) -> dict[str, Any]:
    """The fields of a novelty that name these contributors, with their shares of these weights, or of their scores."""
    return novelties.explained([evidence(series, judgement, at) for at in places], CONTRIBUTORS, weights)

"""How far the mean of rounded values may move without news: what the models of blocks don't count as a deviation."""

import numpy as np

from jobs.detector.model.arrays import Floats, Ints
from jobs.detector.model.conjugate import of_rows
from jobs.detector.model.series_state import SeriesState
from jobs.detector.model.weighing import RARE_CHANGES


def unresolved(state: SeriesState, rows: Ints) -> Floats:
    """How far a usual mean is from the middle between two neighbouring values: it may come there without news.

    A mean of values rounded to multiples of q is off by up to q / 2, however many they are, unless noise dithers them
    (Widrow and Kollar 2008, Quantization Noise). Where noise makes a share p of them n + 1 quanta, the others n, their
    variance is p (1 - p) q^2, so that sqrt(q^2 / 4 - variance) is the way from the mean to the middle; noise that
    reaches further leaves nothing. The variance is half that of the steps, in which a slow drift does not show (von
    Neumann 1941).

    q is the least change that was seen, once there were some. Values of about none or one q are no rounded ones but
    events, whose rate is news; so are counts of log lines.
    """
    q, noise = state.quantum[rows], 0.5 * of_rows(state.jumps, rows).variance()
    is_rounded = (state.is_count[rows] == 0) & (state.changes[rows] >= RARE_CHANGES)
    is_rounded &= np.abs(of_rows(state.normal, rows).mu) >= q
    return np.where(is_rounded, np.sqrt(np.maximum(0.25 * np.square(q) - noise, 0.0)), 0.0)

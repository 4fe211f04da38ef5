"""Two published detectors, written anew: our scoring of them must agree with NAB's published figures."""

from math import sqrt

import numpy as np
from scipy.special import erfc
from scipy.stats import chi2

from jobs.detector.model.arrays import Floats


def windowed_gaussian(values: Floats, window: int = 6400, step: int = 100) -> Floats:
    """1 minus the tail probability under a normal distribution of the last `window` values, moved on in steps."""
    scores = np.zeros(len(values))
    mean, deviation = 0.0, 1.0
    for count, value in enumerate(values, start=1):
        if count > 1:
            scores[count - 1] = 1.0 - 0.5 * erfc(abs(value - mean) / deviation / sqrt(2.0))
        if count <= window or (count - window) % step == 0:
            mean, deviation = _moments(values, max(0, count - window), count)
    return scores


def _moments(values: Floats, first: int, last: int) -> tuple[float, float]:
    part = values[first:last]
    return float(part.mean()), float(part.std()) or 1e-6


def relative_entropy(values: Floats, window: int = 52, bins: int = 5) -> Floats:
    """1 where the histogram of the last `window` values is unlike any before (Wang and others 2011, figure 1)."""
    low, high = values.min(), values.max()
    scores = np.zeros(len(values))
    if low == high:
        return scores
    levels = np.minimum(np.ceil((values - low) / ((high - low) / bins)), bins - 1).astype(int)
    limit = chi2.isf(0.01, bins - 1)
    known: list[Floats] = []
    seen: list[int] = []
    for end in range(window, len(values) + 1):
        histogram = np.bincount(levels[end - window : end], minlength=bins) / window
        entropy = [2 * window * _divergence(histogram, other) for other in known]
        nearest = int(np.argmin(entropy)) if entropy else -1
        if nearest >= 0 and entropy[nearest] < limit:
            seen[nearest] += 1
            continue
        scores[end - 1] = float(bool(known))
        known.append(histogram)
        seen.append(1)
    return scores


def _divergence(p: Floats, q: Floats) -> float:
    """Kullback and Leibler's."""
    some = p > 0
    with np.errstate(divide="ignore"):
        return float(np.sum(p[some] * np.log(p[some] / q[some])))

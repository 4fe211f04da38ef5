"""Posterior-predictive tails in log space: -ln p without under- or overflow, for whole arrays at once."""

import math

import numpy as np
from scipy.special import betainc, gammaincc, gammaln, hyp2f1

from jobs.detector.model.arrays import Floats
from jobs.detector.model.elementary import ln, ln1p

# Below this a tail is summed in log space; above it SciPy's is exact to rounding.
_TINY = 1e-280
MAX_SCORE = 700.0
LN2 = math.log(2.0)


def student_t_score(deviation: Floats, scale: Floats, freedom: Floats) -> Floats:
    """-ln of the two-sided tail P(|T| > |deviation| / scale), T a Student t; all arguments of one shape.

    P = I_x(v/2, 1/2) with x = v / (v + t²) (Abramowitz and Stegun 26.7.1).
    """
    squared = np.square(np.minimum(np.abs(deviation / scale), 1e150))
    return _beta_score(0.5 * freedom, np.full_like(freedom, 0.5), freedom / (freedom + squared))


def negative_binomial_score(count: Floats, shape: Floats, rate: Floats) -> Floats:
    """-ln of the two-sided tail of a count whose Poisson rate is Gamma(shape, rate); the smaller side doubled.

    P(K >= k) = I_q(k, shape) and P(K <= k) = I_{1-q}(shape, k + 1) with q = 1 / (1 + rate)
    (Abramowitz and Stegun 26.5.26).
    """
    q = 1.0 / (1.0 + rate)
    upper = np.zeros_like(count)
    some = count > 0
    upper[some] = _beta_score(count[some], shape[some], q[some])
    lower = _beta_score(shape, count + 1.0, 1.0 - q)
    score: Floats = np.maximum(np.maximum(upper, lower) - LN2, 0.0)
    return score


def mean_score(mean: Floats, number: Floats) -> Floats:
    """-ln of the probability that `number` independent scores, each Exp(1), have at least this mean.

    Their sum is Gamma(number, 1); far out Q(a, x) ~ x^(a-1) e^-x / Gamma(a) (Abramowitz and Stegun 6.5.32).
    """
    total = mean * number
    tail = gammaincc(number, total)
    far = total - (number - 1.0) * ln(np.maximum(total, 1e-9)) + gammaln(number)
    score: Floats = np.clip(np.where(tail > _TINY, -ln(np.maximum(tail, _TINY)), far), 0.0, MAX_SCORE)
    return score


def _beta_score(a: Floats, b: Floats, x: Floats) -> Floats:
    """-ln of the regularised incomplete beta function I_x(a, b), at most MAX_SCORE."""
    tail = betainc(a, b, x)
    score: Floats = -ln(np.maximum(tail, _TINY))
    far = tail < _TINY
    if far.any():
        score[far] = _far_beta_score(a[far], b[far], x[far])
    return np.clip(score, 0.0, MAX_SCORE)


def _far_beta_score(a: Floats, b: Floats, x: Floats) -> Floats:
    """The same by I_x(a, b) = x^a (1-x)^b / (a B(a, b)) · 2F1(a + b, 1; a + 1; x) (A. and S. 26.5.23)."""
    safe = np.clip(x, 1e-300, 1.0 - 1e-16)
    log_beta = gammaln(a) + gammaln(b) - gammaln(a + b)
    series = ln(np.maximum(hyp2f1(a + b, 1.0, a + 1.0, safe), 1.0))
    score: Floats = -(a * ln(safe) + b * ln1p(-safe) - ln(a) - log_beta + series)
    return score

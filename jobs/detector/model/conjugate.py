"""Conjugate posteriors as tuples of arrays, one element a series, each with its update and its predictive tail."""

from math import exp
from typing import NamedTuple, TypeVar

import numpy as np

from jobs.detector.model.arrays import Bools, Floats, Ints
from jobs.detector.model.elementary import ln, ln1p
from jobs.detector.model.tails import negative_binomial_score, student_t_score

ONSET, FAR = 3.0, 8.0  # the tail is learned in two pieces, from these scores on
FAR_SCALE = 20.0  # lengths far beyond it count by their logarithm
PRIOR_HITS = 15.0  # exceedances that the model's own tail is worth, as a prior
JEFFREYS = 0.5  # the shape of Jeffreys' prior of a Poisson rate


class Nig(NamedTuple):
    """x ~ N(m, v / w), m ~ N(mu, v / kappa), v ~ InvGamma(alpha, beta); w weighs a window mean."""

    mu: Floats
    kappa: Floats
    alpha: Floats
    beta: Floats

    def updated(self, x: Floats, weight: Floats, evidence: Floats) -> "Nig":
        """The posterior after `x`; evidence (0 to 1) tempers the likelihood (Murphy 2007, eq. 141 to 144)."""
        added = weight * evidence
        kappa = self.kappa + added
        deviation = x - self.mu
        beta = self.beta + 0.5 * added * self.kappa / kappa * np.square(deviation)
        return Nig(self.mu + added / kappa * deviation, kappa, self.alpha + 0.5 * evidence, beta)

    def forgotten(self, keep: Floats) -> "Nig":
        """Past evidence counts `keep` times, the expected variance stays (West and Harrison 1997, ch. 10.8)."""
        alpha = np.maximum(self.alpha * keep, np.minimum(self.alpha, 1.0))
        return Nig(self.mu, self.kappa * keep, alpha, self.beta * alpha / self.alpha)

    def variance(self) -> Floats:
        return self.beta / self.alpha

    def scale(self, weight: Floats, independence: Floats, floor: Floats) -> Floats:
        """The scale of the Student-t predictive (Murphy 2007, eq. 110), not below `floor`."""
        spread = np.maximum(self.variance(), np.square(floor))
        return np.sqrt(spread * (1.0 / weight + 1.0 / (self.kappa * independence)))

    def freedom(self, independence: Floats) -> Floats:
        """Degrees of freedom of the predictive; of autocorrelated windows only the effective number counts."""
        return np.maximum(2.0 * self.alpha * independence, 1.0)

    def score(self, deviation: Floats, weight: Floats, independence: Floats, floor: Floats) -> Floats:
        """-ln of the probability of a window mean that deviates more from the expected one, `mu`."""
        return student_t_score(deviation, self.scale(weight, independence, floor), self.freedom(independence))


class GammaPoisson(NamedTuple):
    """A Poisson rate per window, Gamma(shape, rate); the predictive is negative binomial."""

    shape: Floats
    rate: Floats

    def updated(self, count: Floats, evidence: Floats) -> "GammaPoisson":
        return GammaPoisson(self.shape + evidence * count, self.rate + evidence)

    def forgotten(self, keep: Floats) -> "GammaPoisson":
        """Past windows count `keep` times; the expected rate stays, down to Jeffreys' prior."""
        return GammaPoisson(np.maximum(self.shape * keep, JEFFREYS), self.rate * keep)

    def score(self, count: Floats) -> Floats:
        return negative_binomial_score(count, self.shape, self.rate)


class Tail(NamedTuple):
    """How often and how far past scores exceeded what the model says; -ln p is Exp(1) where the model is right.

    A piecewise exponential survival function: a Beta for the chance of passing ONSET, and on each side of FAR a hazard
    with a Gamma posterior, whose predictive is a Lomax (Ibrahim, Chen and Sinha 2001, ch. 3.1). So rare far
    spikes are learned apart from a generally heavy tail.
    """

    windows: Floats
    hits: Floats  # scores above ONSET
    near: Floats  # the length of scores between ONSET and FAR
    far_hits: Floats  # scores above FAR
    far: Floats  # their length beyond FAR, compressed

    def updated(self, score: Floats, keep: float) -> "Tail":
        """After `score`; past windows count `keep` times."""
        return Tail(
            self.windows * keep + 1.0,
            self.hits * keep + (score > ONSET),
            self.near * keep + np.clip(score - ONSET, 0.0, FAR - ONSET),
            self.far_hits * keep + (score > FAR),
            self.far * keep + _compressed(score - FAR),
        )

    def calibrated(self, score: Floats) -> Floats:
        """The score that the past supports, at most the model's own.

        The prior, that the model is right, is worth PRIOR_HITS exceedances on each side.
        """
        chance = (self.hits + PRIOR_HITS) / (self.windows + PRIOR_HITS * exp(ONSET))
        stopped = PRIOR_HITS + self.hits - self.far_hits
        near = stopped * ln1p(np.clip(score - ONSET, 0.0, FAR - ONSET) / (PRIOR_HITS + self.near))
        ended = PRIOR_HITS + self.far_hits
        far = ended * ln1p(_compressed(score - FAR) / (PRIOR_HITS + self.far))
        # Below the onset too: a score that comes so often says no more than that.
        onset = -ln(np.minimum(chance, 1.0))
        supported: Floats = np.where(score > ONSET, near + far + onset, onset)
        return np.where(supported < score, supported, score)


Posterior = Nig | GammaPoisson | Tail
P = TypeVar("P", Nig, GammaPoisson, Tail)


def of_rows(posterior: P, rows: Ints | Bools) -> P:
    """The posteriors of some rows."""
    return type(posterior)(*(values[rows] for values in posterior))


def replaced_where(where: Bools, new: P, old: P) -> P:
    """By row the new posterior where that is wanted, else the old one."""
    return type(old)(*(np.where(where, one, other) for one, other in zip(new, old, strict=True)))


def _compressed(length: Floats) -> Floats:
    """So that one enormous score teaches no more than a few large ones."""
    return FAR_SCALE * ln1p(np.maximum(length, 0.0) / FAR_SCALE)

"""How the series of a machine move together, and what of a window's deviations that doesn't explain.

Up to MOST series of a machine are a *group*. It holds their correlations, those of levels and those of steps, each with
a prior of none that is worth PRIOR lessons. A window's deviations z are *whitened*: v = L⁻¹ z with L Lᵀ = R + RIDGE I
(Kessy, Lewin and Strimmer 2018, "Optimal whitening and decorrelation"; the ridge shrinks as Ledoit and Wolf 2004 do).
Of Cholesky's orders the one is taken in which the series that has most in common with all others comes first: so the
common cause is judged once, and of the others only what it doesn't explain.

Only elementary operations over all groups at once, in a fixed order: BLAS and LAPACK choose kernels by the processor,
and their sums differ.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from jobs.detector.model.arrays import Floats, Ints

MOST = 32  # series of a group
KINDS = 2  # of deviations: levels and steps
RIDGE = 0.2
LEAST_PIVOT = 0.05  # where values were missing, the correlations may be none of any matrix
PRIOR = 10.0  # lessons
EVERY = 20  # windows between lessons
AT_ONCE = 64  # groups whose numbers stay in the processor's cache

# Lower triangles, row by row: (groups, KINDS, pairs). On the diagonals are the mean squares.
Correlations = NDArray[np.float32]


def pairs(series: int) -> tuple[Ints, Ints]:
    """The two series of each number of a lower triangle: their places in the group, the greater first."""
    first, second = np.tril_indices(series)
    return first, second


def no_correlations(groups: int, series: int) -> Correlations:
    """Of so many groups: every series moves by itself."""
    first, second = pairs(series)
    return np.tile((first == second).astype(np.float32), (groups, KINDS, 1))


def learned(before: Correlations, deviations: Floats, windows: Floats) -> Correlations:
    """After a lesson.

    `deviations` (groups, KINDS, series), winsorised, are NaN where there is no value; `windows` (groups, 1, series) are
    those that each series was seen in.
    """
    first, second = pairs(deviations.shape[2])
    product = deviations[..., first] * deviations[..., second]
    share = 1.0 / (np.minimum(windows[..., first], windows[..., second]) / EVERY + PRIOR)
    return np.where(np.isfinite(product), before + share * (product - before), before).astype(np.float32)


class Whitening(NamedTuple):
    """What whitens some groups: the order of their series (series, KINDS, groups), and the factors L, in that order."""

    order: Ints
    factor: Floats  # (series, series, KINDS, groups); above the diagonal is nothing of use

    @classmethod
    def of(cls, correlations: Correlations, series: int) -> Self:
        """Of groups of so many series."""
        first, second = pairs(series)
        full = np.empty((series, series, KINDS, len(correlations)))
        full[first, second] = full[second, first] = correlations.transpose(2, 1, 0)
        diagonal = np.arange(series)
        deviation = np.sqrt(np.maximum(full[diagonal, diagonal], 1e-9))
        full /= deviation * deviation[:, None]
        order = _most_connected_first(full)
        full = np.take_along_axis(np.take_along_axis(full, order[:, None], axis=0), order[None], axis=1)
        full[diagonal, diagonal] += RIDGE
        for some in _chunks(len(correlations)):
            _factorise(full[..., some])
        return cls(order, full)

    def residuals(self, deviations: Floats) -> Floats:
        """What the others don't explain of these deviations; both (series, KINDS, groups)."""
        left = np.take_along_axis(deviations, self.order, axis=0)
        for some in _chunks(left.shape[-1]):
            _substitute(self.factor[..., some], left[..., some])
        found = np.empty_like(left)
        np.put_along_axis(found, self.order, left, axis=0)
        return found

    def followed_by(self, more: "Whitening") -> "Whitening":
        order = np.concatenate([self.order, more.order], axis=-1)
        return Whitening(order, np.concatenate([self.factor, more.factor], axis=-1))

    def without(self, groups: Ints) -> "Whitening":
        return Whitening(np.delete(self.order, groups, axis=-1), np.delete(self.factor, groups, axis=-1))


def _chunks(groups: int) -> list[slice]:
    return [slice(at, at + AT_ONCE) for at in range(0, groups, AT_ONCE)]


def _most_connected_first(full: Floats) -> Ints:
    """The places of series by how much of the variance of all each explains."""
    explained = np.zeros(full.shape[1:])
    for row in full:
        explained += row * row
    return np.argsort(-explained, axis=0, kind="stable")


def _factorise(full: Floats) -> None:
    """Cholesky's lower triangular factors, in place of the matrices."""
    for at in range(len(full)):
        column = full[at:, at]
        column /= np.sqrt(np.maximum(column[0], LEAST_PIVOT))
        below = column[1:]
        full[at + 1 :, at + 1 :] -= below[:, None] * below[None]


def _substitute(factor: Floats, left: Floats) -> None:
    """Solve L v = z; `left` is z before and v after."""
    for at in range(len(left)):
        left[at] /= factor[at, at]
        left[at + 1 :] -= factor[at + 1 :, at] * left[at]

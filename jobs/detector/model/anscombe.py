"""The scale on which the model works: counts by Anscombe's transform (1948), of variance 1 where they are Poisson."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.detector.model.arrays import Floats


def to_model_scale(value: Floats, is_count: NDArray[Any]) -> Floats:
    """A count k as 2 sqrt(k + 3/8); another value as it is."""
    return np.where(is_count > 0, 2.0 * np.sqrt(np.maximum(value, 0.0) + 0.375), value)


def to_own_scale(x: Floats, is_count: NDArray[Any]) -> Floats:
    """The inverse."""
    return np.where(is_count > 0, np.maximum(np.square(0.5 * np.maximum(x, 0.0)) - 0.375, 0.0), x)

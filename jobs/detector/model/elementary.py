"""Logarithms that give the same bits on any processor.

numpy computes np.log, np.log1p, np.exp and powers with the widest vectors that the processor has, and the results
differ in the last bit from one kind of processor to another. SciPy's functions call the C library for each element.
"""

from typing import Any

import numpy as np
from scipy.special import log1p, xlogy

from jobs.detector.model.arrays import Floats


def ln(x: Any) -> Floats:
    """The natural logarithm of positive numbers."""
    return np.asarray(xlogy(1.0, x))


def ln1p(x: Any) -> Floats:
    """The natural logarithm of 1 + x, of numbers above -1."""
    return np.asarray(log1p(x))

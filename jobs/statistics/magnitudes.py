"""Two scales on which numbers of any size can be compared.

They are logarithms to the base 2, but linear between the powers of it: computed of sums and products alone, they are
the same on every processor.
"""

import numpy as np

from jobs.statistics.quantiles import Floats


def magnitude(number: Floats) -> Floats:
    """Of positive numbers, log2 interpolated; 0 of others."""
    mantissa, exponent = np.frexp(np.where(number > 0, number, 1.0))
    return np.asarray(exponent + 2.0 * mantissa - 2.0)


def of_magnitude(value: Floats) -> Floats:
    """The inverse of `magnitude`."""
    whole = np.clip(np.floor(value), -1000.0, 1000.0)
    return np.asarray(np.ldexp(1.0 + np.clip(value - whole, 0.0, 1.0), whole.astype(np.int64)))


def shifted(number: Floats) -> Floats:
    """Of any numbers: the magnitude of 1 + |x|, with the sign of x."""
    return np.asarray(np.sign(number) * magnitude(1.0 + np.abs(number)))


def of_shifted(value: Floats) -> Floats:
    """The inverse of `shifted`."""
    return np.asarray(np.sign(value) * (of_magnitude(np.abs(value)) - 1.0))

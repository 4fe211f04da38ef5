import numpy as np
import pytest

from jobs.statistics.magnitudes import magnitude, of_magnitude, of_shifted, shifted

NUMBERS = np.array([1e-9, 0.003, 0.5, 0.75, 1.0, 3.0, 1024.0, 1e6, 9e17])


def test_powers_of_two_have_their_exponent():
    assert magnitude(np.array([0.25, 1.0, 2.0, 1024.0])).tolist() == [-2.0, 0.0, 1.0, 10.0]


def test_magnitude_is_near_the_logarithm_and_ascends():
    assert magnitude(NUMBERS) == pytest.approx(np.log2(NUMBERS), abs=0.0861)
    assert (np.diff(magnitude(NUMBERS)) > 0).all()


def test_what_is_not_positive_has_none():
    assert magnitude(np.array([0.0, -3.0])).tolist() == [0.0, 0.0]


def test_shifted_knows_zero_and_signs():
    assert shifted(np.array([-1.0, 0.0, 1.0, 0.5])).tolist() == [-1.0, 0.0, 1.0, 0.5]


@pytest.mark.parametrize(("scale", "inverse"), [(magnitude, of_magnitude), (shifted, of_shifted)])
def test_inverses(scale, inverse):
    assert inverse(scale(NUMBERS)) == pytest.approx(NUMBERS, rel=1e-6)
    assert np.isfinite(inverse(np.array([1e6, -1e6, 0.0]))).all()

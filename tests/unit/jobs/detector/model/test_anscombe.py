import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.detector.model.anscombe import to_model_scale, to_own_scale


@given(st.integers(0, 10**6), st.booleans())
def test_values_come_back_from_the_models_scale(value: int, is_count: bool) -> None:
    kind = np.array([is_count])
    assert to_own_scale(to_model_scale(np.array([float(value)]), kind), kind)[0] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("rate", [4.0, 40.0, 400.0])
def test_poisson_counts_have_variance_1_there(rate: float) -> None:
    counts = np.random.default_rng(1).poisson(rate, 20_000).astype(float)
    assert to_model_scale(counts, np.ones(len(counts))).var() == pytest.approx(1.0, abs=0.06)

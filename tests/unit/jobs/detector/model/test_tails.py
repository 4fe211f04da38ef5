import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from jobs.detector.model.tails import negative_binomial_score, student_t_score


def one(value: float) -> np.ndarray:
    return np.array([value])


@given(t=st.floats(0, 50), freedom=st.floats(1, 500))
def test_student_t_score_is_scipys_two_sided_tail(t: float, freedom: float) -> None:
    expected = -np.log(2) - stats.t.logsf(t, freedom)
    assert student_t_score(one(t), one(1.0), one(freedom)) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("t", "freedom", "expected"), [(60.0, 1e4, 1540.0), (1e6, 60.0, 700.0), (1e300, 3.0, 700.0)])
def test_student_t_score_ends_at_700(t: float, freedom: float, expected: float) -> None:
    assert student_t_score(one(t), one(1.0), one(freedom))[0] == min(expected, 700.0)


def test_student_t_score_is_continuous_where_it_leaves_the_normal_range() -> None:
    # ln P = -ln(B(v/2, 1/2) v/2) + (v/2) ln x to leading order: 100 degrees of freedom pass 1e-280 near t = 6300.
    t = np.geomspace(1e3, 1e5, 400)
    score = student_t_score(t, np.ones(400), np.full(400, 100.0))
    steps = np.diff(score[score < 700])
    assert steps.min() > 0
    assert steps.max() / steps.min() == pytest.approx(1.0, abs=1e-2)


@given(count=st.integers(0, 300), shape=st.floats(0.5, 1e4), rate=st.floats(0.1, 1e3))
def test_negative_binomial_score_is_twice_scipys_smaller_tail(count: int, shape: float, rate: float) -> None:
    predictive = stats.nbinom(shape, rate / (1 + rate))
    tail = min(1.0, 2 * min(predictive.sf(count - 1), predictive.cdf(count)))
    assume(tail > 1e-250)
    score = negative_binomial_score(one(float(count)), one(shape), one(rate))
    assert score == pytest.approx(-np.log(tail), rel=1e-5, abs=1e-6)


def test_negative_binomial_score_of_a_far_count_is_finite() -> None:
    assert negative_binomial_score(one(1e6), one(0.5), one(1000.0))[0] > 690

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jobs.detector.model.conjugate import GammaPoisson, Nig, Tail

values = st.lists(st.floats(-100, 100), min_size=1, max_size=20)


def constant(*numbers: float) -> list[np.ndarray]:
    return [np.array([number]) for number in numbers]


def prior() -> Nig:
    return Nig(*constant(1.0, 0.5, 2.0, 3.0))


@given(values)
def test_nig_posterior_is_the_closed_form(xs: list[float]) -> None:
    posterior = prior()
    for x in xs:
        posterior = posterior.updated(*constant(x, 1.0, 1.0))
    n, mean = len(xs), float(np.mean(xs))
    kappa = 0.5 + n
    beta = 3.0 + 0.5 * float(np.sum(np.square(np.array(xs) - mean))) + 0.5 * n * 0.5 / kappa * (mean - 1.0) ** 2
    assert posterior.mu[0] == pytest.approx((0.5 + n * mean) / kappa, abs=1e-9)
    assert posterior.kappa[0] == pytest.approx(kappa)
    assert posterior.alpha[0] == pytest.approx(2.0 + n / 2)
    assert posterior.beta[0] == pytest.approx(beta, rel=1e-9)


@given(values)
def test_nig_posterior_does_not_depend_on_the_order(xs: list[float]) -> None:
    forward, backward = prior(), prior()
    for x, y in zip(xs, reversed(xs), strict=True):
        forward = forward.updated(*constant(x, 1.0, 1.0))
        backward = backward.updated(*constant(y, 1.0, 1.0))
    assert np.allclose(forward, backward, rtol=1e-9, atol=1e-9)


@given(st.floats(-50, 50), st.floats(0.1, 1.0))
def test_nig_score_is_the_student_t_predictive(x: float, weight: float) -> None:
    scale = np.sqrt(3.0 / 2.0 * (1 / weight + 1 / 0.5))
    expected = -np.log(2) - stats.t(4.0, 1.0, scale).logsf(1.0 + abs(x - 1.0))
    assert prior().score(*constant(x - 1.0, weight, 1.0, 0.0))[0] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_forgetting_keeps_what_is_expected_and_widens_what_is_believed() -> None:
    posterior = Nig(*constant(5.0, 100.0, 50.0, 200.0))
    faded = posterior.forgotten(np.array([0.5]))
    assert (faded.mu[0], faded.variance()[0]) == (5.0, 4.0)
    assert (faded.kappa[0], faded.alpha[0]) == (50.0, 25.0)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20))
def test_gamma_poisson_posterior_is_the_closed_form(counts: list[int]) -> None:
    posterior = GammaPoisson(*constant(0.5, 0.1))
    for count in counts:
        posterior = posterior.updated(*constant(float(count), 1.0))
    assert posterior.shape[0] == pytest.approx(0.5 + sum(counts))
    assert posterior.rate[0] == pytest.approx(0.1 + len(counts))


def learned_tail(scores: np.ndarray) -> Tail:
    tail = Tail(*constant(0.0, 0.0, 0.0, 0.0, 0.0))
    for score in scores:
        tail = tail.updated(np.array([score]), 1.0)
    return tail


def calibrated(tail: Tail, score: float) -> float:
    return float(tail.calibrated(np.array([score]))[0])


def test_a_tail_that_is_as_the_model_says_leaves_scores_nearly_alone() -> None:
    scores = np.random.default_rng(7).exponential(size=20_000)
    assert calibrated(learned_tail(scores), 14.0) == pytest.approx(13.3, abs=0.7)


def test_a_heavy_tail_lowers_scores_to_what_its_history_supports() -> None:
    scores = 4.0 * np.random.default_rng(7).exponential(size=20_000)
    assert calibrated(learned_tail(scores), 24.0) == pytest.approx(6.0, abs=1.0)


def test_a_spike_that_comes_again_and_again_is_no_news() -> None:
    scores = np.random.default_rng(7).exponential(size=20_000)
    assert calibrated(learned_tail(scores), 400.0) > 30
    scores[::500] = 400.0
    assert calibrated(learned_tail(scores), 400.0) < 12


@given(st.lists(st.floats(0, 700), min_size=2, max_size=50))
def test_calibration_keeps_the_order_of_scores(scores: list[float]) -> None:
    values = np.sort(np.array(scores))
    tail = Tail(*(np.broadcast_to(field, len(values)) for field in learned_tail(values)))
    assert (np.diff(tail.calibrated(values)) >= -1e-9).all()

import numpy as np
import pytest

from jobs.detector.model.correlations import (
    AT_ONCE,
    EVERY,
    KINDS,
    PRIOR,
    RIDGE,
    Correlations,
    Whitening,
    learned,
    no_correlations,
    pairs,
)


def packed(matrix: np.ndarray, groups: int = 1) -> Correlations:
    first, second = pairs(len(matrix))
    return np.tile(matrix[first, second].astype(np.float32), (groups, KINDS, 1))


def alike(series: int, correlation: float) -> np.ndarray:
    return np.full((series, series), correlation) + (1 - correlation) * np.eye(series)


def deviations(*z: float) -> np.ndarray:
    """Of one group; (series, KINDS, groups)."""
    return np.tile(np.array(z)[:, None, None], (1, KINDS, 1))


def test_residuals_of_the_whitened_have_the_unit_as_their_covariance() -> None:
    rng = np.random.default_rng(3)
    mixed = rng.normal(size=(6, 6))
    covariance = mixed @ mixed.T
    scale = np.sqrt(np.diag(covariance))
    z = (rng.normal(size=(40_000, 6)) @ mixed.T / scale).T[:, None, :].repeat(KINDS, axis=1)
    one = Whitening.of(packed(covariance / np.outer(scale, scale)), 6)
    many = Whitening(one.order.repeat(z.shape[-1], axis=-1), one.factor.repeat(z.shape[-1], axis=-1))
    left = many.residuals(z)[:, 0]
    expected = np.linalg.inv(np.linalg.cholesky(_ordered(covariance / np.outer(scale, scale), one) + RIDGE * np.eye(6)))
    order = one.order[:, 0, 0]
    np.testing.assert_allclose(left[order], expected @ z[order, 0], atol=1e-6)


def _ordered(matrix: np.ndarray, whitening: Whitening) -> np.ndarray:
    order = whitening.order[:, 0, 0]
    return matrix[np.ix_(order, order)]


def test_series_that_move_together_say_it_once() -> None:
    together = Whitening.of(packed(alike(8, 0.95)), 8).residuals(deviations(*[4.0] * 8))[:, 0, 0]
    apart = Whitening.of(packed(alike(8, 0.0)), 8).residuals(deviations(*[4.0] * 8))[:, 0, 0]
    assert np.sum(together > 3.0) == 1
    assert apart == pytest.approx(np.full(8, 4.0 / np.sqrt(1.0 + RIDGE)))


def test_a_series_that_leaves_its_company_shows() -> None:
    left = Whitening.of(packed(alike(8, 0.95)), 8).residuals(deviations(-3.0, *[3.0] * 7))[:, 0, 0]
    assert np.abs(left).max() > 6.0


def test_the_order_of_series_does_not_matter_where_they_differ_in_company() -> None:
    matrix = alike(5, 0.0)
    matrix[1, :4] = matrix[:4, 1] = [0.8, 1.0, 0.5, 0.4]
    matrix[0, 2] = matrix[2, 0] = 0.3
    z = np.array([1.0, -2.0, 3.0, 0.5, 4.0])
    place = np.array([3, 0, 4, 1, 2])
    straight = Whitening.of(packed(matrix), 5).residuals(deviations(*z))[:, 0, 0]
    turned = Whitening.of(packed(matrix[np.ix_(place, place)]), 5).residuals(deviations(*z[place]))[:, 0, 0]
    np.testing.assert_allclose(turned, straight[place], rtol=1e-6)


def test_a_group_is_whitened_as_if_it_were_alone() -> None:
    rng = np.random.default_rng(5)
    groups = 2 * AT_ONCE + 3
    correlations = no_correlations(groups, 4)
    correlations[:, :, 1] = rng.uniform(-0.9, 0.9, (groups, KINDS))
    z = rng.normal(size=(4, KINDS, groups))
    all_at_once = Whitening.of(correlations, 4).residuals(z)
    for at in (0, AT_ONCE, groups - 1):
        alone = Whitening.of(correlations[at : at + 1], 4).residuals(z[..., at : at + 1])
        assert (alone[..., 0] == all_at_once[..., at]).all()


def test_what_is_no_correlation_matrix_is_whitened_all_the_same() -> None:
    matrix = alike(3, 0.99)
    matrix[0, 1] = matrix[1, 0] = -0.99
    left = Whitening.of(packed(matrix), 3).residuals(deviations(1.0, 1.0, 1.0))
    assert np.isfinite(left).all()


def test_correlations_are_learned_with_a_prior_of_none() -> None:
    z = np.full((1, KINDS, 3), 2.0)
    z[0, 0, 2] = np.nan
    windows = np.full((1, 1, 3), 30.0 * EVERY)
    after = learned(no_correlations(1, 3), z, windows)
    share = 1.0 / (30.0 + PRIOR)
    assert after[0, 0].tolist() == pytest.approx([1 + 3 * share, 4 * share, 1 + 3 * share, 0.0, 0.0, 1.0])
    assert after[0, 1, 3:5].tolist() == pytest.approx([4 * share] * 2)
    assert after.dtype == np.float32

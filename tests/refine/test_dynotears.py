"""DYNOTEARS where its answer is known: lasso, least squares and soft thresholding."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LinearRegression

from forecause.data import Windows
from forecause.refine.candidates import LaggedProducts, lagged_values
from forecause.refine.dynotears import fit_weights

NO_EFFECT_NOW = 100.0  # a penalty that no effect at lag 0 is worth


def target_and_past(panel, max_lag):
    """Every window's target (window, variable) and past (window, lag * variable), lag 1 first."""
    windows = Windows.of(panel, max_lag)
    values = lagged_values(windows, windows.rows)
    return values[:, 0], values[:, 1:].reshape(len(values), -1)


@pytest.mark.parametrize("penalty", [0.02, 0.1, 0.3])
def test_without_effects_at_lag_zero_it_is_one_lasso_per_target(penalty, easy_panel):
    target, inputs = target_and_past(easy_panel, 2)
    weights = fit_weights(LaggedProducts.of(easy_panel, 2), NO_EFFECT_NOW, penalty)
    assert (weights[0] == 0).all()
    for i in range(4):
        oracle = Lasso(alpha=penalty, tol=1e-12, max_iter=100_000).fit(inputs, target[:, i])
        found = weights[1:, :, i].ravel()
        np.testing.assert_allclose(found, oracle.coef_, atol=1e-5)
        assert ((found != 0) == (oracle.coef_ != 0)).all()


def test_without_penalty_it_is_least_squares(easy_panel):
    target, inputs = target_and_past(easy_panel, 2)
    weights = fit_weights(LaggedProducts.of(easy_panel, 2), NO_EFFECT_NOW, 0.0)
    expected = LinearRegression().fit(inputs, target).coef_.T
    np.testing.assert_allclose(weights[1:].reshape(8, 4), expected, atol=1e-5)


def test_with_uncorrelated_inputs_it_is_soft_thresholding():
    rng = np.random.default_rng(0)
    along = rng.uniform(-0.5, 0.5, size=(4, 2))  # covariance of 2 variables at 2 lags with now
    cross = np.eye(6)
    cross[2:, :2], cross[:2, 2:] = along, along.T
    weights = fit_weights(
        LaggedProducts(
            cross, windows=1, variables=2, max_lag=2, members=(np.array([0]), np.array([1]))
        ),
        NO_EFFECT_NOW,
        0.2,
    )
    expected = np.sign(along) * np.maximum(np.abs(along) - 0.2, 0)
    np.testing.assert_allclose(weights[1:].reshape(4, 2), expected, atol=1e-6)


def test_given_the_order_at_lag_zero_it_is_a_lasso_on_predecessors_and_lags(make_panel):
    panel = make_panel({("a", "a", 1): 0.8, ("c", "c", 1): 0.5}, "abc", rows=(1000,))
    panel.values[:, 1] += 2 * panel.values[:, 0]
    panel.values[:, 2] += panel.values[:, 1]  # a -> b -> c at once
    target, past = target_and_past(panel, 1)
    weights = fit_weights(LaggedProducts.of(panel, 1), 0.05, 0.05)
    for i in range(3):
        inputs = np.hstack([target[:, :i], past])
        oracle = Lasso(alpha=0.05, tol=1e-12, max_iter=100_000).fit(inputs, target[:, i])
        found = np.concatenate([weights[0, :i, i], weights[1, :, i]])
        np.testing.assert_allclose(found, oracle.coef_, atol=2e-3)

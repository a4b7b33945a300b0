"""DYNOTEARS where its answer is known: lasso, least squares and soft thresholding."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from forecause.refine.dynotears import fit_weights
from forecause.regression.design import Design, Moments
from forecause.regression.ols import full_regression

NO_EFFECT_NOW = 100.0  # a penalty that no effect at lag 0 is worth


@pytest.mark.parametrize("penalty", [0.02, 0.1, 0.3])
def test_without_effects_at_lag_zero_it_is_one_lasso_per_target(penalty, easy_panel):
    made = Design.of(easy_panel, 2)
    inputs = made.past.reshape(len(made.past), -1)
    weights = fit_weights(Moments.of(easy_panel, 2), NO_EFFECT_NOW, penalty)
    assert (weights[0] == 0).all()
    for i in range(4):
        oracle = Lasso(alpha=penalty, tol=1e-12, max_iter=100_000).fit(inputs, made.target[:, i])
        found = weights[1:, :, i].ravel()
        np.testing.assert_allclose(found, oracle.coef_, atol=1e-5)
        assert ((found != 0) == (oracle.coef_ != 0)).all()


def test_without_penalty_it_is_least_squares(easy_panel):
    moments = Moments.of(easy_panel, 2)
    weights = fit_weights(moments, NO_EFFECT_NOW, 0.0)
    expected = full_regression(moments).coefficients
    np.testing.assert_allclose(weights[1:].reshape(8, 4), expected, atol=1e-5)


def test_with_uncorrelated_inputs_it_is_soft_thresholding():
    rng = np.random.default_rng(0)
    along = rng.uniform(-0.5, 0.5, size=(4, 2))  # covariance of 2 variables at 2 lags with now
    cross = np.eye(6)
    cross[2:, :2], cross[:2, 2:] = along, along.T
    weights = fit_weights(Moments(cross, windows=1, variables=2, max_lag=2), NO_EFFECT_NOW, 0.2)
    expected = np.sign(along) * np.maximum(np.abs(along) - 0.2, 0)
    np.testing.assert_allclose(weights[1:].reshape(4, 2), expected, atol=1e-6)


def test_given_the_order_at_lag_zero_it_is_a_lasso_on_predecessors_and_lags(make_panel):
    panel = make_panel({("a", "a", 1): 0.8, ("c", "c", 1): 0.5}, "abc", rows=(1000,))
    panel.values[:, 1] += 2 * panel.values[:, 0]
    panel.values[:, 2] += panel.values[:, 1]  # a -> b -> c at once
    made = Design.of(panel, 1)
    weights = fit_weights(Moments.of(panel, 1), 0.05, 0.05)
    for i in range(3):
        inputs = np.hstack([made.target[:, :i], made.past[:, 0]])
        oracle = Lasso(alpha=0.05, tol=1e-12, max_iter=100_000).fit(inputs, made.target[:, i])
        found = np.concatenate([weights[0, :i, i], weights[1, :, i]])
        np.testing.assert_allclose(found, oracle.coef_, atol=2e-3)

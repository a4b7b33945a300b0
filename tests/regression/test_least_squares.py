"""Dense least squares against scikit-learn, statsmodels and plain algebra."""

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LinearRegression, Ridge

from forecause.errors import InputError
from forecause.regression.least_squares import (
    KnownFeatures,
    Regression,
    largest_variance,
    lower_factor,
    lower_solved,
    orthonormal_basis,
    orthonormal_columns,
    positive_inverse,
    positive_solve,
    precision,
    principal_axes,
    pseudo_inverse,
    residual_of,
    ridge,
    wald,
)


@pytest.fixture(scope="module")
def features():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5))


@pytest.fixture(scope="module")
def values(features):
    rng = np.random.default_rng(1)
    return features @ rng.normal(size=(5, 2)) + rng.normal(size=(300, 2))


def test_a_residual_is_what_least_squares_leaves(features, values):
    oracle = LinearRegression(fit_intercept=False).fit(features, values)
    expected = values - oracle.predict(features)
    np.testing.assert_allclose(residual_of(values, features), expected, atol=1e-10)
    np.testing.assert_allclose(KnownFeatures.of(features).taken_off(values), expected, atol=1e-3)


def test_a_feature_that_is_there_twice_changes_no_residual(features, values):
    twice = np.hstack([features, features[:, :1]])
    expected = residual_of(values, features)
    np.testing.assert_allclose(residual_of(values, twice), expected, atol=1e-10)
    np.testing.assert_allclose(KnownFeatures.of(twice).taken_off(values), expected, atol=1e-3)


def test_ridge_is_that_of_scikit_learn(features, values):
    oracle = Ridge(alpha=7.0, fit_intercept=False).fit(features, values)
    np.testing.assert_allclose(ridge(features, values, 7.0), oracle.coef_.T, atol=1e-10)


def test_the_precision_holds_the_regression_of_each_column_on_the_others(features):
    centred = features - features.mean(0)
    inverse = precision(centred.T @ centred)
    oracle = LinearRegression().fit(features[:, 1:], features[:, 0])
    np.testing.assert_allclose(-inverse[0, 1:] / inverse[0, 0], oracle.coef_, atol=1e-8)


def test_the_pseudo_inverse_shares_a_weight_between_copies():
    column = np.arange(1.0, 6.0)[:, None]
    copies = np.hstack([column, column])
    weights = pseudo_inverse(copies.T @ copies) @ (copies.T @ (6 * column[:, 0]))
    np.testing.assert_allclose(weights, [3.0, 3.0])


def test_wald_is_the_quadratic_form_whatever_stands_before_it():
    rng = np.random.default_rng(2)
    root, beta = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3))
    covariance = root @ root.transpose(0, 2, 1)
    expected = [b @ np.linalg.inv(c) @ b for b, c in zip(beta, covariance, strict=True)]
    np.testing.assert_allclose(wald(covariance, beta), expected, rtol=1e-6)


def regression(features, values):
    x, y = features - features.mean(0), values - values.mean(0)
    return Regression.of(x.T @ x, x.T @ y, (y**2).sum(0), len(x))


def test_coefficients_and_tests_are_those_of_statsmodels(features, values):
    found = regression(features, values)
    oracle = sm.OLS(values[:, 1], sm.add_constant(features)).fit()
    np.testing.assert_allclose(found.coefficients[:, 1], oracle.params[1:], atol=1e-10)
    np.testing.assert_allclose(found.t[:, 1], oracle.tvalues[1:], rtol=1e-8)
    np.testing.assert_allclose(found.p[:, 1], oracle.pvalues[1:], rtol=1e-6)
    joint = oracle.f_test(np.eye(6)[[2, 4]]).pvalue
    assert found.group_p(np.array([1, 3]))[1] == pytest.approx(joint, rel=1e-6)


def test_sums_of_inputs_and_too_few_windows_are_refused(features, values):
    total = features.sum(1, keepdims=True)
    with pytest.raises(InputError, match="sums or copies"):
        regression(np.hstack([features, total]), values)
    for smallest, is_refused in ((0.9e-12, True), (1.1e-12, False)):  # of the largest variance
        products = np.diag([1.0, smallest, 1e-6])
        if is_refused:
            with pytest.raises(InputError, match="sums or copies"):
                Regression.of(products, np.ones((3, 1)), np.ones(1), 100)
        else:
            found = Regression.of(products, np.ones((3, 1)), np.ones(1), 100)
            np.testing.assert_allclose(found.coefficients[:, 0], 1 / np.diag(products))
    with pytest.raises(InputError, match="5 lagged inputs needs more than 6 windows, found 6"):
        regression(features[:6], values[:6])


def test_directions_of_little_size_are_left_out_of_a_basis(features):
    copy = np.hstack([features, features[:, :1] + 1e-9 * features[:, 1:2]])
    unit = copy / np.linalg.norm(copy, axis=0)
    sizes = np.linalg.svd(unit, compute_uv=False)
    basis = orthonormal_basis(unit, 1e-6)
    assert basis.shape == (300, 5)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(basis @ (basis.T @ unit), unit, atol=1e-7)
    assert orthonormal_basis(unit, sizes[2]).shape == (300, 2)  # a size up to the bound is left out
    columns = orthonormal_columns(features)
    np.testing.assert_allclose(columns.T @ columns, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(columns @ (columns.T @ features), features, atol=1e-9)


def test_factors_and_axes_are_those_of_the_matrix(features, values):
    gram = features.T @ features
    factor = lower_factor(gram)
    np.testing.assert_allclose(factor @ factor.T, gram, rtol=1e-8)
    assert not np.triu(factor, 1).any()
    expected = np.linalg.inv(factor) @ values[:5]
    np.testing.assert_allclose(lower_solved(factor, values[:5]), expected, rtol=1e-8)
    variances, axes = principal_axes(gram)
    assert (np.diff(variances) > 0).all()
    np.testing.assert_allclose(gram @ axes, axes * variances, rtol=1e-6, atol=1e-6)
    both = largest_variance(np.stack([gram, 2 * gram]))
    np.testing.assert_allclose(both, [variances[-1], 2 * variances[-1]])


@pytest.mark.parametrize("kind", ["regular", "nearly singular", "not definite"])
def test_a_positive_matrix_is_inverted_and_solved_whatever_its_factor_does(features, kind):
    gram = features.T @ features
    if kind == "nearly singular":
        gram = gram + 1e9 * np.outer(np.ones(5), np.ones(5))
    if kind == "not definite":
        gram[0, 0] *= -1
    inverse = positive_inverse(gram)
    np.testing.assert_allclose(inverse, np.linalg.inv(gram), rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-6, atol=1e-14)
    cross = np.arange(10.0).reshape(5, 2)
    np.testing.assert_allclose(gram @ positive_solve(gram, cross), cross, atol=1e-4)
    many = positive_solve(np.stack([gram, gram]), np.stack([cross, 2 * cross]))
    np.testing.assert_allclose(many[1], 2 * many[0], rtol=1e-6)

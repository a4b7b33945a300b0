"""Least squares on arrays that are held in memory: solutions, residuals and classical tests.

What is too long to be held goes through `moments` instead.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri

from forecause.errors import InputError

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

# Numerics:
SINGULAR = 1e-12  # smallest over largest eigenvalue below which inputs count as dependent


def residual_of(values: Array, features: Array) -> Array:
    """Values (row, ...) less what features (row, feature) explain of them."""
    return np.asarray(values - features @ coefficients_of(features, values))


def ridge(features: Array, values: Array, penalty: float | Array) -> Array:
    """Weights (feature, ...) of values (row, ...); penalties are added to the Gram's diagonal."""
    return solved(damped(features.T @ features, penalty), features.T @ values)


@dataclass(frozen=True, eq=False)
class KnownFeatures:
    """Features (row, feature) that are already in a model, with their sums of products."""

    features: Array
    gram: Array  # (feature, feature)

    @classmethod
    def of(cls, features: Array) -> KnownFeatures:
        return cls(features, features.T @ features)

    def taken_off(self, values: Array) -> Array:
        """What is left of values (row, ...), with a touch of ridge."""
        gram = damped(self.gram, 1e-6 * np.diag(self.gram) + 1e-9)
        weights = solved(gram, self.features.T @ values)
        return np.asarray(values - self.features @ weights)


def damped(gram: Array, penalty: float | Array) -> Array:
    """A Gram matrix with penalties on its diagonal."""
    ridged = gram.copy()
    ridged[np.diag_indices_from(ridged)] += penalty
    return ridged


def solved(gram: npt.NDArray[Any], cross: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Coefficients (feature, ...) from sums of products: gram (feature, feature), cross."""
    return np.asarray(np.linalg.solve(gram, cross))


def coefficients_of(features: Array, values: Array) -> Array:
    """Least squares weights (feature, ...) of values (row, ...), the smallest where several do."""
    return np.asarray(np.linalg.lstsq(features, values, rcond=None)[0])


def orthonormal_basis(features: Array, least: float) -> Array:
    """A basis (row, ...) of what features (row, feature) of unit length span.

    Directions with a singular value up to `least` are left out.
    """
    basis, sizes, _ = np.linalg.svd(features, full_matrices=False)
    return np.asarray(basis[:, sizes > least])


def orthonormal_columns(features: Array) -> Array:
    """A basis (row, feature) of what independent features (row, feature) span."""
    return np.asarray(np.linalg.qr(features)[0])


def largest_variance(gram: Array) -> Array:
    """Of any direction, (...), from Gram matrices (..., feature, feature)."""
    return np.asarray(np.linalg.eigvalsh(gram)[..., -1])


def lower_factor(gram: Array) -> Array:
    """The lower triangular L with gram = L L'; a LinAlgError if there is none."""
    return np.asarray(np.linalg.cholesky(gram))


def lower_solved(factor: Array, values: Array) -> Array:
    """L^-1 values (feature, ...) of a lower triangular L."""
    return np.asarray(solve_triangular(factor, values, lower=True, check_finite=False))


def principal_axes(covariance: Array) -> tuple[Array, Array]:
    """Variances (axis,), the largest last, and the directions (column, axis) that have them."""
    variances, axes = np.linalg.eigh(covariance)
    return np.asarray(variances), np.asarray(axes)


def pseudo_inverse(gram: Array) -> Array:
    """An inverse (..., feature, feature) that gives the smallest coefficients where some features
    are combinations of others."""
    return np.asarray(np.linalg.pinv(gram, hermitian=True))


def positive_solve(gram: Array, cross: Array) -> Array:
    """gram^-1 cross (..., feature, target) of a positive definite Gram matrix.

    A Cholesky factor is half the work of a general solution, unless the matrix is too close to
    singular; many small systems at once are solved in general.
    """
    if gram.ndim == 2:
        with suppress(LinAlgError):
            factor = cho_factor(gram, lower=True, check_finite=False)
            return np.asarray(cho_solve(factor, cross, check_finite=False))
    return np.asarray(np.linalg.solve(gram, cross))


def positive_inverse(gram: Array) -> Array:
    """The inverse of a positive definite matrix (feature, feature), by its Cholesky factor unless
    it is too close to singular."""
    factor, failed = dpotrf(gram, lower=1)
    if failed:
        return precision(gram)
    lower, _ = dpotri(factor, lower=1)
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def precision(covariance: Array) -> Array:
    """The inverse of (..., column, column), which has every regression on the other columns in it:
    x_i less its expectation given them is the i-th row times x, over the i-th diagonal element."""
    return np.asarray(np.linalg.inv(covariance), dtype=np.float64)


def wald(covariance: Array, beta: Array) -> Array:
    """beta' covariance^-1 beta (...) of coefficients (..., feature)."""
    return np.asarray((beta * solve_many(covariance, beta[..., None])[..., 0]).sum(-1))


def solve_many(covariance: Array, values: Array) -> Array:
    """covariance^-1 values (..., feature, draw); of single features, which may be millions, a
    division."""
    if covariance.shape[-1] == 1:
        return np.asarray(values / np.maximum(covariance, np.finfo(np.float64).tiny))
    return np.asarray(np.linalg.solve(covariance, values))


@dataclass(frozen=True, eq=False)
class Regression:
    """Least squares of each target on the same predictors, with an intercept."""

    coefficients: Array  # (predictor, target)
    inverse: Array  # (predictor, predictor): inverse of the centred sums of products
    noise: Array  # (target,): residual variance
    freedom: int  # residual degrees of freedom

    @classmethod
    def of(cls, products: Array, along: Array, total: Array, windows: int) -> Regression:
        """From centred sums of products over so many windows.

        products (predictor, predictor), along (predictor, target), total (target,).
        """
        freedom = windows - len(products) - 1
        if freedom < 1:
            raise InputError(
                f"Least squares on {len(products)} lagged inputs needs more than "
                f"{len(products) + 1} windows, found {windows}; use fewer variables, a "
                "smaller lag or more rows."
            )
        spread = np.linalg.eigvalsh(products)
        if spread[0] <= SINGULAR * spread[-1]:
            raise InputError(
                "Least squares needs lagged inputs that are not combinations of each other, found "
                "ones that are; remove variables that are sums or copies of others."
            )
        inverse = precision(products)
        coefficients = inverse @ along
        noise = (total - (along * coefficients).sum(0)) / freedom
        return cls(coefficients, inverse, np.maximum(noise, 1e-300), freedom)

    @property
    def t(self) -> Array:
        """t statistics (predictor, target)."""
        error = np.sqrt(np.outer(np.diag(self.inverse), self.noise))
        return np.asarray(self.coefficients / error)

    @property
    def p(self) -> Array:
        """Two-sided p-values of the t statistics (predictor, target)."""
        from scipy.special import stdtr

        return np.asarray(2 * stdtr(self.freedom, -np.abs(self.t)))

    def group_p(self, group: Index) -> Array:
        """p-values (target,) of the F-test that all predictors in `group` have no effect."""
        from scipy.special import fdtrc

        # The Wald form b' V^-1 b / (q s^2) equals the F of comparing residual sums of squares.
        explained = wald(self.inverse[np.ix_(group, group)], self.coefficients[group].T)
        statistic = np.maximum(explained, 0) / (len(group) * self.noise)
        return np.asarray(fdtrc(len(group), self.freedom, statistic))

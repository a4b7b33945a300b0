"""Least squares with t-tests and F-tests, from second moments alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from forecause.errors import InputError
from forecause.regression.design import FloatArray, Moments

Index = npt.NDArray[np.int64]
SINGULAR = 1e-12  # smallest over largest eigenvalue below which inputs count as dependent


@dataclass(frozen=True, eq=False)
class Regression:
    """Least squares of each target on the same predictors, with an intercept."""

    coefficients: FloatArray  # (predictor, target)
    inverse: FloatArray  # (predictor, predictor): inverse of the centred sums of products
    noise: FloatArray  # (target,): residual variance
    freedom: int  # residual degrees of freedom

    @property
    def t(self) -> FloatArray:
        """t statistics (predictor, target)."""
        error = np.sqrt(np.outer(np.diag(self.inverse), self.noise))
        return np.asarray(self.coefficients / error)

    @property
    def p(self) -> FloatArray:
        """Two-sided p-values of the t statistics (predictor, target)."""
        from scipy.special import stdtr

        return np.asarray(2 * stdtr(self.freedom, -np.abs(self.t)))

    def only(self, target: int) -> Regression:
        """The fit of one target."""
        one = slice(target, target + 1)
        return replace(self, coefficients=self.coefficients[:, one], noise=self.noise[one])

    def group_p(self, group: Index) -> FloatArray:
        """p-values (target,) of the F-test that all predictors in `group` have no effect."""
        from scipy.special import fdtrc

        effect = self.coefficients[group]
        precision = np.linalg.inv(self.inverse[np.ix_(group, group)])
        # The Wald form b' V^-1 b / (q s^2) equals the F of comparing residual sums of squares.
        explained = np.einsum("gt,gh,ht->t", effect, precision, effect)
        statistic = np.maximum(explained, 0) / (len(group) * self.noise)
        return np.asarray(fdtrc(len(group), self.freedom, statistic))


def regress(moments: Moments, predictors: Index, targets: Index) -> Regression:
    """Fit the columns `targets` of the moments on the columns `predictors`."""
    freedom = moments.windows - len(predictors) - 1
    if freedom < 1:
        raise InputError(
            f"Least squares on {len(predictors)} lagged inputs needs more than "
            f"{len(predictors) + 1} windows, found {moments.windows}; use fewer variables, a "
            "smaller lag or more rows."
        )
    products = moments.cross[np.ix_(predictors, predictors)]
    spread = np.linalg.eigvalsh(products)
    if spread[0] <= SINGULAR * spread[-1]:
        raise InputError(
            "Least squares needs lagged inputs that are not combinations of each other, found "
            "ones that are; remove variables that are sums or copies of others."
        )
    inverse: FloatArray = np.asarray(np.linalg.inv(products), dtype=np.float64)
    along = moments.cross[np.ix_(predictors, targets)]
    coefficients = inverse @ along
    total = moments.cross[targets, targets]
    noise = (total - (along * coefficients).sum(0)) / freedom
    return Regression(coefficients, inverse, np.maximum(noise, 1e-300), freedom)


def lags_of(moments: Moments, variable: int) -> Index:
    """The columns of the moments that hold lag 1 .. max_lag of one variable."""
    lags = np.arange(1, moments.max_lag + 1)
    return np.asarray(lags * moments.variables + variable, dtype=np.int64)


def full_regression(moments: Moments) -> Regression:
    """The vector autoregression: every variable on all lags of all variables."""
    columns = np.arange(len(moments.cross))
    return regress(moments, columns[moments.variables :], columns[: moments.variables])


def regressions(
    moments: Moments, allowed: npt.NDArray[np.bool_]
) -> Iterator[tuple[int, Index, Regression]]:
    """Every target on its allowed lags (target, source, lag): target, columns and fit.

    Targets that nothing may drive are left out; where all is allowed, the fit is shared.
    """
    columns = np.arange(moments.variables, len(moments.cross))
    whole = full_regression(moments) if allowed.all(axis=(1, 2)).any() else None
    for target, own in enumerate(allowed):
        chosen = columns[own.T.ravel()]  # columns run over (lag, source)
        if whole is not None and own.all():
            yield target, chosen, whole.only(target)
        elif len(chosen):
            yield target, chosen, regress(moments, chosen, np.array([target]))


def edge_tests(moments: Moments, allowed: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """t statistics and p-values (target, source, lag); what is not allowed has 0 and NaN."""
    t, p = np.zeros(allowed.shape), np.full(allowed.shape, np.nan)
    for target, columns, fit in regressions(moments, allowed):
        lags, sources = np.divmod(columns, moments.variables)
        t[target, sources, lags - 1], p[target, sources, lags - 1] = fit.t[:, 0], fit.p[:, 0]
    return t, p


def by_edge(moments: Moments, values: FloatArray) -> FloatArray:
    """Values of a full regression, (lag * source, target), as (target, source, lag)."""
    shape = (moments.max_lag, moments.variables, moments.variables)
    return np.ascontiguousarray(values.reshape(shape).transpose(2, 1, 0))

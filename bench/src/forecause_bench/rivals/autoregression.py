"""The vector autoregression that several rivals share: its windows, fits and tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from forecause.common.arrays import Array, Index
from forecause.data import Panel, Windows
from forecause.refine.candidates import LaggedProducts, lagged_values
from forecause.regression.least_squares import Regression


@dataclass(frozen=True, eq=False)
class Design:
    """Every complete window of a panel in float64, standardised per variable."""

    past: Array  # (window, lag, source); lag 1 comes first
    target: Array  # (window, target)

    @classmethod
    def of(cls, panel: Panel, max_lag: int) -> Design:
        """All windows that lie within one series and touch no missing value."""
        windows = Windows.of(panel, max_lag)
        values = lagged_values(windows, windows.rows)
        return cls(values[:, 1:], values[:, 0])


def lags_of(products: LaggedProducts, variable: int) -> Index:
    """The columns that hold lag 1 .. max_lag of one variable."""
    lags = np.arange(1, products.max_lag + 1)
    return np.asarray(lags * products.variables + variable, dtype=np.int64)


def full_regression(products: LaggedProducts) -> Regression:
    """The vector autoregression: every variable on all lags of all variables."""
    columns = np.arange(len(products.cross))
    return products.regress(columns[products.variables :], columns[: products.variables])


def regressions(
    products: LaggedProducts, allowed: npt.NDArray[np.bool_]
) -> Iterator[tuple[int, Index, Regression]]:
    """Every target on its allowed lags (target, source, lag): target, columns and fit.

    Targets that nothing may drive are left out; where all is allowed, the fit is shared.
    """
    columns = np.arange(products.variables, len(products.cross))
    whole = full_regression(products) if allowed.all(axis=(1, 2)).any() else None
    for target, own in enumerate(allowed):
        chosen = columns[own.T.ravel()]  # columns run over (lag, source)
        if whole is not None and own.all():
            yield target, chosen, _only(whole, target)
        elif len(chosen):
            yield target, chosen, products.regress(chosen, np.array([target]))


def _only(fit: Regression, target: int) -> Regression:
    """The fit of one target."""
    one = slice(target, target + 1)
    return replace(fit, coefficients=fit.coefficients[:, one], noise=fit.noise[one])


def edge_tests(products: LaggedProducts, allowed: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """t statistics and p-values (target, source, lag); what is not allowed has 0 and NaN."""
    t, p = np.zeros(allowed.shape), np.full(allowed.shape, np.nan)
    for target, columns, fit in regressions(products, allowed):
        lags, sources = np.divmod(columns, products.variables)
        t[target, sources, lags - 1], p[target, sources, lags - 1] = fit.t[:, 0], fit.p[:, 0]
    return t, p

"""CausalDiscovery: `discover` as an estimator, for those who live in scikit-learn pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from forecause.common.arrays import Array
from forecause.config import ForecasterName, ForecasterSpec, RuleName, SelectionRule
from forecause.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from forecause.discovery import Discovery
    from forecause.graph.lagged import LaggedGraph


class CausalDiscovery(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """`fc.discover` with scikit-learn's habits: parameters in, `fit`, results with an underscore.

    Parameters
    ----------
    max_lag
        The longest delay to look for, in rows.
    forecaster
        What predicts: a name, or an object such as `fc.forecasters.MLP(hidden=64)`.
    select
        How edges are chosen: a name, or an object such as `fc.TopK(3)`.
    fdr
        The accepted share of false edges; None for the usual one.
    random_state
        The seed: the same gives the same result.
    options
        Any other option of `fc.discover`, by name; the rest in `{"config": fc.Config(...)}`.

    Attributes
    ----------
    run_ : Discovery
        Everything that `fc.discover` found.
    graph_ : LaggedGraph
        The edges.
    scores_ : xarray.DataArray
        What edges were chosen by, (target, source, lag).

    Examples
    --------
    >>> import forecause as fc
    >>> table = fc.simulate(nodes=4, max_lag=2, rows=500, seed=1).frame()
    >>> found = fc.CausalDiscovery(max_lag=2, forecaster="linear").fit(table)
    >>> found.graph_.max_lag
    2
    >>> found.predict(table).shape
    (500, 4)
    """

    run_: Discovery

    def __init__(
        self,
        max_lag: int = 5,
        *,
        forecaster: ForecasterName | ForecasterSpec = "auto",
        select: RuleName | SelectionRule = "auto",
        fdr: float | None = None,
        random_state: int = 0,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.max_lag = max_lag
        self.forecaster = forecaster
        self.select = select
        self.fdr = fdr
        self.random_state = random_state
        self.options = options

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the graph of a table whose rows run in time; y is there for pipelines and unused."""
        from forecause.method import discover

        self._checked(X, reset=True)
        self.run_ = discover(
            X,
            self.max_lag,
            forecaster=self.forecaster,
            select=self.select,
            fdr=self.fdr,
            seed=self.random_state,
            **(self.options or {}),
        )
        return self

    @property
    def graph_(self) -> LaggedGraph:
        """The edges that were found."""
        check_is_fitted(self, "run_")
        return self.run_.graph

    @property
    def scores_(self) -> xr.DataArray:
        """What edges were chosen by, (target, source, lag)."""
        check_is_fitted(self, "run_")
        return self.run_.scores

    def predict(self, X: Any) -> Array:
        """One-step forecasts (row, column) of a table like that of `fit`, as `run_.forecast` makes.

        Each row is forecast from the `max_lag` rows before it; the first ones, and those after a
        missing value, are NaN.
        """
        from forecause.data.panel import Scale
        from forecause.data.windows import Windows
        from forecause.effects.answering import Models

        check_is_fitted(self, "run_")
        self._checked(X, reset=False)
        run = self.run_
        panel = run.panel_of(X)
        left = run.deseasonalised_panel(panel=panel)
        windows = Windows.of(left, run.graph.max_lag)
        windows = Windows(left, run.graph.max_lag, Scale(run.data.mean, run.data.sd), windows.rows)
        forecaster = Models.of(run).guarded
        found = np.full(left.values.shape, np.nan)
        for start in range(0, len(windows), 4096):
            chosen = np.arange(start, min(start + 4096, len(windows)))
            batch = windows.draw(chosen)
            ahead = forecaster.forecast(batch).astype(np.float64)
            found[windows.rows[chosen]] = ahead * run.data.sd + run.data.mean
        if left.course is None:
            return found
        found += left.course.of_rows(left)
        if left.course.levels is not None:  # changes were forecast, from the row before
            numbers = panel.coding.numeric_columns
            found[1:, numbers] += panel.values[:-1, numbers]
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """How much of the variables' variance the one-step forecasts explain: R², their mean.

        Compare settings with it, on later rows than those of `fit`: `GridSearchCV(...,
        cv=TimeSeriesSplit(3))`. A better forecast is not always a better graph.
        """
        forecast = self.predict(X)
        truth = np.asarray(self.run_.panel_of(X).values, dtype=np.float64)
        known = np.isfinite(forecast).all(1) & np.isfinite(truth).all(1)
        if known.sum() < 2:
            raise InputError("There are too few rows without gaps to score forecasts on.")
        error = ((truth - forecast)[known] ** 2).sum(0)
        around = ((truth[known] - truth[known].mean(0)) ** 2).sum(0)
        varying = around > 0
        return float((1 - error[varying] / around[varying]).mean())

    def _checked(self, X: Any, reset: bool) -> None:
        """Remember, or compare, the number and names of the columns, as scikit-learn does."""
        validate_data(self, X, reset=reset, skip_check_array=True)

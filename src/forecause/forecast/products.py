"""Products: splines of a few inputs of every target, and products of pairs of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from forecause.common.arrays import Array, Floats, Index
from forecause.data.windows import Windows, place_knots
from forecause.forecast.forecaster import (
    ENOUGH_WINDOWS,
    PLAIN,
    FitData,
    Forecaster,
    ForecasterSettings,
    Rules,
)
from forecause.forecast.input_tests.closed_form import closed_form_tests
from forecause.forecast.input_tests.designs import KNOTS, line_and_bend
from forecause.forecast.input_tests.protocol import InputTests, TestRequest
from forecause.regression.moments import BATCH, Moments, cross_validated
from forecause.regression.sample import BLOCKS
from forecause.regression.splines import spline_slopes, spline_terms

TERMS = KNOTS - 1  # of a place: its line and its bends


class Products(ForecasterSettings):
    """Which inputs of every target column are multiplied with each other; none: no model for it.

    A place is step * column of a window's past. A target of `auto` that keeps products is tested in
    this model; see input_tests.closed_form.
    """

    kind: ClassVar[str] = "products"
    closed_form: ClassVar[bool] = True
    instant: ClassVar[bool] = True
    refusal: ClassVar[str] = (
        "The forecaster 'products' is kept by single targets; ask for forecaster='auto'."
    )

    places: tuple[tuple[int, ...], ...]  # (target,) of the inputs
    ridges: tuple[float, ...] = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 0.3, 1.0)

    def build(self, shape: tuple[int, int]) -> Forecaster:
        return ProductsModel(shape, self)


class ProductsModel(Forecaster):
    """X_i,t = intercept + splines of some places + sum of weighted products of their factors.

    Factors of a place are its line and its first bend without what the line explains of it.
    """

    state_names = ("knots", "mean", "sd", "slope", "intercept", "curves", "pairs")
    settings: Products

    def __init__(self, shape: tuple[int, int], settings: Products) -> None:
        super().__init__(shape, settings)
        p, most = self.n_variables, max([len(own) for own in settings.places], default=0)
        self.knots = np.zeros((p, KNOTS))
        self.mean, self.sd = np.zeros((p, TERMS)), np.ones((p, TERMS))  # of terms
        self.slope = np.zeros(p)  # of the first bend on the line
        self.intercept = np.zeros(p)
        self.curves = np.zeros((p, most, TERMS))
        self.pairs = np.zeros((p, 2 * most, 2 * most))  # symmetric; half of a product each way

    def has_model_for(self, column: int) -> bool:
        return len(self.settings.places[column]) > 0

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        forecasts = np.repeat(self.intercept[None], len(past), axis=0)
        for target, places in self._modelled():
            terms = self._terms(past, places)
            factors = self._factors(terms, places)
            count = len(places)
            forecasts[:, target] += (terms * self.curves[target, :count]).sum((1, 2))
            pairs = self.pairs[target, : 2 * count, : 2 * count]
            forecasts[:, target] += ((factors @ pairs) * factors).sum(1)
        return forecasts.astype(past.dtype)

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        slopes = np.zeros((len(past), self.n_variables, self.max_lag * self.n_variables))
        for target, places in self._modelled():
            column, count = places % self.n_variables, len(places)
            factors = self._factors(self._terms(past, places), places)
            own = spline_slopes(self._flat(past)[:, places], self.knots[column]) / self.sd[column]
            line, bend = own[..., 0], own[..., 1] - self.slope[column] * own[..., 0]
            by_factor = 2 * factors @ self.pairs[target, : 2 * count, : 2 * count]
            by_factor = by_factor.reshape(len(past), count, 2)
            slopes[:, target, places] = (own * self.curves[target, :count]).sum(2)
            slopes[:, target, places] += by_factor[..., 0] * line + by_factor[..., 1] * bend
        return slopes.reshape(len(past), self.n_variables, *past.shape[1:]).astype(past.dtype)

    def input_tests(self, request: TestRequest) -> InputTests:
        return closed_form_tests(request, ("linear", "additive", "products"))

    def fit(self, fit_data: FitData) -> None:
        fit_data.progress.step("fitting products", 0.0)
        windows = fit_data.windows.thin(ENOUGH_WINDOWS)
        self._standardise(windows)
        batch = windows.whole()
        self.intercept = batch.target.mean(0, dtype=np.float64)
        for target, places in self._modelled():
            self._fit_target(target, places, batch.past, batch.target[:, [target]])
        self.estimate_noise(fit_data.held_out)

    def _standardise(self, windows: Windows) -> None:
        """Knots and moments of the spline terms of every column."""
        self.knots = place_knots(windows, KNOTS).astype(np.float64)
        terms = spline_terms(windows.targets(), self.knots)
        sd = terms.std(0)
        self.mean, self.sd = terms.mean(0), np.where(sd > 1e-9, sd, 1.0)
        scaled = (terms - self.mean) / self.sd
        self.slope = (scaled[..., 0] * scaled[..., 1]).mean(0)

    def _fit_target(self, target: int, places: Index, past: Floats, outcome: Floats) -> None:
        left, right = np.triu_indices(2 * len(places), 1)
        crossed = left // 2 != right // 2  # products are of different places
        left, right = left[crossed], right[crossed]

        def features(rows: Index) -> Array:
            terms = self._terms(past[rows], places)
            factors = self._factors(terms, places)
            return np.concatenate(
                [terms.reshape(len(rows), -1), factors[:, left] * factors[:, right]], axis=1
            )

        blocks = [
            Moments.summed(
                (features(rows), outcome[rows].astype(np.float64))
                for rows in np.array_split(block, -(-len(block) // BATCH))
            )
            for block in np.array_split(np.arange(len(past)), BLOCKS)
        ]
        coefficients = cross_validated(blocks, self.settings.ridges)[:, 0]
        count = len(places) * TERMS
        self.intercept[target] = coefficients[0]
        self.curves[target, : len(places)] = coefficients[1 : 1 + count].reshape(-1, TERMS)
        self.pairs[target, left, right] = self.pairs[target, right, left] = (
            coefficients[1 + count :] / 2
        )

    def _modelled(self) -> list[tuple[int, Index]]:
        """The targets that have a model, and the places that each reads."""
        every = enumerate(self.settings.places)
        return [(target, np.array(places)) for target, places in every if places]

    def _terms(self, past: Floats, places: Index) -> Array:
        """Standardised spline terms (window, place, term)."""
        column = places % self.n_variables
        values = self._flat(past)[:, places].astype(np.float64)
        return np.asarray(
            (spline_terms(values, self.knots[column]) - self.mean[column]) / self.sd[column]
        )

    def _factors(self, terms: Array, places: Index) -> Array:
        """Line and bend of every place, (window, place * 2)."""
        factors = line_and_bend(terms, self.slope[places % self.n_variables])
        return factors.reshape(len(terms), -1)

    @staticmethod
    def _flat(past: Floats) -> Floats:
        return past.reshape(len(past), -1)

"""An additive spline vector autoregression in closed form: the bar for every neural forecaster."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from forecause.common.arrays import Floats, Index
from forecause.data.windows import moments_by_block, place_knots
from forecause.forecast.forecaster import PLAIN, FitData, Forecaster, ForecasterSettings, Rules
from forecause.forecast.input_tests.closed_form import closed_form_tests
from forecause.forecast.input_tests.protocol import InputTests, TestRequest
from forecause.forecast.members import by_domain
from forecause.regression.moments import cross_validated
from forecause.regression.splines import spline_slopes, spline_terms


class Additive(ForecasterSettings):
    """Each input enters as a natural cubic spline: a line and `knots` - 2 bends.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.Additive(knots=4).features(10)
    30
    """

    kind: ClassVar[str] = "additive"
    closed_form: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    instant: ClassVar[bool] = True

    knots: int = 5
    ridges: tuple[float, ...] = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 0.3, 1.0, 3.0, 10.0)

    def build(self, shape: tuple[int, int]) -> Forecaster:
        return by_domain(self, lambda plain: AdditiveModel(shape, plain), shape)

    def features(self, inputs: int) -> int:
        return (self.knots - 1) * inputs


class AdditiveModel(Forecaster):
    """X_i,t = intercept + sum over sources and lags of a smooth curve of X_source,t-lag."""

    state_names = ("knots", "weight", "intercept")
    settings: Additive

    def __init__(self, shape: tuple[int, int], settings: Additive) -> None:
        super().__init__(shape, settings)
        p, terms = self.n_variables, settings.knots - 1
        self.knots: Floats = np.zeros((p, settings.knots), dtype=np.float32)
        self.weight: Floats = np.zeros((p, self.max_lag, p, terms), dtype=np.float32)
        self.intercept = np.zeros(p, dtype=np.float32)

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        weight = self.weight.reshape(self.n_variables, -1)
        return np.asarray(self.design(past) @ weight.T + self.intercept)

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        """The slopes of the curves f(x); under LRP f(x) / x."""
        if not rules.linearise:
            return np.einsum("blsk,tlsk->btls", spline_slopes(past, self.knots), self.weight)
        curves = np.einsum("blsk,tlsk->btls", spline_terms(past, self.knots), self.weight)
        nearly_zero = np.finfo(past.dtype).tiny * 1e6
        return np.asarray(curves / np.where(np.abs(past) < nearly_zero, nearly_zero, past)[:, None])

    def contribution(self, target: int, step: int, source: int, values: Floats) -> Floats:
        terms = spline_terms(values[:, None], self.knots[source, None])[:, 0]
        return np.asarray(terms @ self.weight[target, step, source])

    def input_tests(self, request: TestRequest) -> InputTests:
        return closed_form_tests(request, ("additive",))

    def fit(self, fit_data: FitData) -> None:
        fit_data.progress.step("fitting the additive model", 0.0)
        self.knots = place_knots(fit_data.windows, self.settings.knots).astype(np.float32)
        inputs = self.allowed.reshape(self.n_variables, -1).T
        allowed = np.repeat(inputs, self.settings.knots - 1, axis=0)
        blocks = moments_by_block(fit_data.windows, self.design, len(allowed))
        solution = cross_validated(blocks, self.settings.ridges, allowed)
        self.intercept = solution[0].astype(np.float32)  # (1 + feature, target)
        self.weight = solution[1:].T.reshape(self.weight.shape).astype(np.float32)
        self.estimate_noise(fit_data.held_out)

    def design(self, past: Floats) -> Floats:
        """past (batch, step, variable) -> (batch, step * variable * term)."""
        return spline_terms(past, self.knots.astype(past.dtype)).reshape(len(past), -1)

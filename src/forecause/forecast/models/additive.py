"""An additive spline vector autoregression in closed form: the bar for every neural forecaster."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from forecause.data.streams import moments_by_block, place_knots
from forecause.forecast.backward import PLAIN, Rules, activation
from forecause.forecast.forecaster import FitData, Forecaster, ForecasterSettings
from forecause.forecast.models.by_domain import by_domain
from forecause.regression.moments import cross_validated
from forecause.regression.splines import spline_slopes, spline_terms


class Additive(ForecasterSettings):
    """Each input enters as a natural cubic spline: a line and `knots` - 2 bends.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.Additive(knots=4).features(10)
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

    settings: Additive

    def __init__(self, shape: tuple[int, int], settings: Additive) -> None:
        super().__init__(shape, settings)
        p, terms = self.n_variables, settings.knots - 1
        self.register_buffer("knots", torch.zeros(p, settings.knots))
        self.register_buffer("weight", torch.zeros(p, self.max_lag, p, terms))
        self.register_buffer("intercept", torch.zeros(p))

    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        weight, intercept = self.get_buffer("weight"), self.get_buffer("intercept")
        if not rules.linearise:
            terms = spline_terms(past, self.get_buffer("knots"))
            return torch.einsum("blsk,tlsk->bt", terms, weight) + intercept
        curves = activation(self.curves, past[:, None].expand(-1, self.n_variables, -1, -1), rules)
        return curves.sum((2, 3)) + intercept

    def curves(self, past: Tensor) -> Tensor:
        """Each input's contribution (batch, target, step, source), from past of that shape."""
        terms = spline_terms(past, self.get_buffer("knots"))
        return (terms * self.get_buffer("weight")).sum(-1)

    def jacobian(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        if rules.linearise:
            return super().jacobian(past, rules, domain)
        slopes = spline_slopes(past, self.get_buffer("knots"))
        return torch.einsum("blsk,tlsk->btls", slopes, self.get_buffer("weight"))

    def contribution(self, target: int, step: int, source: int, values: Tensor) -> Tensor:
        terms = spline_terms(values[:, None], self.get_buffer("knots")[source, None])[:, 0]
        return terms @ self.get_buffer("weight")[target, step, source]

    def fit(self, fit_data: FitData) -> None:
        fit_data.progress.step("fitting the additive model", 0.0)
        self.get_buffer("knots").copy_(place_knots(fit_data.windows, self.settings.knots))
        inputs = self.get_buffer("allowed").flatten(1).T
        allowed = inputs.repeat_interleave(self.settings.knots - 1, dim=0)
        blocks = moments_by_block(fit_data.windows, self.design, len(allowed))
        solution = cross_validated(blocks, self.settings.ridges, allowed)
        for target in range(self.n_variables):
            self._set(target, solution[:, target])
        self.estimate_noise(fit_data.held_out)

    def design(self, past: Tensor) -> Tensor:
        """past (batch, step, variable) -> (batch, step * variable * term)."""
        return spline_terms(past, self.get_buffer("knots").to(past.dtype)).flatten(1)

    def _set(self, target: int, coefficients: Tensor) -> None:
        shape = (self.max_lag, self.n_variables, self.settings.knots - 1)
        self.get_buffer("weight")[target] = coefficients[1:].unflatten(0, shape)
        self.get_buffer("intercept")[target] = coefficients[0]

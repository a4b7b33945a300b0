"""A linear vector autoregression in closed form, its ridge penalty chosen on left-out time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from forecause.data.streams import BLOCKS, flat, moments_by_block, past_and_targets
from forecause.data.windows import Windows
from forecause.forecast.backward import PLAIN, Rules
from forecause.forecast.forecaster import FitData, Forecaster, ForecasterSettings
from forecause.forecast.models.by_domain import by_domain
from forecause.regression.moments import cross_validated
from forecause.regression.screen import chosen_moments, is_wide, screened_inputs


class Linear(ForecasterSettings):
    """Penalties tried, relative to the number of windows; 0 is ordinary least squares.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.Linear(ridges=(0.0, 0.1)).kind
    'linear'
    """

    kind: ClassVar[str] = "linear"
    closed_form: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    instant: ClassVar[bool] = True

    ridges: tuple[float, ...] = (0.0, 1e-3, 1e-2, 1e-1, 0.3, 1.0, 3.0, 10.0)

    def build(self, shape: tuple[int, int]) -> Forecaster:
        return by_domain(self, lambda plain: LinearModel(shape, plain), shape)


class LinearModel(Forecaster):
    """X_t = intercept + sum over lags of A_lag X_{t-lag}."""

    settings: Linear

    def __init__(self, shape: tuple[int, int], settings: Linear) -> None:
        super().__init__(shape, settings)
        p = self.n_variables
        self.register_buffer("weight", torch.zeros(p, self.max_lag, p))  # (target, step, source)
        self.register_buffer("intercept", torch.zeros(p))

    @property
    def is_straight(self) -> bool:
        return True

    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return torch.einsum("bls,tls->bt", past, self.get_buffer("weight")) + self.get_buffer(
            "intercept"
        )

    def jacobian(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self.get_buffer("weight").expand(len(past), -1, -1, -1)

    def contribution(self, target: int, step: int, source: int, values: Tensor) -> Tensor:
        return values * self.get_buffer("weight")[target, step, source]

    def fit(self, fit_data: FitData) -> None:
        fit_data.progress.step("fitting the linear model", 0.0)
        if is_wide(fit_data.windows.inputs, len(fit_data.windows)):
            self._fit_screened(fit_data.windows)
            self.estimate_noise(fit_data.held_out)
            return
        allowed = self.get_buffer("allowed").flatten(1).T
        blocks = moments_by_block(fit_data.windows, flat, len(allowed))
        self._set(cross_validated(blocks, self.settings.ridges, allowed))
        self.estimate_noise(fit_data.held_out)

    def _fit_screened(self, windows: Windows) -> None:
        """Every target on the inputs that a screen left of very many."""
        past, targets = past_and_targets(windows)
        allowed = self.get_buffer("allowed").flatten(1)
        latest = torch.arange(self.n_variables) + (self.max_lag - 1) * self.n_variables
        chosen = screened_inputs(past, targets, latest, allowed)
        pieces = np.array_split(np.arange(len(past)), BLOCKS)
        blocks = [chosen_moments(past[rows], targets[rows], chosen) for rows in pieces]
        solution = cross_validated(blocks, self.settings.ridges)[..., 0]  # (target, 1 + input)
        own = (solution[:, 1:] * chosen.taken).float()
        weight = torch.zeros(allowed.shape).scatter_(1, chosen.inputs, own)
        self.get_buffer("weight").copy_(weight.view_as(self.get_buffer("weight")))
        self.get_buffer("intercept").copy_(solution[:, 0])

    def _set(self, coefficients: Tensor) -> None:
        """coefficients (1 + max_lag * variable, target), the intercept first."""
        weight = coefficients[1:].T.unflatten(1, (self.max_lag, self.n_variables))
        self.get_buffer("weight").copy_(weight)
        self.get_buffer("intercept").copy_(coefficients[0])

"""A linear vector autoregression in closed form, its ridge penalty chosen on left-out time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from forecause.common.arrays import Floats, Index
from forecause.data.windows import Windows, flat, moments_by_block, past_and_targets
from forecause.forecast.forecaster import PLAIN, FitData, Forecaster, ForecasterSettings, Rules
from forecause.forecast.input_tests.closed_form import closed_form_tests
from forecause.forecast.input_tests.protocol import InputTests, TestRequest
from forecause.forecast.members import by_domain
from forecause.regression.moments import cross_validated
from forecause.regression.sample import BLOCKS
from forecause.regression.screen import chosen_moments, is_wide, screened_inputs


class Linear(ForecasterSettings):
    """Penalties tried, relative to the number of windows; 0 is ordinary least squares.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.Linear(ridges=(0.0, 0.1)).kind
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

    state_names = ("weight", "intercept")
    settings: Linear

    def __init__(self, shape: tuple[int, int], settings: Linear) -> None:
        super().__init__(shape, settings)
        p = self.n_variables
        self.weight = np.zeros((p, self.max_lag, p), dtype=np.float32)  # (target, step, source)
        self.intercept = np.zeros(p, dtype=np.float32)

    @property
    def is_straight(self) -> bool:
        return True

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        flat_past, weight = (x.reshape(len(x), -1) for x in (past, self.weight))
        return np.asarray(flat_past @ weight.T + self.intercept)

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        return np.broadcast_to(self.weight, (len(past), *self.weight.shape))

    def contribution(self, target: int, step: int, source: int, values: Floats) -> Floats:
        return np.asarray(values * self.weight[target, step, source])

    def input_tests(self, request: TestRequest) -> InputTests:
        return closed_form_tests(request, ("linear",))

    def fit(self, fit_data: FitData) -> None:
        fit_data.progress.step("fitting the linear model", 0.0)
        if is_wide(fit_data.windows.inputs, len(fit_data.windows)):
            self._fit_screened(fit_data.windows)
        else:
            allowed = self.allowed.reshape(self.n_variables, -1).T
            blocks = moments_by_block(fit_data.windows, flat, len(allowed))
            solution = cross_validated(blocks, self.settings.ridges, allowed)
            self.intercept = solution[0].astype(np.float32)  # (1 + max_lag * variable, target)
            self.weight = solution[1:].T.reshape(self.weight.shape).astype(np.float32)
        self.estimate_noise(fit_data.held_out)

    def _fit_screened(self, windows: Windows) -> None:
        """Every target on the inputs that a screen left of very many."""
        past, targets = past_and_targets(windows)
        allowed = self.allowed.reshape(self.n_variables, -1)
        latest = np.arange(self.n_variables) + (self.max_lag - 1) * self.n_variables
        chosen = screened_inputs(past, targets, latest, allowed)
        pieces = np.array_split(np.arange(len(past)), BLOCKS)
        blocks = [chosen_moments(past[rows], targets[rows], chosen) for rows in pieces]
        solution = cross_validated(blocks, self.settings.ridges)[..., 0]  # (target, 1 + input)
        weight = np.zeros(allowed.shape, dtype=np.float32)
        np.put_along_axis(weight, chosen.inputs, solution[:, 1:] * chosen.taken, axis=1)
        self.weight = weight.reshape(self.weight.shape)
        self.intercept = solution[:, 0].astype(np.float32)

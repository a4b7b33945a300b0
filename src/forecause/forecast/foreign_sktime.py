"""Reduction forecasters of sktime: make_reduction(regressor, window_length=5).

Such a forecaster fits its regressor to windows of the target and of the past of X. That regressor
is what is fitted here, to the same windows.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from forecause.errors import InputError
from forecause.forecast.foreign import Regressors

READS_WINDOWS = "TabularRegressionForecaster"  # how the names of such classes end

Floats = npt.NDArray[Any]


class SktimeReduction(Regressors):
    """The regressor inside the forecaster, a copy for every target."""

    def __init__(self, forecaster: Any) -> None:
        if not type(forecaster).__name__.endswith(READS_WINDOWS):
            raise InputError(
                "Of sktime, forecasters of make_reduction(regressor, window_length=5) can be "
                f"fitted to windows; found {type(forecaster).__name__}. Give fit= and predict= "
                "functions."
            )
        super().__init__(forecaster.estimator)
        self.lag = int(forecaster.window_length)

    def fit(self, past: Floats, target: Floats, seed: int) -> list[Any]:
        if self.lag != past.shape[1]:
            raise InputError(
                "The reduction must read as many rows as the lag window has: build it with "
                f"window_length={past.shape[1]}, not {self.lag}."
            )
        return super().fit(past, target, seed)

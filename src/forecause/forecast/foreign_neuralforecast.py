"""Models of neuralforecast that take one series at a time, such as NHITS(h=1, input_size=5).

Every window is a series of its own, so a fold of windows holds nothing of the other. A fresh copy
is trained for every target; the past of all other variables are its historic exogenous inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.errors import InputError

BATCH = 4_096  # windows that are forecast at once

Floats = npt.NDArray[Any]


class NeuralForecastModel:
    """A copy built anew from the model's own arguments for every target and fit."""

    can_be_refitted = True

    def __init__(self, model: Any) -> None:
        self.model, self._asked = model, dict(model.hparams)
        if model.MULTIVARIATE or not model.EXOGENOUS_HIST:
            raise InputError(
                f"{type(model).__name__} does not read the past of other variables for one series "
                "at a time; take a model of neuralforecast with hist_exog_list, such as NHITS."
            )

    def fit(self, past: Floats, target: Floats, seed: int) -> list[Any]:
        lag, variables = past.shape[1:]
        if (self._asked["h"], self._asked["input_size"]) != (1, lag):
            raise InputError(
                f"{type(self.model).__name__} must forecast one row from as many as the lag window "
                f"has: build it with h=1, input_size={lag}."
            )
        rows = np.concatenate([past, target[:, None]], axis=1)
        models = []
        for place in range(variables):
            others = [f"x{i}" for i in range(variables) if i != place]
            own = {"hist_exog_list": others, "random_seed": seed + 1, "valid_batch_size": BATCH}
            model = type(self.model)(**{**self._asked, **own})
            model.fit(_series(rows, place))
            models.append(model)
        return models

    def predict(self, fitted: list[Any], past: Floats) -> Floats:
        told = [model.predict(_series(past, place)) for place, model in enumerate(fitted)]
        return np.concatenate(told, axis=1)

    def importances(self, fitted: list[Any]) -> None:
        return None


def _series(windows: Floats, place: int) -> Any:
    """(window, row, variable) as series of one variable, the others beside it."""
    from neuralforecast.tsdataset import TimeSeriesDataset

    count, rows, variables = windows.shape
    is_known = np.ones((count, rows, 1))
    order = [place, *(i for i in range(variables) if i != place)]
    values = np.concatenate([windows[:, :, order], is_known], axis=2).astype(np.float32)
    names = ["y", *(f"x{i}" for i in order[1:]), "available_mask"]
    ends = np.arange(0, count * rows + 1, rows)
    return TimeSeriesDataset(values.reshape(count * rows, -1), names, ends, y_idx=0)

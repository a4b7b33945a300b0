"""Models of darts, neuralforecast and sktime, each fitted to windows and asked one step ahead.

Every window is a short series of its own, so nothing of another fold is seen. None of these
libraries is imported before one of its models is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forecause.common.arrays import Floats
from forecause.errors import InputError
from forecause.forecast.foreign import Adapter, Regressors

READS_WINDOWS = "TabularRegressionForecaster"  # how the names of sktime's reductions end

# Time and memory:
BATCH = 4_096  # windows that neuralforecast forecasts at once


class DartsModel(Adapter):
    """A global model, such as LightGBMModel(lags=5) or NBEATSModel(input_chunk_length=5, ...).

    One series holds all variables; a model with lags_past_covariates is fitted once for every
    variable instead, with the others as its past covariates.
    """

    def __init__(self, model: Any) -> None:
        families = [family.__name__ for family in type(model).__mro__]
        if not hasattr(model, "untrained_model") or "LocalForecastingModel" in families:
            raise InputError(
                "Of darts, global models such as LightGBMModel(lags=5) can be fitted to windows; "
                f"{type(model).__name__} is fitted to one series. Give fit= and predict= functions."
            )
        self.model = model
        self.by_covariates = bool(model.model_params.get("lags_past_covariates"))

    def fit(self, past: Floats, target: Floats, seed: int) -> list[Any]:
        self._check(past.shape[1])
        rows = np.concatenate([past, target[:, None]], axis=1)
        models = []
        for series in self._parts(rows):
            models.append(self.model.untrained_model())
            models[-1].fit(**series)
        return models

    def predict(self, fitted: list[Any], past: Floats) -> Floats:
        told = []
        for model, series in zip(fitted, self._parts(past), strict=True):
            each = model.predict(1, **series, verbose=False, show_warnings=False)
            told.append(np.stack([one.values(copy=False)[0] for one in each]))
        return np.concatenate(told, axis=1)

    def _parts(self, rows: Floats) -> list[dict[str, Any]]:
        """What each model is given of windows (window, row, variable)."""
        if not self.by_covariates:
            return [{"series": _darts_series(rows)}]
        return [
            {
                "series": _darts_series(rows[:, :, [place]]),
                "past_covariates": _darts_series(np.delete(rows, place, axis=2)),
            }
            for place in range(rows.shape[2])
        ]

    def _check(self, lag: int) -> None:
        first, last, first_past = self.model.extreme_lags[:3]
        reads = -min(first or 0, first_past or 0)
        if reads > lag or last > 0:
            raise InputError(
                f"{type(self.model).__name__} reads {reads} rows and forecasts {last + 1}; it must "
                f"read at most max_lag={lag} rows and forecast one."
            )


def _darts_series(windows: Floats) -> list[Any]:
    """(window, row, variable) as a list of series."""
    from darts import TimeSeries

    return [TimeSeries.from_values(window.astype(np.float32)) for window in windows]


class NeuralForecastModel(Adapter):
    """A model that takes one series at a time, such as NHITS(h=1, input_size=5).

    It is built anew from its own arguments for every target and fit; the past of all other
    variables are its historic exogenous inputs.
    """

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
            model.fit(_neuralforecast_series(rows, place))
            models.append(model)
        return models

    def predict(self, fitted: list[Any], past: Floats) -> Floats:
        told = [
            model.predict(_neuralforecast_series(past, place)) for place, model in enumerate(fitted)
        ]
        return np.concatenate(told, axis=1)


def _neuralforecast_series(windows: Floats, place: int) -> Any:
    """(window, row, variable) as series of one variable, the others beside it."""
    from neuralforecast.tsdataset import TimeSeriesDataset

    count, rows, variables = windows.shape
    is_known = np.ones((count, rows, 1))
    order = [place, *(i for i in range(variables) if i != place)]
    values = np.concatenate([windows[:, :, order], is_known], axis=2).astype(np.float32)
    names = ["y", *(f"x{i}" for i in order[1:]), "available_mask"]
    ends = np.arange(0, count * rows + 1, rows)
    return TimeSeriesDataset(values.reshape(count * rows, -1), names, ends, y_idx=0)


class SktimeReduction(Regressors):
    """The regressor inside make_reduction(regressor, window_length=5), a copy for every target."""

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


ADAPTERS: dict[str, Callable[[Any], Adapter]] = {
    "darts": DartsModel,
    "neuralforecast": NeuralForecastModel,
    "sktime": SktimeReduction,
}

"""Global models of darts, such as LightGBMModel(lags=5) or NBEATSModel(input_chunk_length=5, ...).

Every window is a short series, so a fold of windows is a list of series: nothing of the other fold
is seen. One series holds all variables; a model with lags_past_covariates is fitted once for every
variable instead, with the others as its past covariates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.errors import InputError

Floats = npt.NDArray[Any]


class DartsModel:
    """Untrained copies are fitted to windows as series, and asked one step ahead."""

    can_be_refitted = True

    def __init__(self, model: Any) -> None:
        if not hasattr(model, "untrained_model") or "LocalForecastingModel" in _families(model):
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

    def importances(self, fitted: Any) -> None:
        return None

    def _parts(self, rows: Floats) -> list[dict[str, Any]]:
        """What each model is given of windows (window, row, variable)."""
        if not self.by_covariates:
            return [{"series": _series(rows)}]
        return [
            {
                "series": _series(rows[:, :, [place]]),
                "past_covariates": _series(np.delete(rows, place, axis=2)),
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


def _families(model: Any) -> list[str]:
    return [family.__name__ for family in type(model).__mro__]


def _series(windows: Floats) -> list[Any]:
    """(window, row, variable) as a list of series."""
    from darts import TimeSeries

    return [TimeSeries.from_values(window.astype(np.float32)) for window in windows]

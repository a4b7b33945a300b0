"""Global models of darts, such as LightGBMModel(lags=5) or NBEATSModel(input_chunk_length=5, ...).

Every window is a short series of all variables, so a fold of windows is a list of series: nothing
of the other fold is seen. The model must read as many rows as the lag window has, and forecast one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]


class DartsModel:
    """An untrained copy is fitted to windows as multivariate series, and asked one step ahead."""

    can_be_refitted = True

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, past: Floats, target: Floats, seed: int) -> Any:
        model = self.model.untrained_model()
        model.fit(_series(np.concatenate([past, target[:, None]], axis=1)))
        return model

    def predict(self, fitted: Any, past: Floats) -> Floats:
        told = fitted.predict(1, series=_series(past), verbose=False, show_warnings=False)
        return np.stack([one.values(copy=False)[0] for one in told])

    def importances(self, fitted: Any) -> None:
        return None


def _series(windows: Floats) -> list[Any]:
    """(window, row, variable) as a list of series."""
    from darts import TimeSeries

    return [TimeSeries.from_values(window.astype(np.float32)) for window in windows]

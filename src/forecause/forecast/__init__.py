"""The forecasting station: models that predict X_t from its past, and how they are fitted."""

from forecause.forecast.comparison import naive_loss
from forecause.forecast.fitting import Fitted, fit_forecaster
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.registry import FORECASTERS, build, preset_settings

__all__ = [
    "FORECASTERS",
    "Fitted",
    "Forecaster",
    "build",
    "fit_forecaster",
    "naive_loss",
    "preset_settings",
]

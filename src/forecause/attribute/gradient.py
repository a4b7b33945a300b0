"""Plain gradients: how far the forecast moves when an input moves a little."""

from __future__ import annotations

from torch import Tensor

from forecause.forecast.base import Forecaster


def gradient(forecaster: Forecaster, past: Tensor) -> Tensor:
    """d forecast / d input; its mean square is the gradient energy of the paper's theorem."""
    return forecaster.jacobian(past)


def input_times_gradient(forecaster: Forecaster, past: Tensor) -> Tensor:
    """Gradient times the input's own value: its share of the forecast, to first order."""
    return forecaster.jacobian(past) * past[:, None]

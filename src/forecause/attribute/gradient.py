"""Plain gradients: how far the forecast moves when an input moves a little."""

from __future__ import annotations

from torch import Tensor

from forecause.forecast.forecaster import Forecaster


def gradient(forecaster: Forecaster, window: Tensor) -> Tensor:
    """d forecast / d input; its mean square is the gradient energy of the paper's theorem."""
    return forecaster.jacobian(window[:, :-1])


def input_times_gradient(forecaster: Forecaster, window: Tensor) -> Tensor:
    """Gradient times the input's own value: its share of the forecast, to first order."""
    past = window[:, :-1]
    return forecaster.jacobian(past) * forecaster.inputs(past)[:, None]

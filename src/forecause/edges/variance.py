"""Does an input change the spread of a target? Closed-form tests of every (target, source, lag)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from torch import Tensor

from forecause.data.streams import inputs_of, moments_of, place_knots
from forecause.data.variables import Inputs, groups_of
from forecause.data.windows import Windows
from forecause.forecast.models.additive import Additive, AdditiveModel
from forecause.graph.axes import labelled
from forecause.regression.moments import Moments, with_intercept

WINDOWS_PER_TERM = 5  # below this the basis is a line per input, without bends
SMALLEST = 1e-4  # squared error, relative to its mean, below which its logarithm is not trusted


def variance_p_values(windows: Windows) -> xr.DataArray:
    """P-value that an input leaves a target's variance alone given all others.

    The additive spline model takes out the mean; the log squared errors that remain are regressed
    on the same basis, one F-test over all terms of an input. The result is (target, source, lag).
    A label has no variance besides its mean: 1 for such a target.
    """
    inputs = inputs_of(windows)
    design, groups = _basis(windows, inputs)
    mean = moments_of(windows, design)
    spread = moments_of(windows, design, _LogSquares(mean, design))
    p_values = spread.group_p_values(groups)[inputs.coding.first]
    for label in inputs.coding.labels:
        p_values[inputs.coding.variables.index(label.name)] = 1.0
    return labelled(inputs.by_lag(p_values), inputs.coding.variables)


def _basis(
    windows: Windows, inputs: Inputs
) -> tuple[Callable[[Tensor], Tensor], list[npt.NDArray[np.int64]]]:
    """The design of the additive model, and the features of each input."""
    model = AdditiveModel(windows.shape, Additive())
    terms, count = model.settings.knots - 1, inputs.steps * inputs.variables
    places, owner = inputs.places(np.arange(count))
    if len(windows) < WINDOWS_PER_TERM * windows.shape[0] * windows.shape[1] * terms:
        return lambda past: past.flatten(1)[:, places], groups_of(owner, count)
    model.get_buffer("knots").copy_(place_knots(windows, model.settings.knots))
    kept = (places[:, None] * terms + np.arange(terms)).ravel()
    return lambda past: model.design(past)[:, kept], groups_of(owner.repeat(terms), count)


class _LogSquares:
    """Past and target of a batch of windows -> log squared errors (batch, variable)."""

    def __init__(self, mean: Moments, design: Callable[[Tensor], Tensor]) -> None:
        self.design = design
        self.coefficients = mean.solve()
        self.inverse = mean.inverse()
        self.floor = SMALLEST * mean.loss(self.coefficients)

    def __call__(self, past: Tensor, target: Tensor) -> Tensor:
        rows = with_intercept(self.design(past))
        squares = (target - rows @ self.coefficients).square()
        # A fitted error has variance 1 - leverage, so an unusual past would look calm.
        leverage = (rows @ self.inverse * rows).sum(1, keepdim=True)
        return torch.log(squares / (1 - leverage).clamp(min=1e-3) + self.floor)

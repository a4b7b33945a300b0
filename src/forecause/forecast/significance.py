"""Does an input help at all? Closed-form tests of every (target, source, lag)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr

from forecause.data.windows import Windows
from forecause.forecast.additive import Additive, AdditiveSettings, place_knots
from forecause.forecast.regression import Moments
from forecause.graph.lagged import AXES

WINDOWS_PER_TERM = 5  # below this the curved test has too little data and the straight one is used


def edge_p_values(windows: Windows, curved: Sequence[bool]) -> xr.DataArray:
    """P-value that an input has no effect given all others, (target, source, lag).

    Targets marked `curved` are tested in the additive spline model, one F-test over all terms of
    an input; the others in the linear model, which has more power where effects are straight.
    """
    steps, variables = windows.shape
    names = list(windows.panel.variables)
    coords = {"target": names, "source": names, "lag": np.arange(1, steps + 1)}
    terms = AdditiveSettings().knots - 1
    enough = len(windows) >= WINDOWS_PER_TERM * steps * variables * terms
    bend = np.asarray(curved) & enough
    p_values = np.empty((variables, variables, steps))
    for is_curved in np.unique(bend):
        tested = _test(windows, bool(is_curved))
        p_values[bend == is_curved] = tested[bend == is_curved]
    return xr.DataArray(p_values, dims=AXES, coords=coords)


def _test(windows: Windows, curved: bool) -> npt.NDArray[np.float64]:
    steps, variables = windows.shape
    if curved:
        model = Additive(windows.shape, AdditiveSettings())
        model.get_buffer("knots").copy_(place_knots(windows, model.settings.knots))
        design, terms = model.design, model.settings.knots - 1
    else:
        design, terms = _flat, 1
    groups = np.arange(steps * variables * terms).reshape(-1, terms)
    p_values = Moments.of(windows, design).group_p_values(list(groups))
    by_step = p_values.reshape(variables, steps, variables)  # (target, step, source), oldest first
    return by_step[:, ::-1].transpose(0, 2, 1)


def _flat(past: torch.Tensor) -> torch.Tensor:
    return past.flatten(1)

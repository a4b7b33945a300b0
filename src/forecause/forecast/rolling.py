"""Rolling a forecaster forward: each forecast becomes the newest row of the past."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from forecause.forecast.forecaster import Forecaster


def _as_forecast(_step: int, forecast: Tensor) -> Tensor:
    return forecast


@torch.no_grad()
def roll(
    forecaster: Forecaster,
    past: Tensor,
    steps: int,
    following: Callable[[int, Tensor], Tensor] = _as_forecast,
    domain: Tensor | None = None,
) -> Tensor:
    """past (case, max_lag, column) -> (case, step, column); the domain (case,) stays as it is.

    `following` maps a step and its forecast (case, column) to what is taken to happen.
    """
    rows = []
    for step in range(steps):
        row = following(step, forecaster(past, domain=domain))
        past = torch.cat([past[:, 1:], row[:, None]], dim=1)
        rows.append(row)
    return torch.stack(rows, dim=1)

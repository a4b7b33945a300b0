"""Interventions on the forecaster's input: shift one value by one standard deviation."""

from __future__ import annotations

import torch
from torch import Tensor

from forecause.forecast.forecaster import Forecaster


@torch.no_grad()
def intervention(forecaster: Forecaster, window: Tensor) -> Tensor:
    """Change of every forecast when one input is raised by one sd, all else held fixed."""
    past = window[:, :-1]
    before = forecaster(past)
    effect = past.new_empty(len(past), before.shape[1], past.shape[1], before.shape[1])
    for step in range(past.shape[1]):
        for source in range(before.shape[1]):
            shifted = past.clone()
            shifted[:, step, source] += 1.0  # inputs are standardised
            effect[:, :, step, source] = forecaster(shifted) - before
    return effect

"""Which inputs a network is given where there are many: those that closed forms find strongest.

A network's cost grows with every input it reads, while a closed form ranks thousands in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from forecause.data.windows import Windows
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.models.separate import MOST_INPUTS

READ_WINDOWS = 500
BATCH = 50


def strongest_inputs(models: Sequence[Forecaster], windows: Windows) -> Tensor:
    """The places step * variable of every target's MOST_INPUTS strongest inputs, (target, input).

    Strong is what has the largest share of a target's gradient energy in any of the models. The
    target's own latest value is always among them.
    """
    sample = windows.sample(READ_WINDOWS, np.random.default_rng(0))
    shares = torch.stack([_energy_shares(model, sample) for model in models]).amax(0)
    variables = len(shares)
    own = torch.arange(variables)
    shares[own, shares.shape[1] - variables + own] = torch.inf
    return shares.topk(MOST_INPUTS, dim=1).indices.sort(dim=1).values


def _energy_shares(model: Forecaster, windows: Windows) -> Tensor:
    """Share of each target's gradient energy, (target, step * variable)."""
    device = model.get_buffer("allowed").device
    energy = torch.zeros(windows.shape[1], windows.shape[0] * windows.shape[1])
    for batch in windows.batches(BATCH):
        window = batch.to(device)
        slopes = model.jacobian(window.past, domain=window.domain).detach()
        energy += slopes.square().sum(0).flatten(1).cpu()
    return energy / energy.sum(1, keepdim=True).clamp(min=1e-12)

"""Sparse gradients: a penalty under which few inputs move a forecast, and the choice of its weight.

The penalty is the L1 norm of the Jacobian, the sum of E|d output / d input| over all pairs. To have
all of it takes one backward pass per output; a random projection v^T J takes one in all. Which norm
that estimates depends on v:

- v one-hot, an output drawn at random: E|v^T J_j| is the mean of |J_ij| over the outputs i, without
  bias. Every pair is shrunk by itself, and down to zero where it is not worth its price.
- v Gaussian: E|v^T J_j| = sqrt(2 / pi) times the L2 norm of column j. That is a group lasso: an
  input that drives one target is hardly shrunk for the others. Random signs do nearly the same.
- (v^T J_j)^2 with either: the squared Frobenius norm, a ridge, which leaves no pair out.

A graph is sparse pair by pair, so v is one-hot here, another output for every window of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from forecause.forecast.forecaster import FitData
from forecause.networks.by_blocks import each_trained
from forecause.networks.network import NetworkModule, TensorWindow, over_windows
from forecause.regression.p_values import clearly_better


class Penalty:
    """The L1 norm of the Jacobian times a weight, estimated anew for every batch."""

    def __init__(self, weight: float, seed: int = 0) -> None:
        self.weight = weight
        self.draws = torch.Generator().manual_seed(seed)

    def loss(self, model: NetworkModule, window: TensorWindow) -> Tensor:
        """Mean error plus penalty per target, (variable,), from one forward pass."""
        past = window.past.detach().requires_grad_()
        outputs = model.outputs(past, domain=window.domain)
        errors = model.likelihood.errors(outputs, window.target).mean(0)
        return errors + self.weight * self.norms(past, outputs)

    def norms(self, past: Tensor, outputs: Tensor) -> Tensor:
        """Sum over outputs and inputs of |d output / d input| per target, (variable,).

        `outputs` (batch, variable, output) are the model's for `past`, which wants its gradient.
        """
        windows, targets, each = outputs.shape
        asked = self._asked(windows, targets * each).to(past.device)
        projected = outputs.flatten(1)[torch.arange(windows, device=past.device), asked].sum()
        (slopes,) = torch.autograd.grad(projected, past, create_graph=True)
        sizes = slopes.abs().sum((1, 2)) * (targets * each / windows)
        return sizes.new_zeros(targets).index_add(0, asked // each, sizes)

    def _asked(self, windows: int, outputs: int) -> Tensor:
        """An output for each window, (window,), all equally often as far as they go."""
        rounds = -(-windows // outputs)
        orders = [torch.randperm(outputs, generator=self.draws) for _ in range(rounds)]
        return torch.cat(orders)[:windows]


def learn_sparsely(
    model: NetworkModule,
    fit_data: FitData,
    weights: Sequence[float],
    learn: Callable[[Any, FitData, Penalty | None], None],
) -> float:
    """Let the model `learn` under every weight, smallest first, and leave it with the one to keep.

    A larger weight must forecast the held-out windows clearly better, because where the forecast
    is best the gradients are already shrunk so far that weak inputs cannot be ranked. All learn
    from the same start and the same windows: left-out blocks would leave fewer to learn from, and
    fewer windows ask for larger weights. To go on from a smaller weight would be of no use either,
    as training keeps what it starts from wherever that is no worse.
    """
    each = fit_data
    if fit_data.seconds is not None:
        each = replace(fit_data, seconds=fit_data.seconds / len(weights))
    learned = each_trained(_learned, (deepcopy(model), each, learn), weights)
    best, errors, kept = weights[0], np.empty(0), _weights_of(model)
    for weight, after in zip(weights, learned, strict=True):
        model.load_state_dict(after)
        held_out = over_windows(model, fit_data.held_out, model.errors).mean(1).numpy()
        if weight == weights[0] or clearly_better(errors, held_out):
            best, errors, kept = weight, held_out, after
    model.load_state_dict(kept)
    return best


def _learned(common: tuple[NetworkModule, FitData, Any], weight: float) -> dict[str, Tensor]:
    """The weights of a copy that learned under a penalty."""
    start, fit_data, learn = common
    model = deepcopy(start)
    learn(model, fit_data, Penalty(weight, fit_data.seed) if weight else None)
    return _weights_of(model)


def _weights_of(model: NetworkModule) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}

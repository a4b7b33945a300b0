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
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from forecause.forecast.base import Forecaster, Lesson, over_windows, silent

TRIED = (0.0, 0.03, 0.1, 0.3)  # weights of the penalty, of standardised inputs and outputs
BLOCKS = 3  # of time, each left out once to choose a weight
FEW = 2000  # windows; with more, the held-out tail is enough to choose by


class Penalty:
    """The L1 norm of the Jacobian times a weight, estimated anew for every batch."""

    def __init__(self, weight: float, seed: int = 0) -> None:
        self.weight = weight
        self.draws = torch.Generator().manual_seed(seed)

    def loss(self, model: Forecaster, window: Tensor) -> Tensor:
        """Mean error plus penalty per target, (variable,), from one forward pass."""
        past = window[:, :-1].detach().requires_grad_()
        outputs = model.outputs(past)
        errors = model.likelihood.errors(outputs, model.following(window)).mean(0)
        return errors + self.weight * self.norms(model, past, outputs)

    def norms(self, model: Forecaster, past: Tensor, outputs: Tensor) -> Tensor:
        """Sum over outputs and inputs of |d output / d input| per target, (variable,).

        `outputs` (batch, variable, output) are the model's for `past`, which wants its gradient.
        """
        windows, targets, each = outputs.shape
        asked = self._asked(windows, targets * each).to(past.device)
        projected = outputs.flatten(1)[torch.arange(windows, device=past.device), asked].sum()
        (slopes,) = torch.autograd.grad(projected, past, create_graph=True)
        sizes = model.inputs(slopes).abs().sum((1, 2)) * (targets * each / windows)
        return sizes.new_zeros(targets).index_add(0, asked // each, sizes)

    def _asked(self, windows: int, outputs: int) -> Tensor:
        """An output for each window, (window,), all equally often as far as they go."""
        rounds = -(-windows // outputs)
        orders = [torch.randperm(outputs, generator=self.draws) for _ in range(rounds)]
        return torch.cat(orders)[:windows]


def best_weight(
    weights: Sequence[float], lesson: Lesson, untrained: Callable[[float], Forecaster]
) -> float:
    """The weight under which left-out windows are forecast best.

    `untrained` gives a fresh forecaster with this weight alone. Each is fitted from its own start:
    one that continued where a smaller weight ended would keep those weights wherever its own are
    no better, and never look worse.
    """
    parts = _parts(lesson)

    def judged(weight: float) -> float:
        total = 0.0
        for part in parts:
            trial = untrained(weight)
            trial.fit(part)
            total += float(over_windows(trial, part.held_out, trial.errors).double().sum())
        lesson.report("choosing how sparse the gradients are", weights.index(weight) / len(weights))
        return total

    return min(weights, key=judged)


def _parts(lesson: Lesson) -> list[Lesson]:
    """What to fit and what to judge by: left-out blocks of time, where one tail would be noise."""
    if len(lesson.windows) >= FEW:
        return [replace(lesson, report=silent, to_beat=None)]
    places = np.arange(len(lesson.windows))
    return [
        Lesson(
            lesson.windows.at(np.setdiff1d(places, block)), lesson.windows.at(block), lesson.seed
        )
        for block in np.array_split(places, BLOCKS)
    ]

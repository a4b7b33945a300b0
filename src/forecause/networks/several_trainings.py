"""Trainings that know nothing of each other, and may therefore be done by helpers elsewhere.

Of a network whose targets share no parameter these are blocks of targets. Targets of a block share
the bound on the gradient's norm, the rate and the moment to stop, so the blocks are the same
whoever trains them: then so is the result, to the last bit. Of one with sparse gradients it is a
training under each weight of the penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from forecause.common.arrays import Index
from forecause.common.work_sharing import LARGE, helped, parallel_map, shared
from forecause.forecast.forecaster import FitData, KnownErrors
from forecause.networks import distributed
from forecause.networks.network import NetworkModule, TensorWindow, over_windows
from forecause.networks.settings import TARGETS_TOGETHER
from forecause.regression.p_values import clearly_better

Item = TypeVar("Item")
Result = TypeVar("Result")
Learn = Callable[[NetworkModule, FitData], None]


def train_by_blocks(model: NetworkModule, fit_data: FitData, learn: Learn) -> None:
    """Let the model `learn`, many targets a block at a time if they share nothing."""
    if not trains_by_blocks(model):
        learn(model, fit_data)
        return
    cuts = range(TARGETS_TOGETHER, model.n_variables, TARGETS_TOGETHER)
    blocks: list[Index] = np.split(np.arange(model.n_variables), list(cuts))
    each = fit_data.picklable()
    work = LARGE if distributed.current().alone else 0.0  # ranks meet in the same order
    trained = each_trained(_of_block, (model, each, learn), blocks, work)
    for number, (columns, weights) in enumerate(zip(blocks, trained, strict=True), 1):
        for name, values in model.state_dict().items():
            values[columns] = weights[name].to(values.device)
        fit_data.progress.step(f"training the {model.kind}", number / len(blocks))


def trains_by_blocks(model: NetworkModule) -> bool:
    """Whether it has more targets than are trained together. Levels of a label cannot be cut."""
    return model.separate_targets and model.n_variables > TARGETS_TOGETHER and not model.labels


def each_trained(
    function: Callable[[tuple[NetworkModule, FitData, Any], Item], Result],
    common: tuple[NetworkModule, FitData, Any],
    items: Sequence[Item],
    operations: float = 0.0,
) -> Iterator[Result]:
    """`function(common, item)` of every item, by helpers if the model and the table can be sent.

    Each has an equal part of the time. A table on disk stays: training draws its rows in no order,
    for which files are too slow.
    """
    model, fit_data, learn = common
    if fit_data.seconds is not None:
        fit_data = replace(fit_data, seconds=fit_data.seconds / len(items))
    on_processor = next(model.parameters()).device.type == "cpu"
    if helped() and on_processor and fit_data.windows.in_memory:
        return parallel_map(function, (model, fit_data.picklable(), learn), items)
    return shared(partial(function, (model, fit_data, learn)), items, operations)


def _of_block(common: tuple[NetworkModule, FitData, Learn], columns: Index) -> dict[str, Tensor]:
    """The weights of some targets, trained without the others."""
    model, fit_data, learn = common
    part = _of_targets(model, columns)
    learn(part, _about_targets(fit_data, columns))
    return part.state_dict()


def _of_targets(model: NetworkModule, columns: Index) -> NetworkModule:
    """A copy that forecasts these columns alone."""
    part = deepcopy(model)
    part.n_variables = len(columns)
    for name, weight in model.named_parameters():
        setattr(part, name, nn.Parameter(weight.detach()[columns].clone()))
    for name, values in model.named_buffers():
        setattr(part, name, values[columns].clone())
    return part


def _about_targets(fit_data: FitData, columns: Index) -> FitData:
    known = fit_data.to_beat
    if isinstance(known, KnownErrors):
        known = KnownErrors(known.errors[:, columns])
    windows, held_out = (
        replace(w, target_columns=columns) for w in (fit_data.windows, fit_data.held_out)
    )
    return replace(fit_data, windows=windows, held_out=held_out, to_beat=known)


class Penalty:
    """A penalty under which few inputs move a forecast: the L1 norm of the Jacobian times a weight.

    That norm is the sum of E|d output / d input| over all pairs. To have all of it takes one
    backward pass per output; a random projection v^T J takes one in all. What it estimates depends
    on v:

    - v one-hot, an output drawn at random: E|v^T J_j| is the mean of |J_ij| over the outputs i,
      without bias. Every pair is shrunk by itself, down to zero where it is not worth its price.
    - v Gaussian: E|v^T J_j| = sqrt(2 / pi) times the L2 norm of column j. That is a group lasso: an
      input that drives one target is hardly shrunk for the others. Random signs do nearly the same.
    - (v^T J_j)^2 with either: the squared Frobenius norm, a ridge, which leaves no pair out.

    A graph is sparse pair by pair, so v is one-hot here, another output for every window.
    """

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
    learned = each_trained(_learned, (deepcopy(model), fit_data, learn), weights)
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

"""Trainings that know nothing of each other, and may therefore be done by helpers elsewhere.

Of a network whose targets share no parameter these are blocks of targets. Targets of a block share
the bound on the gradient's norm, the rate and the moment to stop, so the blocks are the same
whoever trains them: then so is the result, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn

from forecause.arrays import Index
from forecause.forecast.forecaster import FitData, KnownErrors
from forecause.networks import distributed
from forecause.networks.network import NetworkModule
from forecause.networks.settings import TARGETS_TOGETHER
from forecause.work_sharing import LARGE, helped, parallel_map, shared

Item = TypeVar("Item")
Result = TypeVar("Result")
Learn = Callable[[NetworkModule, FitData], None]
Columns = Index


def train_by_blocks(model: NetworkModule, fit_data: FitData, learn: Learn) -> None:
    """Let the model `learn`, many targets a block at a time if they share nothing."""
    if not trains_by_blocks(model):
        learn(model, fit_data)
        return
    cuts = range(TARGETS_TOGETHER, model.n_variables, TARGETS_TOGETHER)
    blocks: list[Columns] = np.split(np.arange(model.n_variables), list(cuts))
    each = fit_data.picklable()
    if each.seconds is not None:
        each = replace(each, seconds=each.seconds / len(blocks))
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

    A table on disk stays: training draws its rows in no order, for which files are too slow.
    """
    model, fit_data, learn = common
    on_processor = next(model.parameters()).device.type == "cpu"
    if helped() and on_processor and fit_data.windows.in_memory:
        return parallel_map(function, (model, fit_data.picklable(), learn), items)
    return shared(partial(function, common), items, operations)


def _of_block(common: tuple[NetworkModule, FitData, Learn], columns: Columns) -> dict[str, Tensor]:
    """The weights of some targets, trained without the others."""
    model, fit_data, learn = common
    part = _of_targets(model, columns)
    learn(part, _about_targets(fit_data, columns))
    return part.state_dict()


def _of_targets(model: NetworkModule, columns: Columns) -> NetworkModule:
    """A copy that forecasts these columns alone."""
    part = deepcopy(model)
    part.n_variables = len(columns)
    for name, weight in model.named_parameters():
        setattr(part, name, nn.Parameter(weight.detach()[columns].clone()))
    for name, values in model.named_buffers():
        setattr(part, name, values[columns].clone())
    return part


def _about_targets(fit_data: FitData, columns: Columns) -> FitData:
    known = fit_data.to_beat
    if isinstance(known, KnownErrors):
        known = KnownErrors(known.errors[:, columns])
    windows, held_out = (
        replace(w, target_columns=columns) for w in (fit_data.windows, fit_data.held_out)
    )
    return replace(fit_data, windows=windows, held_out=held_out, to_beat=known)

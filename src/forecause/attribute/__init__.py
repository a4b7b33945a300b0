"""The attribution station: relevance of every (source, lag) for every target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import xarray as xr
from torch import Tensor

from forecause.attribute.attention import attention_rollout, raw_attention
from forecause.attribute.gradient import gradient, input_times_gradient
from forecause.attribute.intervention import intervention
from forecause.attribute.lrp import attn_lrp, cp_lrp
from forecause.attribute.score import score
from forecause.attribute.stream import RelevanceStream
from forecause.attribute.variables import Columns
from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster
from forecause.progress import QUIET, Progress

__all__ = ["READOUTS", "Readout", "cross_fitted", "relevance"]

BATCH_NUMBERS = 4_000_000  # per-sample relevances held at once


@dataclass(frozen=True)
class Readout:
    """Signed relevance per sample (batch, target, step, source), and how it is averaged.

    It is read from windows (batch, max_lag + 1, variable): the past and what followed.
    """

    per_sample: Callable[[Forecaster, Tensor], Tensor]
    power: int  # 2: mean square (an energy); 1: mean absolute value
    direction: Callable[[Forecaster, Tensor], Tensor] | None = None  # if not per_sample's own
    sums_sources: bool = False  # over the columns of a label; see attribute.variables
    sums_targets: bool = False

    def columns(self, forecaster: Forecaster) -> Columns:
        """How the columns of a forecaster add up to variables under this readout."""
        sums = (self.sums_sources, self.sums_targets)
        return Columns(forecaster.n_variables, forecaster.labels, *sums)


READOUTS = {
    "gradient": Readout(gradient, power=2),
    # The mean of a score is zero whatever the effect, so the gradient tells the direction.
    "score": Readout(score, power=2, direction=gradient, sums_targets=True),
    "input-gradient": Readout(input_times_gradient, power=1, sums_sources=True),
    "lrp": Readout(attn_lrp, power=1, sums_sources=True),
    "cp-lrp": Readout(cp_lrp, power=1, sums_sources=True),
    "attention": Readout(raw_attention, power=1, sums_sources=True),
    "rollout": Readout(attention_rollout, power=1, sums_sources=True),
    "intervention": Readout(intervention, power=1),
}


def relevance(
    forecaster: Forecaster, windows: Windows, readout: str = "gradient", progress: Progress = QUIET
) -> xr.Dataset:
    """Read the relevance of every (target, source, lag) from a fitted forecaster.

    The result's variables are described in RelevanceStream.result.
    """
    chosen = _readout(readout)
    stream = RelevanceStream(chosen.power)
    for window in _batches(forecaster, windows):
        direction = chosen.direction(forecaster, window).detach() if chosen.direction else None
        signed = chosen.per_sample(forecaster, window).detach()
        if forecaster.labels:
            signed, direction = _of_variables(forecaster, chosen, signed, direction)
        stream.add(signed, direction)
        progress.step("reading out", stream.count / len(windows))
    return stream.result(windows.panel.coding.variables).assign_attrs(readout=readout)


def cross_fitted(
    forecasters: Sequence[Forecaster],
    windows: Windows,
    readout: str = "gradient",
    progress: Progress = QUIET,
) -> xr.DataArray:
    """Relevance from several forecasters fitted on disjoint data, (target, source, lag).

    The mean, over samples and pairs of forecasters, of the product of their signed relevance at
    the same input. What a forecaster learned from noise is independent between them, so it
    averages to zero (and may be negative) instead of adding a floor as a square does.
    """
    if len(forecasters) < 2:
        raise InputError(f"Cross-fitting needs at least 2 parts, found {len(forecasters)}.")
    chosen, pairs = _readout(readout), len(forecasters) * (len(forecasters) - 1)
    stream = RelevanceStream(power=1)
    columns = chosen.columns(forecasters[0]) if forecasters[0].labels else None
    for window in _batches(forecasters[0], windows):
        each = [chosen.per_sample(f, window).detach() for f in forecasters]
        signed = torch.stack([columns.signed(one) for one in each] if columns else each)
        # sum over a != b of g_a g_b = (sum g)^2 - sum g^2
        products = (signed.sum(0).square() - signed.square().sum(0)) / pairs
        stream.add(columns.energies(products) if columns else products)
        progress.step("reading out the parts", stream.count / len(windows))
    return stream.result(windows.panel.coding.variables)["effect"].rename("relevance")


def _of_variables(
    forecaster: Forecaster, readout: Readout, signed: Tensor, direction: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Relevance and direction of variables from those of columns."""
    columns = readout.columns(forecaster)
    comparable = columns.signed(signed)
    if direction is None:
        return columns.of_variables(comparable), columns.without_direction(comparable)
    slopes = Columns(forecaster.n_variables, forecaster.labels)
    way = slopes.without_direction(slopes.signed(direction))
    return columns.of_variables(comparable), way


def _readout(name: str) -> Readout:
    if name not in READOUTS:
        raise InputError(f"Unknown readout {name!r}; choose one of {', '.join(READOUTS)}.")
    return READOUTS[name]


def _batches(forecaster: Forecaster, windows: Windows) -> Iterator[Tensor]:
    """Windows on the forecaster's device, few enough for their relevance to fit in memory."""
    steps, variables = windows.shape
    size = max(1, min(512, BATCH_NUMBERS // (steps * variables**2)))
    device = next(iter(forecaster.state_dict().values())).device
    for batch in forecaster.seen(windows).batches(size):
        yield batch.to(device)

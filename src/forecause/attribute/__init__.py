"""The attribution station: relevance of every (source, lag) for every target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import xarray as xr
from torch import Tensor

from forecause.attribute.attention import attention_rollout, raw_attention
from forecause.attribute.gradient import gradient, input_times_gradient
from forecause.attribute.intervention import intervention
from forecause.attribute.lrp import attn_lrp, cp_lrp
from forecause.attribute.stream import RelevanceStream
from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.forecast.base import Forecaster, Report, silent

__all__ = ["READOUTS", "Readout", "relevance"]

BATCH_NUMBERS = 4_000_000  # per-sample relevances held at once


@dataclass(frozen=True)
class Readout:
    """Signed relevance per sample (batch, target, step, source), and how it is averaged."""

    per_sample: Callable[[Forecaster, Tensor], Tensor]
    power: int  # 2: mean square (an energy); 1: mean absolute value


READOUTS = {
    "gradient": Readout(gradient, power=2),
    "input-gradient": Readout(input_times_gradient, power=1),
    "lrp": Readout(attn_lrp, power=1),
    "cp-lrp": Readout(cp_lrp, power=1),
    "attention": Readout(raw_attention, power=1),
    "rollout": Readout(attention_rollout, power=1),
    "intervention": Readout(intervention, power=1),
}


def relevance(
    forecaster: Forecaster, windows: Windows, readout: str = "gradient", report: Report = silent
) -> xr.Dataset:
    """Read the relevance of every (target, source, lag) from a fitted forecaster.

    The result's variables are described in RelevanceStream.result.
    """
    if readout not in READOUTS:
        raise InputError(f"Unknown readout {readout!r}; choose one of {', '.join(READOUTS)}.")
    chosen = READOUTS[readout]
    steps, variables = windows.shape
    size = max(1, min(512, BATCH_NUMBERS // (steps * variables**2)))
    stream = RelevanceStream(chosen.power)
    device = next(iter(forecaster.state_dict().values())).device
    for batch in windows.batches(size):
        past = batch[:, :-1].to(device)
        stream.add(chosen.per_sample(forecaster, past).detach())
        report("reading out", stream.count / len(windows))
    return stream.result(windows.panel.variables).assign_attrs(readout=readout)

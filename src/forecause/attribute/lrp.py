"""Layer-wise relevance propagation: input times a gradient with LRP's local rules.

LRP is covered by patents in some countries when used commercially; the gradient readouts are not.
"""

from __future__ import annotations

from torch import Tensor

from forecause.forecast.backward import ATTN_LRP, CP_LRP
from forecause.forecast.forecaster import Forecaster


def attn_lrp(forecaster: Forecaster, window: Tensor) -> Tensor:
    """AttnLRP: relevance flows through the softmax as well as through the values."""
    past = window[:, :-1]
    return forecaster.jacobian(past, ATTN_LRP) * forecaster.inputs(past)[:, None]


def cp_lrp(forecaster: Forecaster, window: Tensor) -> Tensor:
    """CP-LRP: attention weights are constants, relevance flows through the values alone."""
    past = window[:, :-1]
    return forecaster.jacobian(past, CP_LRP) * forecaster.inputs(past)[:, None]

"""Rules: how relevance is passed back through a forecaster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """The plain gradient, or layer-wise relevance propagation (LRP) as a modified one.

    `query_key` and `value` are factors on the gradients of an attention's inputs, `residual` one on
    the residual beside attention (not beside the feed-forward network). With `linearise` a norm's
    standard deviation is held constant and f(x) is passed back as f(x) / x.
    """

    query_key: float = 1.0
    value: float = 1.0
    residual: float = 1.0
    linearise: bool = False


PLAIN = Rules()
ATTN_LRP = Rules(query_key=0.25, value=0.5, linearise=True)
# AttnLRP halves what passes attention and not the residual beside it, which carries the target's
# own last value: over four layers a factor of up to 16. Here both are halved.
BALANCED_LRP = Rules(query_key=0.25, value=0.5, residual=0.5, linearise=True)
CP_LRP = Rules(query_key=0.0, value=1.0, linearise=True)

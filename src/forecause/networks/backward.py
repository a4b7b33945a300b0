"""How the backward pass treats each operation: the plain gradient, or LRP as a modified one.

Layer-wise relevance propagation through a network is the ordinary backward pass with other local
Jacobians, so a forecaster states its operations through these helpers once and every gradient
readout works on it. Forward values never change.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from forecause.forecast.forecaster import Rules


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """The identity, whose gradient is multiplied by `factor`."""
    return x if factor == 1.0 else x * factor + (x * (1.0 - factor)).detach()


def activation(f: Callable[[Tensor], Tensor], x: Tensor, rules: Rules) -> Tensor:
    """f(x); under LRP the backward factor is f(x) / x instead of f'(x)."""
    if not rules.linearise:
        return f(x)
    epsilon = torch.finfo(x.dtype).tiny * 1e6
    safe = torch.where(x.abs() < epsilon, torch.full_like(x, epsilon), x)
    return x * (f(x) / safe).detach()


def layer_norm(norm: nn.LayerNorm, x: Tensor, rules: Rules) -> Tensor:
    """LayerNorm over the last axis; under LRP the standard deviation is a constant."""
    if not rules.linearise:
        return functional.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, norm.eps)
    centred = x - x.mean(-1, keepdim=True)
    sd = (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt().detach()
    return centred / sd * norm.weight + norm.bias

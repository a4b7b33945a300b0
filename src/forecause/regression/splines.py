"""Natural cubic splines: where their knots lie, their terms, and the slopes of these."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from forecause.data.windows import Windows

ENOUGH_FOR_KNOTS = 100_000  # windows; from twice as many on, every second or more are left out


def place_knots(windows: Windows, count: int) -> Tensor:
    """Quantiles of each variable, (variable, knot).

    A variable with too few distinct values gets one knot repeated, which bends nowhere.
    """
    step = max(1, len(windows) // ENOUGH_FOR_KNOTS)
    looked = windows.at(np.arange(0, len(windows), step))
    latest = torch.cat([batch.target.clone() for batch in looked.batches(4096)])
    shares = torch.linspace(0.05, 0.95, count)
    # one variable at a time: quantiles of all would hold several times the sample
    knots = torch.stack([torch.quantile(values, shares) for values in latest.T])
    tied = (knots.diff(dim=1) <= 1e-6).any(1)
    knots[tied] = knots[tied][:, :1]
    return knots


def spline_terms(x: Tensor, knots: Tensor) -> Tensor:
    """Natural cubic spline basis of x (..., variable) -> (..., variable, knots - 1).

    The first term is x itself; term k is d_k - d_{K-1} with
    d_k(x) = ((x - knot_k)_+^3 - (x - knot_K)_+^3) / (knot_K - knot_k), scaled to the knots' range.
    """
    cubes = (x[..., None] - knots).clamp(min=0).pow(3)
    return torch.cat([x[..., None], _bends(cubes, knots)], dim=-1)


def spline_slopes(x: Tensor, knots: Tensor) -> Tensor:
    """Derivative of `spline_terms` with respect to x."""
    squares = 3 * (x[..., None] - knots).clamp(min=0).square()
    return torch.cat([torch.ones_like(x)[..., None], _bends(squares, knots)], dim=-1)


def _bends(powers: Tensor, knots: Tensor) -> Tensor:
    span = knots[:, -1:] - knots[:, :-1]  # (variable, knots - 1)
    straight = span[:, :1] <= 0
    d = (powers[..., :-1] - powers[..., -1:]) / torch.where(straight, 1.0, span)
    bends = (d[..., :-1] - d[..., -1:]) / torch.where(straight, 1.0, span[:, :1] ** 2)
    return torch.where(straight, 0.0, bends)

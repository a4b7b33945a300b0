"""Wald tests that stay honest when the noise is not the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats
from torch import Tensor

from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.forecast.regression import Moments

NUMBERS = 8_000_000  # held at once while products are summed


def robust_p_values(
    windows: Windows,
    design: Callable[[Tensor], Tensor],
    groups: Sequence[npt.NDArray[np.int64]],
    targets: Sequence[int],
) -> npt.NDArray[np.float64]:
    """Test that all coefficients of a group of features are zero, (target, group).

    Least squares of the targets on `design(past)` (batch, feature) with an intercept; the
    covariance is HC3, which assumes nothing about the noise's variance. Two passes over the
    windows, nothing stored. Features that never vary do not count.
    """
    moments = Moments.of(windows, design)
    varying = moments.gram.diagonal() > 0
    freedom = moments.count - int(varying.sum())
    if freedom < 1:
        raise InputError(
            f"The tests need more windows than inputs: found {moments.count} windows for "
            f"{len(moments.gram) - 1} inputs; use a smaller lag, fewer variables, more rows, or "
            "choose edges by --select top-k."
        )
    coefficients = moments.solve()[:, list(targets)]
    inverse = torch.linalg.inv(moments.gram + moments.penalty())
    rows = [_varying(torch.as_tensor(features) + 1, varying) for features in groups]
    covariance = _hc3(windows, design, inverse, coefficients, rows, targets)
    p_values = np.ones((len(targets), len(groups)))
    for place, (chosen, spread) in enumerate(zip(rows, covariance, strict=True)):
        if len(chosen):
            beta = coefficients[chosen].T[:, :, None]  # (target, feature, 1)
            wald = (beta * torch.linalg.solve(spread, beta)).sum((1, 2))
            p_values[:, place] = stats.f.sf((wald / len(chosen)).numpy(), len(chosen), freedom)
    return p_values


def _hc3(
    windows: Windows,
    design: Callable[[Tensor], Tensor],
    inverse: Tensor,
    coefficients: Tensor,
    groups: Sequence[Tensor],
    targets: Sequence[int],
) -> list[Tensor]:
    """Covariance of each group's coefficients, (target, feature, feature) per group.

    sum over windows of h h' (e / (1 - leverage))^2 with h = (Z'Z)^-1 z.
    """
    widest = max(len(g) for g in groups) ** (2 if len(targets) > 1 else 1)
    size = max(64, min(4096, NUMBERS // max(len(inverse), widest)))
    sums = [torch.zeros(len(targets), len(g), len(g), dtype=torch.float64) for g in groups]
    for batch in windows.batches(size):
        window = batch.double()
        features = design(window[:, :-1])
        z = torch.cat([torch.ones(len(features), 1, dtype=features.dtype), features], dim=1)
        h = z @ inverse
        leverage = (z * h).sum(1, keepdim=True).clamp(max=0.99)
        errors = (window[:, -1][:, list(targets)] - z @ coefficients) / (1 - leverage)
        weights = errors.square().T  # (target, window)
        for total, chosen in zip(sums, groups, strict=True):
            total += _weighted_products(h[:, chosen], weights)
    return sums


def _weighted_products(h: Tensor, weights: Tensor) -> Tensor:
    """sum over windows of weight h h', (target, feature, feature); the cheaper of two orders."""
    if len(weights) == 1:
        return ((h.T * weights) @ h)[None]
    outer = (h[:, :, None] * h[:, None, :]).flatten(1)
    return (weights @ outer).unflatten(1, (h.shape[1], h.shape[1]))


def _varying(rows: Tensor, varying: Tensor) -> Tensor:
    return rows[varying[rows]]

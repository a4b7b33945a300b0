"""Natural cubic splines: their terms and slopes, as tensors and as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Numbers = TypeVar("Numbers", Array, Tensor)

KNOT_QUANTILES = (0.03, 0.27, 0.5, 0.73, 0.97)
BENDS = len(KNOT_QUANTILES) - 2  # curvature terms of one input, besides its line


@dataclass(frozen=True, eq=False)
class Splines:
    """A line and, where `curved`, three bends of every input; straight beyond the outer knots."""

    knots: Array  # (input, knot)
    curved: npt.NDArray[np.bool_]  # (input,) False: a line is all there is (levels, indicators)
    slopes: Array  # (input, bend): what of a bend its line explains
    levels: Array  # (input, bend): mean of what is left
    scales: Array  # (input, bend): sd of what is left

    @classmethod
    def of(cls, inputs: Array, curved: npt.NDArray[np.bool_]) -> Splines:
        """Knots at quantiles of inputs (row, input); bends made uncorrelated with their line."""
        knots = np.quantile(inputs, KNOT_QUANTILES, axis=0).T
        curved = curved & (np.diff(knots, axis=1).min(1) > 1e-9)
        raw = _raw_bends(inputs, knots, curved)  # (row, input, bend)
        centred = inputs - inputs.mean(0)
        power = np.maximum((centred**2).sum(0), 1e-12)
        slopes = np.einsum("ri,rib->ib", centred, raw) / power[:, None]
        left = raw - slopes * inputs[..., None]
        scales = left.std(0)
        return cls(knots, curved, slopes, left.mean(0), np.where(scales > 1e-9, scales, 1.0))

    def bends(self, inputs: Array, columns: Index | None = None) -> Array:
        """Standardised bends (row, column * bend) of some columns; zero where not curved."""
        at = np.arange(inputs.shape[1]) if columns is None else columns
        values = inputs[:, at]
        raw = _raw_bends(values, self.knots[at], self.curved[at])
        left = raw - self.slopes[at] * values[..., None]
        return ((left - self.levels[at]) / self.scales[at]).reshape(len(inputs), -1)

    def bend_slopes(self, inputs: Array, columns: Index) -> Array:
        """Derivatives (row, column, bend) of the bends by their own input."""
        raw = _raw_slopes(inputs[:, columns], self.knots[columns], self.curved[columns])
        return np.asarray((raw - self.slopes[columns]) / self.scales[columns])


def spline_terms(x: Tensor, knots: Tensor) -> Tensor:
    """Natural cubic spline basis of x (..., variable) -> (..., variable, knots - 1).

    The first term is x itself; the others are the bends of `_natural`, scaled to the knots' range.
    """
    cubes = (x[..., None] - knots).clamp(min=0).pow(3)
    return torch.cat([x[..., None], _bends(cubes, knots)], dim=-1)


def spline_slopes(x: Tensor, knots: Tensor) -> Tensor:
    """Derivative of `spline_terms` with respect to x."""
    squares = 3 * (x[..., None] - knots).clamp(min=0).square()
    return torch.cat([torch.ones_like(x)[..., None], _bends(squares, knots)], dim=-1)


def curve_features(past: Array, quantiles: tuple[float, ...]) -> Array:
    """A line and bends of every input: (window, lag, column) -> (..., feature).

    Knots are quantiles of the latest values.
    """
    knots = np.quantile(past[:, 0], quantiles, axis=0).T  # (column, knot)
    width = np.maximum(knots[:, -1:] - knots[:, :-1], 1e-12)
    beyond = np.maximum(past[..., None] - knots, 0)
    bends = _natural(beyond * beyond * beyond, width) / width[:, :1] ** 2
    return np.concatenate([past[..., None], bends], axis=-1)


def _raw_bends(values: Array, knots: Array, curved: npt.NDArray[np.bool_]) -> Array:
    beyond = np.maximum(values[..., None] - knots, 0.0)  # (row, input, knot)
    return np.asarray(_natural(beyond * beyond * beyond, _widths(knots)) * curved[:, None])


def _raw_slopes(values: Array, knots: Array, curved: npt.NDArray[np.bool_]) -> Array:
    beyond = np.maximum(values[..., None] - knots, 0.0)
    return np.asarray(_natural(3 * beyond * beyond, _widths(knots)) * curved[:, None])


def _widths(knots: Array) -> Array:
    return np.maximum(knots[:, -1:] - knots[:, :-1], 1e-9)


def _bends(powers: Tensor, knots: Tensor) -> Tensor:
    """`_natural` scaled to the knots' range; zero where all knots are one."""
    span = knots[:, -1:] - knots[:, :-1]  # (variable, knots - 1)
    straight = span[:, :1] <= 0
    bends = _natural(powers, torch.where(straight, 1.0, span))
    return torch.where(straight, 0.0, bends / torch.where(straight, 1.0, span[:, :1] ** 2))


def _natural(powers: Numbers, width: Numbers) -> Numbers:
    """The natural basis (Hastie, Tibshirani, Friedman): d_k - d_{K-1} (..., variable, knots - 2).

    With `powers` (x - knot_k)_+^3 and `width` knot_K - knot_k,
    d_k = ((x - knot_k)_+^3 - (x - knot_K)_+^3) / (knot_K - knot_k).
    """
    d = (powers[..., :-1] - powers[..., -1:]) / width
    return d[..., :-1] - d[..., -1:]

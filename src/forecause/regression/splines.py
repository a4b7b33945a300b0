"""Natural cubic splines: their terms and slopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

# Shape of the model:
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
        raw = bends_of(inputs, knots) * curved[:, None]  # (row, input, bend)
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
        raw = bends_of(values, self.knots[at]) * self.curved[at, None]
        left = raw - self.slopes[at] * values[..., None]
        return ((left - self.levels[at]) / self.scales[at]).reshape(len(inputs), -1)


def spline_terms(x: Array, knots: Array) -> Array:
    """Natural cubic spline basis of x (..., variable) -> (..., variable, knots - 1).

    The first term is x itself; the others are bends, scaled to the range of the knots (variable,
    knot). All of them are zero where all knots are one.
    """
    return np.concatenate([x[..., None], bends_of(x, knots) / _widths(knots)[:, :1] ** 2], axis=-1)


def spline_slopes(x: Array, knots: Array) -> Array:
    """Derivative of `spline_terms` with respect to x."""
    bends = bend_slopes_of(x, knots) / _widths(knots)[:, :1] ** 2
    return np.concatenate([np.ones_like(x)[..., None], bends], axis=-1)


def curve_features(past: Array, quantiles: tuple[float, ...]) -> Array:
    """`spline_terms` of every input (window, lag, column), the latest lag first.

    Knots are quantiles of the latest values.
    """
    return spline_terms(past, np.quantile(past[:, 0], quantiles, axis=0).T)


def bends_of(x: Array, knots: Array) -> Array:
    """Bends (..., variable, knots - 2) of x (..., variable), straight beyond the outer knots."""
    return _natural(x, knots, lambda beyond: beyond * beyond * beyond)


def bend_slopes_of(x: Array, knots: Array) -> Array:
    """Derivatives of `_bends`."""
    return _natural(x, knots, lambda beyond: 3 * beyond * beyond)


def _natural(x: Array, knots: Array, power: Callable[[Array], Array]) -> Array:
    """The natural basis (Hastie, Tibshirani, Friedman): d_k - d_{K-1} (..., variable, knots - 2).

    With `power` the cube, d_k = ((x - knot_k)_+^3 - (x - knot_K)_+^3) / (knot_K - knot_k). Knot by
    knot: arrays whose last axis is short are slow.
    """
    widths = _widths(knots)
    last = power(np.maximum(x - knots[:, -1], 0.0))

    def d(k: int) -> Array:
        return (power(np.maximum(x - knots[:, k], 0.0)) - last) / widths[:, k]

    bends = np.empty((*x.shape, knots.shape[1] - 2), dtype=last.dtype)
    inner = d(knots.shape[1] - 2)
    for k in range(bends.shape[-1]):
        np.subtract(d(k), inner, out=bends[..., k])
    return bends


def _widths(knots: Array) -> Array:
    """Distances to the last knot, (variable, knots - 1); between equal knots nothing is divided."""
    return np.maximum(knots[:, -1:] - knots[:, :-1], 1e-12)

"""Natural cubic splines of every input, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

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


def _raw_bends(values: Array, knots: Array, curved: npt.NDArray[np.bool_]) -> Array:
    """The usual natural basis: d_k(x) - d_{last-1}(x), d_k = ((x-k)+^3 - (x-last)+^3)/(last-k)."""
    beyond = np.maximum(values[..., None] - knots, 0.0)  # (row, input, knot)
    return _natural(beyond * beyond * beyond, knots, curved)


def _raw_slopes(values: Array, knots: Array, curved: npt.NDArray[np.bool_]) -> Array:
    beyond = np.maximum(values[..., None] - knots, 0.0)
    return _natural(3 * beyond * beyond, knots, curved)


def _natural(powers: Array, knots: Array, curved: npt.NDArray[np.bool_]) -> Array:
    width = np.maximum(knots[:, -1:] - knots[:, :-1], 1e-9)
    parts = (powers[..., :-1] - powers[..., -1:]) / width
    return np.asarray((parts[..., :-1] - parts[..., -1:]) * curved[:, None])

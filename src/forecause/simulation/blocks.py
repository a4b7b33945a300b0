"""Blocks: the equations of a system grouped into a few array operations per time step.

A step sees `window`, the flattened rows t - max_lag .. t, and `row`, its last part. The row starts
as the noise plus the biases and every block adds to it, in an order in which no instantaneous
parent is read before it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag
from scipy.special import expit

from forecause.simulation.mechanisms import HIDDEN, Form, Network

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

CHECK_EVERY = 2_000  # rows between two looks at whether the series still stays within bounds

# A variance parent x multiplies the noise variance by LOWEST + SPAN sigmoid(SLOPE x): within
# 0.1 and 1.9, and 1 on average when x is symmetric about 0.
LOWEST_VARIANCE, VARIANCE_SPAN, VARIANCE_SLOPE = 0.1, 1.8, 2.0


class Block(Protocol):
    """A part of all equations that is computed at once."""

    def add(self, window: Array, row: Array, noise: Array) -> None:
        """Add this part's contribution to `row`, the last (variable,) entries of `window`."""


@dataclass(frozen=True, eq=False)
class FormBlock:
    """All terms of one additive form: row += outer act(inner x + shift)."""

    index: Index  # (term,) places in the window
    inner: Array  # (term,)
    shift: Array  # (term,)
    outer: Array  # (variable, term)
    activation: Callable[[Array, Array], Any] | None

    @classmethod
    def of(
        cls,
        forms: Sequence[tuple[int, int, Form]],
        variables: int,
        activation: Callable[[Array, Array], Any] | None,
    ) -> FormBlock:
        """Join the terms of (place in the window, target, form) triples."""
        terms = [len(form.outer) for _, _, form in forms]
        targets = np.repeat([target for _, target, _ in forms], terms)
        outer = np.zeros((variables, sum(terms)))
        outer[targets, np.arange(sum(terms))] = np.concatenate([form.outer for *_, form in forms])
        return cls(
            index=np.repeat([place for place, _, _ in forms], terms),
            inner=np.concatenate([form.inner for *_, form in forms]),
            shift=np.concatenate([form.shift for *_, form in forms]),
            outer=outer,
            activation=activation,
        )

    def add(self, window: Array, row: Array, noise: Array) -> None:
        bent = window.take(self.index)
        if self.activation is not None:  # linear terms have inner 1 and shift 0
            bent *= self.inner
            bent += self.shift
            self.activation(bent, bent)
        row += self.outer.dot(bent)


@dataclass(frozen=True, eq=False)
class NetworkBlock:
    """The networks of a few targets side by side: row += outer tanh(inner inputs + shift)."""

    index: Index  # (input,) places in the window
    inner: Array  # (hidden, input), block-diagonal
    noise_inner: Array | None  # (hidden, variable), if some network takes its noise in
    shift: Array  # (hidden,)
    outer: Array  # (variable, hidden)

    @classmethod
    def of(
        cls, networks: Sequence[tuple[Sequence[int], int, Network]], variables: int
    ) -> NetworkBlock:
        """Join the networks of (places in the window, target, network) triples."""
        hidden = HIDDEN * len(networks)
        noise_inner, outer = np.zeros((hidden, variables)), np.zeros((variables, hidden))
        for own, (_, target, network) in enumerate(networks):
            units = slice(own * HIDDEN, (own + 1) * HIDDEN)
            outer[target, units] = network.outer
            if network.noise_inner is not None:
                noise_inner[units, target] = network.noise_inner
        return cls(
            index=np.concatenate([places for places, _, _ in networks]).astype(np.int64),
            inner=block_diag(*(network.inner for *_, network in networks)),
            noise_inner=noise_inner if noise_inner.any() else None,
            shift=np.concatenate([network.shift for *_, network in networks]),
            outer=outer,
        )

    def add(self, window: Array, row: Array, noise: Array) -> None:
        hidden = self.inner.dot(window.take(self.index))
        if self.noise_inner is not None:
            hidden += self.noise_inner.dot(noise)
        hidden += self.shift
        np.tanh(hidden, hidden)
        row += self.outer.dot(hidden)


@dataclass(frozen=True, eq=False)
class VarianceBlock:
    """Parents that only scale the noise: row[target] += (scale(x) - 1) noise[target]."""

    targets: Index  # (target,)
    index: Index  # (target,) places in the window

    def add(self, window: Array, row: Array, noise: Array) -> None:
        variance = LOWEST_VARIANCE + VARIANCE_SPAN * expit(VARIANCE_SLOPE * window.take(self.index))
        row[self.targets] += (np.sqrt(variance) - 1) * noise.take(self.targets)


def trajectory(
    blocks: Sequence[Block], past: Array, noise: Array, start: Array, limit: float = np.inf
) -> Array | None:
    """Continue `past` (max_lag, variable) by one row per row of `noise` (row, variable).

    `start` (row, variable) is what each new row holds before the blocks add to it. Returns None
    once a value is not finite or leaves -limit .. limit.
    """
    max_lag, variables = past.shape
    series = np.concatenate([past, start])
    flat = series.reshape(-1)
    width = max_lag * variables
    with np.errstate(all="ignore"):
        for first in range(0, len(noise), CHECK_EVERY):
            last = min(first + CHECK_EVERY, len(noise))
            for step in range(first, last):
                begin = step * variables
                window = flat[begin : begin + width + variables]
                row = window[width:]
                for block in blocks:
                    block.add(window, row, noise[step])
            if not np.abs(series[max_lag + first : max_lag + last]).max() <= limit:
                return None
    return series[max_lag:]

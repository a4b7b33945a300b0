"""A lasso of every target on all inputs, from moments, its penalty chosen on left-out time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from forecause.common.arrays import Array, Mask
from forecause.data.windows import Windows
from forecause.forecast.refit import Rows
from forecause.regression.least_squares import largest_variance
from forecause.regression.sample import BLOCKS, stretches

# Shape of the model:
PENALTIES = np.geomspace(0.4, 0.01, 8)  # of the largest covariance of the target with an input

# Time and memory:
ROUNDS = 40  # of the accelerated gradient method, from one penalty to the next
MORE_ROUNDS = 200  # for the last fit
MOST_WORK = 1e10  # multiplications of the choice of penalties: with more, it takes too long


@dataclass(frozen=True, eq=False)
class Lasso:
    """Minimises mean squares / 2 + penalty |b| for every target, inputs being standardised."""

    rows: Rows
    allowed: Mask  # (input, target)

    @classmethod
    def of(cls, rows: Rows, allowed: Mask) -> Lasso:
        """`allowed` is (target, step, source)."""
        return cls(rows, allowed.reshape(len(allowed), -1).T)

    @staticmethod
    def is_affordable(windows: Windows) -> bool:
        """Whether it takes a moment."""
        rounds = BLOCKS * len(PENALTIES) * ROUNDS
        return rounds * windows.inputs**2 * windows.shape[1] <= MOST_WORK

    def best_penalties(self) -> Array:
        """Of each target (target,), as shares of its largest; judged on left-out blocks of time."""
        (own_gram, own_cross), counts = self._parts, self._counts[:, None, None]
        weight = counts.sum() - counts
        gram = (own_gram.sum(0) - own_gram) / weight  # of the other blocks
        cross = (own_cross.sum(0) - own_cross) / weight
        beta, losses = np.zeros_like(cross), []
        largest = np.abs(cross).max(1, keepdims=True)
        for share in PENALTIES:
            beta = self._solved(gram, cross, share * largest, beta, ROUNDS)
            # of the left-out block, up to its sum of squares
            losses.append((beta * (own_gram @ beta - 2 * own_cross)).sum((0, 1)))
        return np.asarray(PENALTIES[np.argmin(losses, axis=0)])

    def solve(self, penalties: Array) -> Array:
        """Coefficients (1 + input, target) for penalties (target,) as shares of the largest."""
        count = self._counts.sum()
        gram, cross = (values.sum(0) / count for values in self._parts)
        penalty = penalties * np.abs(cross).max(0)
        beta = self._solved(gram, cross, penalty, np.zeros_like(cross), MORE_ROUNDS)
        input_mean, target_mean = self._means
        return np.concatenate([(target_mean - input_mean @ beta)[None], beta])

    @cached_property
    def _means(self) -> tuple[Array, Array]:
        rows = self.rows
        return rows.inputs.mean(0, dtype=np.float64), rows.targets.mean(0, dtype=np.float64)

    @cached_property
    def _counts(self) -> Array:
        """Rows of every block."""
        return np.array([float(b.stop - b.start) for b in stretches(len(self.rows), BLOCKS)])

    @cached_property
    def _parts(self) -> tuple[Array, Array]:
        """Sums of products about the means of all rows, per block of time: of inputs (block, input,
        input), of inputs and targets (block, input, target)."""
        input_mean, target_mean = self._means
        gram, cross = [], []
        for block in stretches(len(self.rows), BLOCKS):
            inputs = self.rows.inputs[block] - input_mean
            gram.append(inputs.T @ inputs)
            cross.append(inputs.T @ (self.rows.targets[block] - target_mean) * self.allowed)
        return np.stack(gram), np.stack(cross)

    def _solved(self, gram: Array, cross: Array, penalty: Array, beta: Array, rounds: int) -> Array:
        """Beck and Teboulle's FISTA from `beta` (..., input, target); penalties (..., target)."""
        step = 1 / np.maximum(largest_variance(gram), 1e-12)[..., None, None]
        ahead, momentum = beta, 1.0
        for _ in range(rounds):
            moved = ahead - step * (gram @ ahead - cross)
            after = np.sign(moved) * np.maximum(np.abs(moved) - step * penalty, 0) * self.allowed
            larger = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = after + (momentum - 1) / larger * (after - beta)
            beta, momentum = after, larger
        return beta

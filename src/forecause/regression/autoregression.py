"""A vector autoregression by least squares, its order by Akaike's criterion: the usual rival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forecause.regression.least_squares import damped, positive_solve

# Shape of the model:
ROWS_PER_TERM = 3  # at least, of an order that is tried

# Time and memory:
MOST_TERMS = 600  # of a row
MOST_ROWS = 20_000  # of the end, that are learned from

# Numerics:
DAMPING = 1e-9  # of the Gram matrix, so that it can be solved

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Autoregression:
    """x[t] = constant + sum over lags of weights[lag] x[t - lag]."""

    constant: Array  # (column,)
    weights: Array  # (lag, source, target)

    @classmethod
    def fitted(cls, stretches: Sequence[Array], most_lags: int) -> Autoregression:
        """To unbroken stretches (row, column); rows with a missing value are left out."""
        rows = sum(map(len, stretches))
        columns = stretches[0].shape[1]
        affordable = min(rows // (ROWS_PER_TERM * columns), MOST_TERMS // columns)
        longest = max(map(len, stretches))
        most = max(1, min(most_lags, affordable, longest // 2))
        known = np.concatenate(stretches)
        mean, sd = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
        sd = np.where(sd > 0, sd, 1.0)
        scaled = [(part - mean) / sd for part in stretches]
        order = _order(*_design(scaled, most), columns)
        design, targets = _design(scaled, order)
        beta = positive_solve(damped(design.T @ design, DAMPING), design.T @ targets)
        weights = beta[1:].reshape(order, columns, columns) * sd / sd[:, None]
        return cls(mean + beta[0] * sd - np.einsum("s,lst->t", mean, weights), weights)

    def path(self, history: Array, steps: int) -> Array:
        """Forecasts (step, column) of the rows after a history (row, column)."""
        lags = len(self.weights)
        before = np.repeat(history[:1], max(lags - len(history), 0), axis=0)  # where it is short
        known = np.concatenate([before, history[-lags:], np.zeros((steps, history.shape[1]))])
        with np.errstate(over="ignore", invalid="ignore"):  # an unstable model runs away
            for row in range(len(known) - steps, len(known)):
                latest = known[row - lags : row][::-1]
                known[row] = self.constant + np.einsum("ls,lst->t", latest, self.weights)
        return known[-steps:]


def _design(stretches: Sequence[Array], lags: int) -> tuple[Array, Array]:
    """(row, 1 + lag * column), the latest lag first, and the targets (row, column)."""
    found = []
    for part in stretches:
        if len(part) <= lags:
            continue
        rows = np.arange(lags, len(part))
        past = part[rows[:, None] - np.arange(1, lags + 1)].reshape(len(rows), -1)
        found.append(np.column_stack([np.ones(len(rows)), past, part[rows]]))
    table = np.concatenate(found)
    table = table[np.isfinite(table).all(1)][-MOST_ROWS:]
    columns = stretches[0].shape[1]
    return table[:, :-columns], table[:, -columns:]


def _order(design: Array, targets: Array, columns: int) -> int:
    """The number of lags with the least Akaike criterion, all orders on the same rows."""
    count = len(targets)
    gram, cross = damped(design.T @ design, DAMPING), design.T @ targets
    square = targets.T @ targets
    found = []
    for order in range(1, (design.shape[1] - 1) // columns + 1):
        terms = 1 + order * columns
        beta = positive_solve(gram[:terms, :terms], cross[:terms])
        covariance = (square - beta.T @ cross[:terms]) / count
        size = np.linalg.slogdet(covariance + DAMPING * np.eye(columns))[1]
        found.append(size + 2 * order * columns**2 / count)
    return int(np.argmin(found)) + 1

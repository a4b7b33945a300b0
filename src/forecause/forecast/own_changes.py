"""Autoregression of each column's changes on its own: shrunk to the last value, not to zero.

The change from row to row is regressed on how far earlier values lie from the last one, the latest
lags and those about a season back. With every coefficient at zero the last value is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecause.arrays import Array, Index
from forecause.forecast.linear import Linear
from forecause.forecast.refit import ridge_by_blocks

LEAST_LAGS = 6
MOST_SEASON = 30  # rows: of a longer season only the lags about it are inputs
ROWS_PER_LAG = 15
MOST_ROWS = 20_000  # of the end of a series, that are learned from


@dataclass(frozen=True, eq=False)
class OwnChanges:
    """The next change of every column from its own past."""

    lags: Index  # ascending, 1 the first
    weights: Array  # (lag - 1, column) of x[t - lag] - x[t - 1], the first lag left out
    constant: Array  # (column,)

    @classmethod
    def fitted(cls, history: Array, season: int) -> OwnChanges:
        """To a history (row, column) without gaps; the penalty of each column by blocks of time."""
        history = history[-MOST_ROWS:]
        lags = _lags(len(history), season)
        rows = np.arange(lags[-1], len(history))
        weights = np.zeros((len(lags) - 1, history.shape[1]))
        constant = np.zeros(history.shape[1])
        for column, values in enumerate(history.T):
            change = values[rows] - values[rows - 1]
            size = change.std()
            if size <= 0:
                continue
            terms = values[rows[:, None] - lags[1:]] - values[rows - 1][:, None]
            scale = terms.std(0) + 1e-12 * size
            found = ridge_by_blocks(terms / scale, change / size, Linear().ridges).coefficients
            constant[column] = found[0] * size
            weights[:, column] = found[1:] * size / scale
        return cls(lags, weights, constant)

    def paths(self, history: Array, origins: Index, steps: int) -> Array:
        """Forecasts (origin, step, column) of the rows from each origin on."""
        longest = int(self.lags[-1])
        past = np.stack([history[row - longest : row] for row in origins])  # (origin, row, column)
        known = np.concatenate([past, np.zeros((len(past), steps, past.shape[2]))], axis=1)
        for step in range(steps):
            end = longest + step
            last = known[:, end - 1]
            terms = known[:, end - self.lags[1:]] - last[:, None]
            known[:, end] = last + self.constant + np.einsum("olc,lc->oc", terms, self.weights)
        return known[:, longest:]


def _lags(rows: int, season: int) -> Index:
    most = LEAST_LAGS if season > MOST_SEASON else max(LEAST_LAGS, season + 1)
    lags = set(range(1, max(min(most, rows // ROWS_PER_LAG), 2) + 1))
    if season > 1 and 4 * season < rows:
        lags |= {lag for lag in range(season - 1, season + 3) if lag > 1}
    return np.array(sorted(lags), dtype=np.int64)

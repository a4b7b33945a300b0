"""What follows the level of each column: half exponential smoothing, half its own changes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Index
from forecause.data.panel import Panel
from forecause.forecast.linear import Linear
from forecause.forecast.refit import ridge_by_blocks

# Time and memory:
MOST_HISTORY = 6_000  # rows that are looked at
MOST_SMOOTHED = 1_500  # of the end of a series, that the parameters are chosen by


# Shape of the model:
LEVEL_RATES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
SLOPES = ((0.0, 1.0), (0.05, 0.9), (0.2, 0.9), (0.05, 0.98), (0.2, 0.98))  # rate, damping
SEASON_RATES = (0.0, 0.1, 0.3)
FIRST_CYCLES = 3  # whose mean the season begins with
# and of own changes:
LEAST_LAGS = 6
MOST_SEASON = 30  # rows: of a longer season only the lags about it are inputs
ROWS_PER_LAG = 15


@dataclass(frozen=True, eq=False)
class Follower:
    """Follows level, slope and season of every column: half smoothing, half own changes."""

    smoothing: Smoothing
    changes: OwnChanges

    @classmethod
    def fitted(cls, history: Array, season: int) -> Follower:
        """To a history (row, column) without gaps."""
        season = season if 3 * season <= len(history) else 1
        return cls(Smoothing.fitted(history, season), OwnChanges.fitted(history, season))

    def paths(self, history: Array, origins: Index, steps: int) -> Array:
        """Forecasts (origin, step, column) of the rows from each origin on."""
        one, other = (m.paths(history, origins, steps) for m in (self.smoothing, self.changes))
        return np.asarray((one + other) / 2)


def final_path(history: Array, season: int, steps: int) -> Array:
    """What follows a history (row, column), (step, column), by a follower fitted to all of it."""
    end = np.array([len(history)])
    return Follower.fitted(history, season).paths(history, end, steps)[0]


def history_before(panel: Panel, row: int) -> Array:
    """The unbroken rows (row, column) before a row, gaps filled by the last value."""
    start = int(panel.starts[np.searchsorted(panel.starts, row, side="left") - 1])
    start = max(start, row - MOST_HISTORY)
    values = np.asarray(panel.values[start:row], dtype=np.float64)
    if np.isnan(values).any():
        values = pd.DataFrame(values).ffill().bfill().fillna(0.0).to_numpy()
    return values


@dataclass(frozen=True, eq=False)
class Smoothing:
    """Exponential smoothing with a damped trend and an additive season, all columns at once.

    Level, slope and season follow the series, so a shift of the level does not go stale. Each
    column has the parameters of a small grid that forecast it best one row ahead.
    """

    season: int  # rows; 1: none
    rates: Array  # (4, column): level, slope, damping, season

    @classmethod
    def fitted(cls, history: Array, season: int) -> Smoothing:
        """To a history (row, column) without gaps."""
        history = history[-MOST_SMOOTHED:]
        season_rates = SEASON_RATES if season > 1 else (0.0,)
        choices = product(LEVEL_RATES, SLOPES, season_rates)
        grid = np.array([(level, *slope, own) for level, slope, own in choices])
        rates = grid.T[:, :, None]  # (4, choice, 1)
        state = _State.of(history, season, rates[0])
        squares = np.zeros((len(grid), history.shape[1]))
        for row, values in enumerate(history):
            error = state.follow(values, row, rates)
            if row >= max(2 * season, 5):
                squares += error**2
        return cls(season, grid[squares.argmin(0)].T)

    def paths(self, history: Array, origins: Index, steps: int) -> Array:
        """Forecasts (origin, step, column) of the rows from each origin on."""
        if self.season == 1:  # a level forgets how it began; a season that stands still does not
            forgotten = max(int(origins.min()) - MOST_SMOOTHED, 0)
            history, origins = history[forgotten:], origins - forgotten
        state = _State.of(history, self.season, self.rates[0])
        damping = self.rates[2]
        ahead = np.cumsum(damping ** np.arange(1, steps + 1)[:, None], axis=0)  # (step, column)
        wanted = {int(row): place for place, row in enumerate(origins)}
        paths = np.empty((len(origins), steps, history.shape[1]))
        for row in range(int(origins.max()) + 1):
            if row in wanted:
                own = state.season[(row + np.arange(steps)) % self.season]
                paths[wanted[row]] = state.level + ahead * state.slope + own
            if row < len(history):
                state.follow(history[row], row, self.rates)
        return paths


@dataclass
class _State:
    """Level and slope (..., column), and the season (place, ..., column)."""

    level: Array
    slope: Array
    season: Array

    @classmethod
    def of(cls, history: Array, season: int, rate: Array) -> _State:
        """As a history begins."""
        cycles = max(min(len(history) // season, FIRST_CYCLES), 1) if season > 1 else 0
        shape = np.broadcast_shapes(rate.shape, history.shape[1:])
        level, places = history[0], np.zeros((1, history.shape[1]))
        if cycles:
            first = history[: cycles * season].reshape(cycles, season, -1)
            level = first.mean((0, 1))
            places = (first - first.mean(1, keepdims=True)).mean(0)
        spread = places.reshape(len(places), *[1] * (len(shape) - 1), -1)
        return cls(
            np.broadcast_to(level, shape).copy(),
            np.zeros(shape),
            np.broadcast_to(spread, (len(places), *shape)).copy(),
        )

    def follow(self, values: Array, row: int, rates: Array) -> Array:
        """Learn from the values of a row; the error that was made there."""
        level_rate, slope_rate, damping, season_rate = rates
        place = row % len(self.season)
        drifted = self.slope * damping
        error = values - self.level - drifted - self.season[place]
        self.level = self.level + drifted + level_rate * error
        self.slope = drifted + level_rate * slope_rate * error
        self.season[place] += season_rate * (1 - level_rate) * error
        return np.asarray(error)


@dataclass(frozen=True, eq=False)
class OwnChanges:
    """Autoregression of each column's changes on its own: shrunk to the last value, not to zero.

    The change from row to row is regressed on how far earlier values lie from the last one, the
    latest lags and those about a season back. With every coefficient at zero the last value is
    repeated.
    """

    lags: Index  # ascending, 1 the first
    weights: Array  # (lag - 1, column) of x[t - lag] - x[t - 1], the first lag left out
    constant: Array  # (column,)

    @classmethod
    def fitted(cls, history: Array, season: int) -> OwnChanges:
        """To a history (row, column) without gaps; the penalty of each column by blocks of time."""
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
            fit = ridge_by_blocks(terms / scale, change / size, Linear().ridges)
            constant[column] = fit.coefficients[0] * size
            weights[:, column] = fit.coefficients[1:] * size / scale
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

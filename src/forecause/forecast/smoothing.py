"""Exponential smoothing with a damped trend and an additive season, all columns at once.

Level, slope and season follow the series, so a shift of the level does not go stale. Each column
has the parameters of a small grid that forecast it best one row ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from forecause.arrays import Array, Index

LEVEL_RATES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
SLOPES = ((0.0, 1.0), (0.05, 0.9), (0.2, 0.9), (0.05, 0.98), (0.2, 0.98))  # rate, damping
SEASON_RATES = (0.0, 0.1, 0.3)
MOST_ROWS = 1_500  # of the end of a series, that the parameters are chosen by
FIRST_CYCLES = 3  # whose mean the season begins with


@dataclass(frozen=True, eq=False)
class Smoothing:
    """The parameters of every column: rates of level, slope and season, and the damping."""

    season: int  # rows; 1: none
    rates: Array  # (4, column): level, slope, damping, season

    @classmethod
    def fitted(cls, history: Array, season: int) -> Smoothing:
        """To a history (row, column) without gaps."""
        history = history[-MOST_ROWS:]
        season_rates = SEASON_RATES if season > 1 else (0.0,)
        grid = np.array(
            [
                (level, slope, damping, own)
                for level, (slope, damping), own in product(LEVEL_RATES, SLOPES, season_rates)
            ]
        )
        tried = cls(season, grid.T[:, :, None])  # (4, choice, 1)
        squares = np.zeros((len(grid), history.shape[1]))
        warm = max(2 * season, 5)
        for row, error in enumerate(tried._errors(history)):
            if row >= warm:
                squares += error**2
        return cls(season, grid[squares.argmin(0)].T)

    def paths(self, history: Array, origins: Index, steps: int) -> Array:
        """Forecasts (origin, step, column) of the rows from each origin on."""
        state = _State.of(history, self.season, self.rates[0])
        damping = self.rates[2]
        ahead = np.cumsum(damping ** np.arange(1, steps + 1)[:, None], axis=0)  # (step, column)
        wanted = {int(row): place for place, row in enumerate(origins)}
        found = np.empty((len(origins), steps, history.shape[1]))
        for row in range(int(origins.max()) + 1):
            if row in wanted:
                own = state.season[(row + np.arange(steps)) % self.season]
                found[wanted[row]] = state.level + ahead * state.slope + own
            if row < len(history):
                state.follow(history[row], row, self.rates)
        return found

    def _errors(self, history: Array) -> list[Array]:
        """One row ahead, (choice, column) for every row."""
        state = _State.of(history, self.season, self.rates[0])
        return [state.follow(values, row, self.rates) for row, values in enumerate(history)]


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

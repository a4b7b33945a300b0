"""What follows the level of each column: half exponential smoothing, half its own changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from forecause.arrays import Array, Index
from forecause.data.panel import Panel
from forecause.forecast.own_changes import OwnChanges
from forecause.forecast.smoothing import Smoothing

MOST_HISTORY = 6_000  # rows that are looked at


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

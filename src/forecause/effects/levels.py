"""One level of a label in place of the others, which stand in by how often they hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from forecause.common.arrays import Array, Mask, Single
from forecause.data.panel import Scale
from forecause.data.variables import Variables
from forecause.data.windows import Windows, past_and_targets
from forecause.effects.coefficient_draws import has_dense_fit
from forecause.effects.intervals import LEVEL, Interval
from forecause.regression.robust import hc3_fit

# Time and memory:
MOST_WINDOWS = 20_000  # for the interval


@dataclass(frozen=True, eq=False)
class LevelChange:
    """From other levels of a label to one of them, as standardised values of its columns."""

    columns: list[int]
    level: Array  # (column,) where it holds
    others: Array  # (other level, column)
    chances: Array  # (other level,) how often each holds among them

    @classmethod
    def of(cls, coding: Variables, scale: Scale, column: int) -> LevelChange | None:
        """Of a level's column; None where the column is a number."""
        label = coding.label(int(coding.of_column[column]))
        if label is None:
            return None
        own = label.columns.tolist()
        places = (np.eye(len(own)) - scale.mean[own]) / scale.sd[own]  # (level, column)
        at = own.index(column)
        chances = np.delete(scale.mean[own], at)
        return cls(own, places[at], np.delete(places, at, axis=0), chances / chances.sum())

    @property
    def step(self) -> Array:
        """What changes on average, (column,)."""
        return np.asarray(self.level - self.chances @ self.others)

    def drawn_others(self, count: int, rng: np.random.Generator) -> Single:
        """So many of the other levels, (case, column), each as often as it should be."""
        ends = np.cumsum(self.chances) * count
        which = np.searchsorted(ends, np.arange(count) + 0.5).clip(max=len(ends) - 1)
        return self.others[rng.permutation(which)].astype(np.float32)


def level_effect(
    windows: Windows, change: LevelChange, outcome: int, lag: int, causes: Mask
) -> Interval:
    """The direct effect of a level on a column, standardised: lines on all inputs with HC3 errors.

    Where rows are few, on the causes (step * column,) of the outcome and the label alone.
    """
    past, targets = past_and_targets(windows.observed(outcome).thin(MOST_WINDOWS))
    own = np.array(change.columns) + (windows.max_lag - lag) * windows.shape[1]
    used = np.ones(past.shape[1], bool)
    if not has_dense_fit(len(past), past.shape[1]):
        used = causes.copy()
        used[own] = True
    design = np.column_stack([np.ones(len(past)), past[:, used]]).astype(np.float64)
    coefficients, h, left = hc3_fit(design, targets[:, [outcome]].astype(np.float64))
    contrast = np.zeros(past.shape[1])
    contrast[own] = change.step
    weight = np.concatenate([[0.0], contrast[used]])
    point = float(weight @ coefficients[:, 0])
    error = float(np.sqrt(np.square(h @ weight) @ np.square(left[:, 0])))
    half = float(stdtrit(max(len(past) - design.shape[1], 1), (1 + LEVEL) / 2)) * error
    return Interval(point, point - half, point + half)

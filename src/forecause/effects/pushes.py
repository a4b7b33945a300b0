"""What a push changes in all columns, row by row: in closed form for lines, else in two futures.

A curved forecaster is asked in states of the data: a future with the push and one without it, under
the same noise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from forecause.common.arrays import Array, Floats, Index, Mask, Single
from forecause.effects.answering import FARTHEST, noise_of
from forecause.effects.levels import LevelChange
from forecause.forecast.forecaster import Forecaster, roll
from forecause.result import Result

# Time and memory:
CASES = 1_000  # states of the data, with noise of their own, that a curved forecaster starts from


@dataclass(frozen=True, eq=False)
class Raise:
    """A variable that is raised at one row or from then on: a column, or those of a label."""

    columns: list[int]
    size: Array  # (column,) in standard deviations
    horizon: int
    held: bool = False
    sums: Mask | None = None  # (all columns,) changes from row to row: the answer is of their sums
    level: LevelChange | None = None  # in place of others

    @property
    def kept(self) -> float | None:
        """The share of the push in every later row; None where the variable is left to itself."""
        if not self.held:
            return None
        is_change = self.sums is not None and bool(self.sums[self.columns].any())
        return 0.0 if is_change else 1.0  # a change is made once, its sum stays

    def summed(self, moved: Array) -> Array:
        """Answers (..., row from 0, column) of the values themselves, without the push's row."""
        if self.sums is not None and self.sums.any():
            moved = np.where(self.sums, np.cumsum(moved, axis=-2), moved)
        return np.asarray(moved[..., 1:, :])


def cases_of(
    found: Result, model: Forecaster, push: Raise, seed: int
) -> Callable[[Collection[int]], Array]:
    """What a push changes where some columns are kept: (case, row from 0, column), standardised.

    One case where the forecaster is straight, many states of the data otherwise.
    """
    if not model.is_straight or model.domains:
        return _Arms.of(found, model, push, seed).moved
    weight = model.jacobian(found.data.sampled.past[:1])[0].astype(np.float64)[None]
    return lambda kept: recursion(weight, push, kept)


def recursion(weight: Array, push: Raise, kept: Collection[int] = ()) -> Array:
    """Impulse responses (draw, row from 0, column) of weights (draw, target, step, source).

    Columns that are `kept` do not move.
    """
    draws, columns, lags, _ = weight.shape
    moved = np.zeros((draws, push.horizon + 1, columns))
    moved[:, 0, push.columns] = push.size
    still = list(kept)
    with np.errstate(over="ignore", invalid="ignore"):  # an unstable draw runs away
        for row in range(1, push.horizon + 1):
            for lag in range(1, min(lags, row) + 1):
                moved[:, row] += np.einsum("dts,ds->dt", weight[:, :, -lag], moved[:, row - lag])
            if push.kept is not None:
                moved[:, row, push.columns] = push.kept * push.size
            moved[:, row, still] = 0.0
            np.clip(np.nan_to_num(moved[:, row]), -FARTHEST, FARTHEST, out=moved[:, row])
    return moved


@dataclass(frozen=True, eq=False)
class _Arms:
    """Futures from states of the data, with the push and without it, under the same noise."""

    model: Forecaster
    push: Raise
    past: Single  # (case, max_lag, column)
    domain: Index | None
    noise: Single  # (row after, case, column)
    plain: Single  # (case, row after, column), without the push

    @classmethod
    def of(cls, found: Result, model: Forecaster, push: Raise, seed: int) -> _Arms:
        window, rng = found.data.sampled, np.random.default_rng(seed)
        if found.windows is not None:
            window = found.windows.sample(CASES, rng).whole()
        times = -(-CASES // len(window))
        past = np.repeat(window.past, times, axis=0)
        domain = None if window.domain is None else np.repeat(window.domain, times)
        pool = noise_of(found, model, -1)
        noise = pool[rng.integers(len(pool), size=(push.horizon, len(past)))]
        start = None
        if push.level is not None:
            start = push.level.drawn_others(len(past), rng)
            past[:, -1, push.columns] = start

        def follows(row: int, told: Floats) -> Single:
            following = _clipped(told + noise[row])
            if push.held and start is not None:
                following[:, push.columns] = start
            return following

        plain = roll(model, past, push.horizon, follows, domain)
        return cls(model, push, past, domain, noise, plain)

    def moved(self, kept: Collection[int] = ()) -> Array:
        """What the push changes, (case, row from 0, column)."""
        push, still = self.push, list(kept)
        raised = self.past.copy()
        if push.level is None:
            raised[:, -1, push.columns] += push.size
        else:
            raised[:, -1, push.columns] = push.level.level
        first = (raised - self.past)[:, -1]

        def follows(row: int, told: Floats) -> Single:
            following = _clipped(told + self.noise[row])
            following[:, still] = self.plain[:, row, still]
            if push.kept is not None:
                step = push.kept * first[:, push.columns]
                following[:, push.columns] = self.plain[:, row, push.columns] + step
            return following

        other = roll(self.model, raised, push.horizon, follows, self.domain)
        return np.concatenate([first[:, None], other - self.plain], axis=1).astype(np.float64)


def _clipped(values: Floats) -> Single:
    return np.nan_to_num(values).clip(-FARTHEST, FARTHEST).astype(np.float32)

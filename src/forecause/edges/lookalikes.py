"""Links that something else imitates: a shock that reaches both ends, or noise that lingers.

A cause acts by its value, whatever that value came from. What goes with the surprise of a source
alone, with what its own past did not tell, is rather a shock from elsewhere that reaches the source
first. And where a target's own noise has a memory, an older lag of a true cause helps to tell that
noise from the effect: it echoes the cause at a smaller lag, with the opposite sign.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.regression.least_squares import coefficients_of
from forecause.regression.robust import wald_p_values

# Time and memory:
MOST_INPUTS = 200  # with more, nothing is asked
MOST_LOOKED_AT = 4_000  # windows

# Shape of the model:
OLDER_LAGS = 3  # of its own, by which the memory of a target's noise is told


Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def only_surprises(windows: Windows, asked: Mask, level: float, value_tells: float) -> Mask:
    """Which of the inputs asked about (target, source, lag) tell by their surprise alone.

    The value of the source at that lag and its surprise stand side by side, given all lags of the
    other variables: the surprise counts at this level, the value not even at `value_tells`. A
    target that adds the source to a memory of its own, with the same decay, looks the same.
    """
    found = np.zeros_like(asked)
    looked = _looked_at(windows)
    if looked is None:
        return found
    asked = _of_numbers(windows, asked)
    least = thresholds().grades.windows_per_input * windows.inputs
    beside = windows.remembered("value beside surprise", lambda: _Beside(looked))
    for source, lag in np.argwhere(asked.any(0)).tolist():
        of_value, of_surprise = beside.p_values(source, lag, least)
        is_surprise = (of_value > value_tells) & (of_surprise < level)
        found[:, source, lag] = asked[:, source, lag] & is_surprise
    return found


class _Beside:
    """Tests of a source's value and of its surprise side by side, each worked out once."""

    def __init__(self, looked: Windows) -> None:
        self.rows, self.first = looked.rows, looked.panel.coding.first
        self.past, self.target = _lags_first(looked)
        design = np.column_stack([self.past.reshape(len(self.past), -1), np.ones(len(self.past))])
        self.surprise = self.target - design @ coefficients_of(design, self.target)
        self.known: dict[tuple[int, int], tuple[Array, Array]] = {}

    def p_values(self, source: int, lag: int, least: float) -> tuple[Array, Array]:
        """Of the value and of the surprise, (target,); 1 where rows are fewer than `least`."""
        if (source, lag) not in self.known:
            self.known[source, lag] = self._p_values(source, lag, least)
        return self.known[source, lag]

    def _p_values(self, source: int, lag: int, least: float) -> tuple[Array, Array]:
        place = np.searchsorted(self.rows, self.rows - lag - 1)
        now = np.flatnonzero(self.rows[place] == self.rows - lag - 1)
        if len(now) < least:
            return np.ones(len(self.first)), np.ones(len(self.first))
        own = self.first[source]
        both = [self.past[now, lag, own], self.surprise[place[now], own], np.ones(len(now))]
        others = np.delete(self.past[now], own, axis=2).reshape(len(now), -1)
        targets = self.target[now][:, self.first]
        of_value, of_surprise = wald_p_values(np.column_stack([*both, others]), targets, 2, 1).T
        return of_value, of_surprise


def echoes(windows: Windows, asked: Mask, level: float) -> Mask:
    """Which of the inputs asked about (target, source, lag) may echo a smaller lag of the source.

    The smaller lag is asked about too and has a larger effect, of the other sign (of the same, if
    the target swings); and own lags from before the window tell of the target at this level.
    """
    found = np.zeros_like(asked)
    looked = _looked_at(windows)
    if looked is None:
        return found
    asked = _of_numbers(windows, asked)
    past, target = _lags_first(looked)
    lags, columns = past.shape[1:]
    design = np.column_stack([past.reshape(len(past), -1), np.ones(len(past))])
    effects = coefficients_of(design, target)[:-1].T.reshape(columns, lags, columns)
    first = windows.panel.coding.first
    effects = effects[first][:, :, first].transpose(0, 2, 1)  # (target, source, lag)
    for i, j, lag in np.argwhere(asked).tolist():
        before = effects[i, j, :lag][asked[i, j, :lag]]
        swing = effects[i, j, lag] * before * effects[i, i, 0]
        found[i, j, lag] = bool(((swing < 0) & (np.abs(before) > abs(effects[i, j, lag]))).any())
    for i in np.flatnonzero(found.any((1, 2))).tolist():
        found[i] &= _own_older_p_value(looked, int(first[i])) < level
    return found


def _own_older_p_value(looked: Windows, column: int) -> float:
    """That own lags from before the window tell nothing of a column, given all lags within it."""
    try:
        longer = Windows.of(looked.panel, looked.max_lag + OLDER_LAGS)
    except InputError:
        return 1.0
    kept = longer.at(np.flatnonzero(np.isin(longer.rows, looked.rows)))
    if len(kept) < thresholds().grades.windows_per_input * (looked.inputs + OLDER_LAGS):
        return 1.0
    past, target = _lags_first(kept)
    inside = past[:, : looked.max_lag].reshape(len(past), -1)
    design = np.column_stack([past[:, looked.max_lag :, column], np.ones(len(past)), inside])
    return float(wald_p_values(design, target[:, [column]], 1, OLDER_LAGS)[0, 0])


def _looked_at(windows: Windows) -> Windows | None:
    """The windows that are looked at; None where inputs are too many for them."""
    looked = windows.thin(MOST_LOOKED_AT)
    enough = len(looked) >= thresholds().grades.windows_per_input * windows.inputs
    return looked if enough and windows.inputs <= MOST_INPUTS else None


def _lags_first(windows: Windows) -> tuple[Array, Array]:
    """The past (window, lag, column), the latest first, and what followed (window, column)."""
    batch = windows.whole()
    return batch.past[:, ::-1].astype(np.float64), batch.target.astype(np.float64)


def _of_numbers(windows: Windows, asked: Mask) -> Mask:
    """Those asked about that are links between two different numbers."""
    coding = windows.panel.coding
    is_number = np.isin(coding.first, coding.numeric_columns)
    between = is_number[:, None] & is_number & ~np.eye(len(is_number), dtype=bool)
    return np.asarray(asked & between[:, :, None])

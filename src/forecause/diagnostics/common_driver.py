"""One thing that is not a column moves many: averages of the others tell more than any of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forecause.arrays import Array, Index
from forecause.data.windows import moments_of
from forecause.diagnostics.driver_checks import REMEDIES
from forecause.diagnostics.examined import Examined
from forecause.diagnostics.finding import Finding, listed, strongest, within
from forecause.regression.least_squares import principal_axes, pseudo_inverse
from forecause.regression.moments import Moments
from forecause.regression.robust import f_p_values

MOST_INPUTS = 1000  # of the models that are compared
ROWS_PER_INPUT = 3
ENOUGH_FOR_TWO = 6  # variables from which two averages are tried: a driver with several states


def common_driver(run: Examined) -> Iterator[Finding]:
    """Targets that averages of all other variables forecast better than any of them alone.

    Per target, the lags of the other variables' first one or two principal components are tested
    given its own past, and the single lags of the others given both. A cause among the columns is
    told better by its own lags; a driver that none of them records is told by all of them together.
    """
    windows, columns = run.looked, run.coding.numeric_columns
    inputs, rows = windows.inputs, len(windows)
    if len(columns) < 3 or inputs > MOST_INPUTS or rows < ROWS_PER_INPUT * inputs:
        return
    averages = Averages(moments_of(windows), windows.max_lag, windows.shape[1], columns)
    level, bounds = run.bounds.level / len(columns), run.bounds
    driven: dict[int, float] = {}
    alone: dict[int, set[int]] = {1: set(), 2: set()}
    for place, column in enumerate(columns.tolist()):
        for count in (1, 2) if len(columns) >= ENOUGH_FOR_TWO else (1,):
            p_value, beyond = averages.tests(place, count)
            if p_value < level:
                driven[column] = min(p_value, driven.get(column, 1.0))
                ahead = 1.0 if count == 1 else bounds.two_averages_ahead
                if beyond > bounds.single_lags_p and averages.best_single(place) * ahead > p_value:
                    alone[count].add(column)
    enough = len(alone[1] | alone[2]) >= bounds.least_driven_by_two
    if len(alone[1]) < bounds.least_driven and not enough:
        return
    names = tuple(run.column_names[i] for i in driven)
    yield Finding(
        "common-driver",
        f"An average of all other variables forecasts {listed(names)}, and no variable by itself "
        "tells more: something that is not a column may move many of them, and links between them "
        f"may only be its echo{run.sampled}",
        gravity="doubt",
        about=within(names, run.names),
        variables=names,
        evidence=strongest((run.column_names[i], p_value) for i, p_value in driven.items()),
        advice=REMEDIES,
    )


@dataclass(frozen=True)
class Averages:
    """F-tests of averages of the other variables, from moments of all lags of all columns."""

    moments: Moments
    max_lag: int
    columns: int
    looked: Index  # the columns that are numbers

    def tests(self, place: int, count: int) -> tuple[float, float]:
        """Two p-values of the number at a place: that so many averages of the others add nothing to
        its own past, and that single lags of the others add nothing to both."""
        own = np.concatenate([[0], self._lags[:, place]])
        every = np.concatenate([[0], self._lags.ravel()])
        features = np.zeros((len(self.moments.gram), len(own) + count * self.max_lag))
        features[own, np.arange(len(own))] = 1.0
        others = np.delete(np.arange(len(self.looked)), place)
        axes = principal_axes(self._now[np.ix_(others, others)])[1][:, : -count - 1 : -1]
        for step in range(self.max_lag):
            first = len(own) + step * count
            features[self._lags[step, others], first : first + count] = axes
        inside = features.T @ self.moments.gram @ features
        along = features.T @ self.moments.cross[:, self.looked[place]]
        averaged = self._left(place, inside, along)
        rows, width = int(self.moments.count), features.shape[1]
        return (
            f_p_value(self._left_by(place, own), averaged, width - len(own), rows - width),
            f_p_value(averaged, self._left_by(place, every), len(every) - width, rows - len(every)),
        )

    def best_single(self, place: int) -> float:
        """The smallest p-value that the lags of one other variable add nothing to the own past."""
        own = np.concatenate([[0], self._lags[:, place]])
        before = self._left_by(place, own)
        freedom = int(self.moments.count) - len(own) - self.max_lag
        others = np.delete(np.arange(len(self.looked)), place).tolist()
        left = [self._left_by(place, np.concatenate([own, self._lags[:, j]])) for j in others]
        return f_p_value(before, min(left), self.max_lag, freedom)

    @property
    def _lags(self) -> Index:
        """The features that are lags, (step, number), the oldest first."""
        return 1 + np.arange(self.max_lag)[:, None] * self.columns + self.looked

    @property
    def _now(self) -> Array:
        """Covariance of the latest values, (number, number)."""
        latest, count = self._lags[-1], self.moments.count
        mean = self.moments.gram[0, latest] / count
        return np.asarray(self.moments.gram[np.ix_(latest, latest)] / count - np.outer(mean, mean))

    def _left_by(self, place: int, features: Index) -> float:
        """What some features leave of the number at a place, a sum of squares."""
        along = self.moments.cross[features, self.looked[place]]
        return self._left(place, self.moments.gram[np.ix_(features, features)], along)

    def _left(self, place: int, gram: Array, along: Array) -> float:
        square = self.moments.square[self.looked[place]]
        return float(square - along @ pseudo_inverse(gram) @ along)


def f_p_value(before: float, after: float, more: int, freedom: int) -> float:
    """That so many more terms explain no more than chance does."""
    if more < 1 or freedom < 1:
        return 1.0
    f = (before - after) / more / max(after / freedom, 1e-300)
    return float(f_p_values(np.array(f), more, freedom))

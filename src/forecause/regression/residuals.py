"""What a forecast leaves unexplained: its correlations across variables and time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, ndtr

from forecause.config.thresholds import thresholds

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Together:
    """How residuals of several columns move together within a row."""

    p_value: float  # that none does
    of_each: Array  # (column,) that it moves with no other
    size: float  # root mean square of the correlations, less what chance makes of it


@dataclass(frozen=True, eq=False)
class Residuals:
    """Target minus forecast of every window, in time order."""

    values: Array  # (window, variable)
    rows: npt.NDArray[np.int64]  # (window,) row of the panel
    stretch: npt.NDArray[np.int64]  # (window,) which unbroken stretch the row lies in

    @classmethod
    def of(cls, values: Array, rows: Index, starts: Index) -> Residuals:
        """Values (window, variable) of these rows; unbroken stretches begin at `starts`."""
        return cls(values, rows, np.searchsorted(starts, rows, side="right"))

    def at(self, rows: Index) -> Array:
        """Those of the windows with these rows of the panel, (window, variable)."""
        return self.values[np.searchsorted(self.rows, rows)]

    def correlation(self, lag: int, least: float = 0.0) -> tuple[Array, Array]:
        """Correlation of each variable now with each `lag` rows earlier, and its p-value.

        Both (now, earlier). The p-value allows for noise whose size changes over time: under no
        correlation, sum(a b) has the variance sum(a^2 b^2); of a correlation no larger than
        `least` it is not computed but 1. Pairs never cross stretches.
        """
        now, earlier = self._pairs(lag)
        p_values = np.ones((self.values.shape[1],) * 2)
        if len(now) < thresholds().diagnosis.least_pairs:
            return np.zeros_like(p_values), p_values
        a, b = (part - part.mean(0) for part in (self.values[now], self.values[earlier]))
        products = a.T @ b
        squares = (np.einsum("nv,nv->v", part, part) for part in (a, b))
        correlation = products / np.maximum(np.sqrt(np.outer(*squares)), 1e-300)
        i, j = np.nonzero(np.abs(correlation) >= least)
        if len(i) > a.shape[1]:
            noise = ((a**2).T @ (b**2))[i, j]
        else:
            noise = ((a[:, i] * b[:, j]) ** 2).sum(0)
        z = products[i, j] / np.maximum(np.sqrt(noise), 1e-300)
        p_values[i, j] = 2 * ndtr(-np.abs(z))
        return correlation, p_values

    def together(self, columns: Index, inputs: int, without: Mask | None = None) -> Together:
        """Whether those of some columns move together within a row, all pairs taken as one.

        Many correlations that are each too small to be told from chance may not be so as a whole.
        Pairs (column, column) `without` which it is asked are left out. A fit of so many inputs
        leaves residuals that are correlated by chance a little more than noise is.
        """
        left = self.values[:, columns] - self.values[:, columns].mean(0)
        products, squares = left.T @ left, left**2
        size = np.outer(squares.sum(0), squares.sum(0))
        freedom = max(1 - inputs / max(len(left), 1), 0.0)
        evidence = products**2 / np.maximum(squares.T @ squares, 1e-300) * freedom
        asked = ~np.eye(len(columns), dtype=bool)
        if without is not None:
            asked &= ~without[np.ix_(columns, columns)]
        total, pairs = float(evidence[asked].sum()), max(int(asked.sum()), 1)
        correlation = np.square(products)[asked] / np.maximum(size[asked], 1e-300)
        beyond_chance = max(1 - pairs / max(total, 1e-300), 0.0)
        return Together(
            float(chdtrc(pairs / 2, total / 2)),
            np.asarray(chdtrc(np.maximum(asked.sum(1), 1), np.where(asked, evidence, 0).sum(1))),
            float(np.sqrt(correlation.sum() / pairs * beyond_chance)),
        )

    def sizes(self, columns: Index, most: float) -> Residuals:
        """How large those of some columns are, in usual sizes, cut at `most` of them."""
        size = np.abs(self.values[:, columns])
        usual = np.maximum(np.median(size, axis=0), 1e-12)
        return Residuals(np.minimum(size / usual, most), self.rows, self.stretch)

    def memory(self, lags: int) -> Array:
        """Correlation (lag, variable) of each variable with itself 1 to `lags` rows earlier."""
        centred = self.values - self.values.mean(0)
        variance = np.maximum(np.square(centred).mean(0), 1e-300)
        found = np.zeros((lags, centred.shape[1]))
        for lag in range(1, lags + 1):
            now, earlier = self._pairs(lag)
            if len(now) >= thresholds().diagnosis.least_pairs:
                found[lag - 1] = (centred[now] * centred[earlier]).mean(0) / variance
        return found

    def _pairs(self, lag: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Places of the windows that have one `lag` rows earlier in their stretch, and of those."""
        place = np.searchsorted(self.rows, self.rows - lag)
        has_earlier = (self.rows[place] == self.rows - lag) & (self.stretch[place] == self.stretch)
        return np.flatnonzero(has_earlier), place[has_earlier]


def product_t_values(factors: Array, errors: Array) -> Array:
    """How products of two factors (row, factor) go with the errors (row,), (factor, factor).

    The spread is that of the errors where the products are: honest where noise is not the same
    everywhere.
    """
    weighted = factors * errors[:, None]
    spread = np.sqrt(np.square(weighted).T @ np.square(factors))
    return np.asarray(weighted.T @ factors / np.maximum(spread, 1e-12))

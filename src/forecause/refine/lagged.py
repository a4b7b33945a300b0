"""Sums of products of a panel's lagged values, and regressions of some of them on others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forecause.data import Panel, Windows
from forecause.regression.least_squares import Regression

FloatArray = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
CHUNK_VALUES = 20_000_000  # numbers of a design held in memory at once


@dataclass(frozen=True, eq=False)
class LaggedProducts:
    """Centred sums of products of all lags: all that least squares needs, whatever their length.

    Columns are blocks of `variables`: first the values at lag 0 (the targets), then lag 1, 2 ...
    """

    cross: FloatArray  # ((max_lag + 1) * variables, the same)
    windows: int
    variables: int
    max_lag: int

    @classmethod
    def of(cls, panel: Panel, max_lag: int) -> LaggedProducts:
        """Summed over chunks of windows, so that the design is never held whole."""
        windows = Windows.of(panel, max_lag)
        columns = (max_lag + 1) * len(panel.variables)
        total, cross = np.zeros(columns), np.zeros((columns, columns))
        size = max(1, CHUNK_VALUES // columns)
        for start in range(0, len(windows), size):
            part = lagged_values(windows, windows.rows[start : start + size])
            flat = part.reshape(len(part), columns)
            total += flat.sum(0)
            cross += flat.T @ flat
        cross -= np.outer(total, total) / len(windows)
        return cls(cross, len(windows), len(panel.variables), max_lag)

    def regress(self, predictors: Index, targets: Index) -> Regression:
        """Fit the columns `targets` on the columns `predictors`."""
        return Regression.of(
            self.cross[np.ix_(predictors, predictors)],
            self.cross[np.ix_(predictors, targets)],
            self.cross[targets, targets],
            self.windows,
        )


def lagged_values(windows: Windows, rows: Index) -> FloatArray:
    """Standardised values (window, lag 0 .. max_lag, variable) seen from these target rows."""
    values = windows.panel.values[rows[:, None] - np.arange(windows.max_lag + 1)]
    scaled = (values.astype(np.float64) - windows.scale.mean) / windows.scale.sd
    return np.asarray(scaled, dtype=np.float64)

"""A run as the checks see it: windows, residuals and names, each worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from forecause.common.arrays import Array, Mask
from forecause.config.thresholds import DiagnosisThresholds
from forecause.data.variables import Variables
from forecause.data.windows import Window, Windows
from forecause.forecast.causal import Causal
from forecause.forecast.forecaster import residuals_of
from forecause.forecast.selection import Fitted
from forecause.graph.lagged import LaggedGraph
from forecause.regression.least_squares import KnownFeatures
from forecause.regression.residuals import Residuals

# Time and memory:
MOST_WINDOWS = 20_000  # looked at
FEWEST_WINDOWS = 2_000  # looked at, if there are as many
MOST_LINES = 500  # for least squares of what closed forms leave
CORRELATION_WORK = 100_000_000  # windows * variables^2 correlated per lag, at most


@dataclass(frozen=True, eq=False)
class Examined:
    """What was fitted to which windows, the graph that came of it, and the bounds of the checks."""

    windows: Windows
    fitted: Fitted
    graph: LaggedGraph
    bounds: DiagnosisThresholds
    causal: Causal | None = None

    @property
    def coding(self) -> Variables:
        return self.windows.panel.coding

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self.coding.variables

    @cached_property
    def column_names(self) -> list[str]:
        """The variable of every column."""
        return [self.names[place] for place in self.coding.of_column]

    @cached_property
    def is_number(self) -> Mask:
        """Which columns are numbers, not levels of a label, (column,)."""
        return np.isin(np.arange(self.windows.shape[1]), self.coding.numeric_columns)

    @cached_property
    def looked(self) -> Windows:
        """All windows, or of many enough of them, in stretches spread over time."""
        affordable = CORRELATION_WORK // self.windows.shape[1] ** 2
        return self.windows.thin(int(np.clip(affordable, FEWEST_WINDOWS, MOST_WINDOWS)))

    @cached_property
    def batch(self) -> Window:
        """The values of the windows that are looked at."""
        return self.looked.whole()

    @cached_property
    def residuals(self) -> Residuals:
        """What the forecaster leaves unexplained of them."""
        return residuals_of(self.fitted.forecaster, self.looked)

    @cached_property
    def residuals_beside_lines(self) -> Residuals:
        """The same less what lines of the inputs tell of it, where a closed form was kept.

        Its penalty was chosen on held-out rows: what it gives away to be steady is no misfit.
        """
        past = self.batch.past.reshape(len(self.looked), -1).astype(np.float64)
        if past.shape[1] > MOST_LINES or len(past) < self.bounds.windows_per_input * past.shape[1]:
            return self.residuals
        penalised = (
            self.fitted.losses["chosen"]
            .isin(["linear", "additive"])
            .to_numpy()[self.coding.of_column]
        )
        lines = KnownFeatures.of(np.column_stack([np.ones(len(past)), past]))
        left = lines.taken_off(self.residuals.values)
        return replace(self.residuals, values=np.where(penalised, left, self.residuals.values))

    @property
    def sampled(self) -> str:
        """In brackets how many windows were looked at, if not all."""
        if len(self.looked) == len(self.windows):
            return ""
        share = f"{len(self.looked):,} of {len(self.windows):,} windows"
        return f" (seen in {share}, spread over all rows)"

    def correlation(self, lag: int, residuals: Residuals | None = None) -> tuple[Array, Array]:
        """Of residuals now and `lag` rows earlier, (now, earlier) of variables, and p-values.

        Where all are numbers, p-values of what is too small to matter are 1; of labels,
        significance decides first.
        """
        least = 0.0 if self.coding.labels else self.bounds.least_correlation
        chosen = self.residuals if residuals is None else residuals
        return of_variables(*chosen.correlation(lag, least), self.coding)


def of_variables(correlation: Array, p_values: Array, coding: Variables) -> tuple[Array, Array]:
    """Correlations (column, column) as (variable, variable): for labels the most significant or
    strongest of their columns, its p-value times how many there are."""
    if not coding.labels:
        return correlation, p_values
    count = len(coding.variables)
    strongest, chance = np.zeros((count, count)), np.ones((count, count))
    for i, j in np.ndindex(count, count):
        block = np.ix_(coding.columns(i), coding.columns(j))
        order = np.lexsort((-np.abs(correlation[block]).ravel(), p_values[block].ravel()))
        strongest[i, j] = correlation[block].ravel()[order[0]]
        chance[i, j] = min(p_values[block].min() * p_values[block].size, 1.0)
    return strongest, chance


def by_size(values: Array, chosen: Mask) -> list[tuple[int, int]]:
    """Places of the chosen cells of (row, column), the largest size first."""
    rows, columns = np.nonzero(chosen)
    order = np.argsort(-np.abs(values[rows, columns]), kind="stable")
    return [(int(rows[k]), int(columns[k])) for k in order]


def named(names: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    """The variables at these places, each once, in the data's order."""
    return tuple(names[place] for place in sorted(set(places)))

"""What a refinement starts from: the discovered lagged edges, the pairs at lag 0, lagged moments.

A pair is a candidate if what the past leaves unexplained of the two moves together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from forecause.common.arrays import Array, Index, Mask
from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.windows import Windows, batches_of, moments_of
from forecause.diagnostics.examined import of_variables
from forecause.errors import InputError
from forecause.forecast.forecaster import ENOUGH_WINDOWS
from forecause.graph.axes import by_step
from forecause.graph.edge_table import edge_keys
from forecause.graph.lagged import LaggedGraph
from forecause.regression.least_squares import Regression
from forecause.regression.moments import unexplained
from forecause.regression.p_values import adjusted_p_values
from forecause.regression.residuals import Residuals

# Time and memory:
CHUNK_VALUES = 20_000_000  # numbers of a design held in memory at once
Place = tuple[int, int, int]  # target, source, lag


@dataclass(frozen=True)
class Pair:
    """Two variables whose residuals move together within a row."""

    first: str
    second: str
    correlation: float
    q_value: float


def check_variables(panel: Panel, graph: LaggedGraph) -> None:
    """The data must be those of the graph, variable by variable."""
    given = panel.coding.variables
    if given != graph.variables:
        raise InputError(
            f"The data must have the graph's variables {list(graph.variables)} in this order, "
            f"found {list(given)}; give the table that the graph was discovered from."
        )


def lagged_places(graph: LaggedGraph) -> list[Place]:
    """Where the lagged causal edges lie in an array (target, source, lag 0 ..)."""
    place = {name: i for i, name in enumerate(graph.variables)}
    keys = edge_keys(graph.causal.edges)
    return [(place[target], place[source], lag) for source, target, lag in keys if lag > 0]


def candidate_mask(graph: LaggedGraph, pairs: Iterable[Pair]) -> Mask:
    """The discovered lagged edges, and the pairs at lag 0 in both directions."""
    place = {name: i for i, name in enumerate(graph.variables)}
    mask = np.zeros((len(place), len(place), graph.max_lag + 1), dtype=bool)
    for cell in lagged_places(graph):
        mask[cell] = True
    for pair in pairs:
        first, second = place[pair.first], place[pair.second]
        mask[first, second, 0] = mask[second, first, 0] = True
    return mask


def screen_instantaneous(panel: Panel, graph: LaggedGraph) -> tuple[Pair, ...]:
    """The pairs that are linked at lag 0, by an effect or a hidden cause; the strongest first.

    Every variable is regressed on its parents in the graph; the correlations of what is left
    pass Benjamini-Hochberg over all pairs. A label is correlated by the level that does most.
    """
    correlation, p_values = of_variables(*_residuals(panel, graph).correlation(0), panel.coding)
    names = panel.coding.variables
    first, second = np.triu_indices(len(names), 1)
    q_values = adjusted_p_values(p_values[first, second])
    pairs = [
        Pair(names[i], names[j], float(correlation[i, j]), float(q))
        for i, j, q in zip(first, second, q_values, strict=True)
        if q <= thresholds().hidden.within_row_fdr
    ]
    return tuple(sorted(pairs, key=lambda pair: -abs(pair.correlation)))


def _residuals(panel: Panel, graph: LaggedGraph) -> Residuals:
    """What least squares on each variable's lagged parents leaves, in time order."""
    windows = Windows.of(panel, graph.max_lag).thin(ENOUGH_WINDOWS)
    owner = panel.coding.of_column
    edges = graph.adjacency.sel(lag=slice(1, None)).values[owner][:, owner]
    parents = by_step(edges)  # (target, step, source), of columns
    allowed = parents.reshape(len(parents), -1).T
    coefficients = moments_of(windows).solve(allowed=allowed)
    left = unexplained(batches_of(windows), coefficients)
    return Residuals.of(left, windows.rows, windows.panel.starts)


@dataclass(frozen=True, eq=False)
class LaggedProducts:
    """Centred sums of products of all lags: all that least squares needs, whatever their length.

    Columns are blocks of `variables`: first the values at lag 0 (the targets), then lag 1, 2 ...
    """

    cross: Array  # ((max_lag + 1) * variables, the same)
    windows: int
    variables: int  # columns of the panel
    max_lag: int
    members: tuple[Index, ...]  # the columns of every variable that count

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
        return cls(cross, len(windows), len(panel.variables), max_lag, counted_columns(panel))

    def columns(self, variable: int, lag: int) -> Index:
        """Where the values of a variable at a lag are."""
        return self.members[variable] + lag * self.variables

    def regress(self, predictors: Index, targets: Index) -> Regression:
        """Fit the columns `targets` on the columns `predictors`."""
        return Regression.of(
            self.cross[np.ix_(predictors, predictors)],
            self.cross[np.ix_(predictors, targets)],
            self.cross[targets, targets],
            self.windows,
        )


def counted_columns(panel: Panel) -> tuple[Index, ...]:
    """The columns of every variable; of a label, without its most common level."""
    mean = panel.moments[0]
    members = []
    for own in panel.coding.slices:
        columns = np.arange(own.start, own.stop)
        if len(columns) > 1:
            columns = np.delete(columns, np.argmax(mean[columns]))
        members.append(columns)
    return tuple(members)


def lagged_values(windows: Windows, rows: Index) -> Array:
    """Standardised values (window, lag 0 .. max_lag, variable) seen from these target rows."""
    values = windows.panel.values[rows[:, None] - np.arange(windows.max_lag + 1)]
    scaled = (values.astype(np.float64) - windows.scale.mean) / windows.scale.sd
    return np.asarray(scaled, dtype=np.float64)

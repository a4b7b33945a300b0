"""What is asked of a forecaster about its inputs, of which windows, and what it answers.

A forecaster carries its tests: of every input it says how likely its effect is to be chance. Closed
forms know that from their moments, every other forecaster from rows that it did not learn from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from forecause.common.arrays import Array, Index, Mask
from forecause.config.thresholds import thresholds
from forecause.data.variables import Inputs
from forecause.data.windows import Windows
from forecause.graph.axes import labelled_together
from forecause.progress import QUIET, Progress
from forecause.regression.p_values import adjusted_p_values
from forecause.regression.scan import InputGroups

if TYPE_CHECKING:
    from forecause.forecast.input_tests.refits import Refits

Number = TypeVar("Number", bound=np.generic)

# Time and memory:
DRAWS = 100  # resamples of time behind the stability


@dataclass(frozen=True, eq=False)
class TestRequest:
    """The windows that inputs are tested on, and what is known before.

    `suspects` marks inputs that some forecaster leans on: their products are tried even if they
    show nothing alone. Less `effort` uses fewer windows.
    """

    windows: Windows
    allowed: xr.DataArray  # (target, source, lag) of variables
    suspects: xr.DataArray
    fdr: float = 0.05  # the accepted share of false edges
    fdr_if_weak: float = 0.05  # the same where the links are weak ones
    head: str = "mse"  # whether effects on the variance count, too
    effort: float = 1.0
    progress: Progress = QUIET
    refits: Refits | None = None  # of the forecaster that was asked for, if it is no closed form

    def level(self, p_values: Array) -> float:
        """The p-value at which Benjamini-Hochberg at `fdr` draws the line."""
        passed = int((adjusted_p_values(p_values) <= self.fdr).sum())
        return self.fdr * passed / max(int(np.isfinite(p_values).sum()), 1)


@dataclass(frozen=True, eq=False)
class InputTests:
    """The answer: arrays over (target, source, lag) of variables, and which model decided."""

    p_value: Array  # of no effect; NaN where an input was not allowed
    stability: Array  # share of resamples of time in which it stays below the line
    decided_by: tuple[str, ...]  # (target,) label of the forecaster whose tests these are
    # What the deciding forecaster makes of each input, where it is not read from its gradients.
    relevance: Array | None = None  # NaN where gradients tell
    least_share: Array | float = field(  # of the target's relevance that an edge must have
        default_factory=lambda: thresholds().edges.least_share
    )
    doubtful: Mask | None = None  # edges that may be there only because a forecaster misses much
    # The places step * column that the product model of a target column reads, if it keeps one.
    products: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of_columns(
        cls, inputs: Inputs, p_values: Array, stability: Array, kept: Mapping[int, str]
    ) -> InputTests:
        """From (target column, input) and the kind that each target column keeps."""
        return cls(
            inputs.by_lag(inputs.p_values_of_targets(p_values)),
            inputs.by_lag(inputs.largest_of_targets(stability)),
            tuple(kept[column] for column in inputs.coding.first.tolist()),
        )

    def dataset(self, variables: tuple[str, ...]) -> xr.Dataset:
        """The statistics under their names, `decided_by` apart."""
        names = ("p_value", "stability", "relevance", "doubtful", "least_share")
        every = {name: getattr(self, name) for name in names}
        arrays = {name: own for name, own in every.items() if isinstance(own, np.ndarray)}
        return labelled_together(arrays, variables)

    def with_variance(self, p_values: Array) -> InputTests:
        """An effect on the mean or on the variance counts; the smaller p-value times two."""
        smaller = np.minimum(self.p_value, p_values)
        return replace(self, p_value=np.minimum(2 * smaller, 1.0))


@dataclass(frozen=True, eq=False)
class TestedWindows:
    """The past of every window as one row of inputs, lag 1 first, and what followed.

    A group of inputs is a variable at a lag, be it a number or all levels of a label; groups are
    numbered lag * variable.
    """

    inputs: Array  # (row, input), standardised
    targets: Array  # (row, column), standardised
    rows: Index  # (row,) of the panel
    domain: Index | None  # (row,)
    groups: InputGroups
    variable: Index  # (input,) whose past it is
    lag: Index  # (input,)
    past_shape: tuple[int, int]  # (max_lag, columns)

    @classmethod
    def of(cls, windows: Windows) -> TestedWindows:
        """All of these windows."""
        every = windows.whole()
        coding, (steps, columns) = windows.panel.coding, windows.shape
        of_variable = [coding.columns(v) for v in range(len(coding.variables))]
        groups = tuple(lag * columns + own for lag in range(steps) for own in of_variable)
        curved = np.tile(np.isin(np.arange(columns), coding.numeric_columns), steps)
        return cls(
            every.past[:, ::-1].reshape(len(every), -1).astype(np.float64),
            every.target.astype(np.float64),
            windows.rows,
            every.domain,
            InputGroups(groups, curved),
            np.tile(coding.of_column, steps),
            np.arange(steps).repeat(columns) + 1,
            (steps, columns),
        )

    def of_groups(self, kept: Index) -> TestedWindows:
        """With some groups of the inputs alone, renumbered in their order."""
        if len(kept) == len(self.groups.groups):
            return self
        own = [self.groups.groups[g] for g in kept]
        columns = np.sort(np.concatenate(own))
        place = np.zeros(self.inputs.shape[1], dtype=np.int64)
        place[columns] = np.arange(len(columns))
        return replace(
            self,
            inputs=self.inputs[:, columns],
            groups=InputGroups(tuple(place[g] for g in own), self.groups.curved[columns]),
            variable=self.variable[columns],
            lag=self.lag[columns],
        )

    def by_lag(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """(target, group) of all groups -> (target, source, lag)."""
        steps = self.past_shape[0]
        return values.reshape(len(values), steps, -1).transpose(0, 2, 1).copy()


def by_group(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """(target, source, lag) -> (target, group)."""
    return values.transpose(0, 2, 1).reshape(len(values), -1).copy()


def link_q_values(p_values: Array, weights: Array | None = None) -> Array:
    """Adjusted p-values (target, source, ...), of self-links and of links between variables apart.

    Self-links are many and easy to find; adjusted together with them, more than the accepted share
    of the links between variables would be false. Benjamini-Hochberg on p-values over `weights` of
    mean 1 keeps its error rate whatever the weights (Genovese, Roeder and Wasserman 2006), and
    finds more if they lean towards true edges.
    """
    adjusted = np.empty(p_values.shape)
    own = np.eye(len(p_values), dtype=bool)  # (target, source)
    for kind in (own, ~own):
        given = p_values[kind]
        tested = np.isfinite(given)
        if weights is not None and tested.any():
            given = given / (weights[kind] / weights[kind][tested].mean())
        adjusted[kind] = adjusted_p_values(given)
    return adjusted


def own_past_weights(shape: tuple[int, ...]) -> Array:
    """Weights (target, source, lag) that favour a variable's own last value over its older ones."""
    weights = np.ones(shape)
    own = np.arange(shape[0])
    weights[own, own, 0] = thresholds().edges.own_past_weight
    return weights

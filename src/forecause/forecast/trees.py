"""Gradient-boosted trees, one ensemble per target, on the inputs that matter.

Everything that is fitted is a table of nodes, so a saved run holds numbers alone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import numpy as np

from forecause.arrays import Array, Floats, Index, Mask
from forecause.config import PLAIN_READOUTS
from forecause.forecast.boosted_trees import (
    MOST_TREES,
    NODES,
    BoostedTrees,
    grown,
    held_out_rows,
    sum_of_trees,
)
from forecause.forecast.forecaster import (
    PLAIN,
    STEP,
    FitData,
    Forecaster,
    ForecasterSettings,
    Rules,
)
from forecause.forecast.members import by_domain
from forecause.work_sharing import parallel_map

MOST_READ = 20  # inputs of a target
MOST_FIRST_TREES = 30  # that tell which inputs these are
MOST_LEARNED_WINDOWS = 20_000  # that are learned from


class Trees(ForecasterSettings):
    """Histogram trees on the inputs of each target that first trees of all inputs use most.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.Trees().kind
    'trees'
    """

    kind: ClassVar[str] = "trees"
    instant: ClassVar[bool] = True
    has_gradient: ClassVar[bool] = False
    readouts: ClassVar[tuple[str, ...]] = PLAIN_READOUTS

    def build(self, shape: tuple[int, int]) -> Forecaster:
        return by_domain(self, lambda plain: TreesModel(shape, plain), shape)


class TreesModel(Forecaster):
    """X_i,t = intercept + the sum of its trees' leaves; nodes are numbered from each root on."""

    state_names = ("intercept", "inputs", "thresholds", "branches", "values")
    settings: Trees
    read_windows = 500  # a slope takes two forecasts for every input

    def __init__(self, shape: tuple[int, int], settings: Trees) -> None:
        super().__init__(shape, settings)
        size = (self.n_variables, MOST_TREES, NODES)
        self.intercept = np.zeros(self.n_variables, dtype=np.float32)
        self.inputs = np.zeros(size, dtype=np.int64)  # step * variable
        self.thresholds = np.full(size, np.inf, dtype=np.float32)  # left if not above
        self.branches = np.zeros((*size, 2), dtype=np.int64)
        self.values = np.zeros(size, dtype=np.float32)  # of leaves

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        x = past.reshape(len(past), -1)
        return np.stack([self._sum(x, target) for target in range(self.n_variables)], axis=1)

    def _sum(self, x: Floats, target: int) -> Floats:
        """Forecast (batch,) of one target from inputs (batch, input)."""
        count = int(self.branches[target].any((1, 2)).sum())  # trees that split
        inputs, branches = self.inputs[target, :count], self.branches[target, :count]
        thresholds, values = self.thresholds[target, :count], self.values[target, :count]
        total = sum_of_trees(x, inputs, thresholds, branches, values)
        return np.asarray(self.intercept[target] + total)

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        """Mean slope within half a standard deviation of each input: trees have no other."""
        x = past.reshape(len(past), -1)
        slopes = np.zeros((len(x), self.n_variables, x.shape[1]), dtype=x.dtype)
        for target in range(self.n_variables):
            is_inner = self.branches[target].any(-1)
            for place in np.unique(self.inputs[target][is_inner]):
                moved = x.copy()
                moved[:, place] += STEP
                above = self._sum(moved, target)
                moved[:, place] -= 2 * STEP
                slopes[:, target, place] = (above - self._sum(moved, target)) / (2 * STEP)
        return slopes.reshape(len(x), self.n_variables, *past.shape[1:])

    def has_model_for(self, column: int) -> bool:
        return bool(self.branches[column].any())

    def keep_only(self, columns: Collection[int]) -> None:
        gone = [c for c in range(self.n_variables) if c not in columns]
        self.thresholds[gone] = np.inf
        for table in (self.inputs, self.branches, self.values):
            table[gone] = 0

    def fit(self, fit_data: FitData) -> None:
        windows = fit_data.windows.thin(MOST_LEARNED_WINDOWS)
        batch = windows.whole()
        inputs = batch.past.reshape(len(batch), -1).astype(np.float64)
        targets = batch.target.astype(np.float64)
        late = held_out_rows(len(inputs))
        allowed = self.allowed.reshape(self.n_variables, -1)
        columns = fit_data.columns or range(self.n_variables)
        common = inputs, targets, late, allowed
        for target, trees in zip(columns, parallel_map(_grown_for, common, columns), strict=True):
            fit_data.progress.step("growing trees", target / self.n_variables)
            if trees is None:
                self.intercept[target] = targets[:, target].mean()
                continue
            self.intercept[target], own = trees.intercept, slice(len(trees.inputs))
            self.inputs[target, own], self.branches[target, own] = trees.inputs, trees.branches
            self.thresholds[target, own], self.values[target, own] = trees.thresholds, trees.values
        self.estimate_noise(fit_data.held_out)


def _grown_for(common: tuple[Array, Array, Mask, Mask], target: int) -> BoostedTrees | None:
    """The trees of one target, None where it may read no input."""
    inputs, targets, late, allowed = common
    reads = np.flatnonzero(allowed[target])
    if len(reads) > MOST_READ:
        first = grown(inputs, targets[:, target], reads, late, MOST_FIRST_TREES)
        reads = np.sort(reads[np.argsort(-first.gains)[:MOST_READ]])
    return grown(inputs, targets[:, target], reads, late) if len(reads) else None

"""Gradient-boosted trees, one ensemble per target, on the inputs that matter.

scikit-learn grows them; what is kept are the nodes as tables of numbers, followed by a few lines of
our own, so a saved run holds no foreign objects.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from forecause.config import PLAIN_READOUTS
from forecause.forecast.boosted_trees import LEAVES, MOST_TREES, grown, held_out_rows
from forecause.forecast.forecaster import (
    STEP,
    FitData,
    Floats,
    Forecaster,
    ForecasterSettings,
    Index,
)
from forecause.forecast.members import by_domain
from forecause.forecast.rules import PLAIN, Rules
from forecause.work_sharing import parallel_map

NODES = 2 * LEAVES - 1  # of one tree
DEPTH = LEAVES - 1  # steps from its root to its farthest leaf
MOST_READ = 20  # inputs of a target
MOST_FIRST_TREES = 30  # that tell which inputs these are
MOST_LEARNED_WINDOWS = 20_000  # that are learned from

Array = npt.NDArray[np.float64]


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
        root = NODES * np.arange(count)  # nodes of all trees in one table
        inputs = self.inputs[target, :count].ravel()
        thresholds, values = (t[target, :count].ravel() for t in (self.thresholds, self.values))
        children = (self.branches[target, :count] + root[:, None, None]).reshape(-1, 2)
        node = np.broadcast_to(root, (len(x), count))
        for _ in range(DEPTH):
            is_above = np.take_along_axis(x, inputs[node], axis=1) > thresholds[node]
            after = children[node, is_above.astype(np.int64)]
            if np.array_equal(after, node):  # a leaf is its own child
                break
            node = after
        return np.asarray(self.intercept[target] + values[node].sum(1))

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
        common = inputs, targets, late, allowed, fit_data.seed
        for target, (model, reads) in zip(
            columns, parallel_map(_grown_for, common, columns), strict=True
        ):
            fit_data.progress.step("growing trees", target / self.n_variables)
            if len(reads):
                self._set(target, model, reads)
            else:
                self.intercept[target] = targets[:, target].mean()
        self.estimate_noise(fit_data.held_out)

    def _set(self, target: int, model: Any, reads: Index) -> None:
        """Take over the nodes of a target's trees, which read some of the inputs."""
        self.intercept[target] = float(np.ravel(model._baseline_prediction)[0])
        for tree, nodes in enumerate(_nodes(model)):
            is_leaf, own = nodes["is_leaf"].astype(bool), slice(len(nodes))
            children = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64)
            children[is_leaf] = np.flatnonzero(is_leaf)[:, None]
            feature = nodes["feature_idx"].clip(0, len(reads) - 1)
            self.inputs[target, tree, own] = np.where(is_leaf, 0, reads[feature])
            self.thresholds[target, tree, own] = np.where(is_leaf, np.inf, nodes["num_threshold"])
            self.branches[target, tree, own] = children
            self.values[target, tree, own] = np.where(is_leaf, nodes["value"], 0.0)


def _grown_for(
    common: tuple[Array, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], int], target: int
) -> tuple[Any, npt.NDArray[np.int64]]:
    """The trees of one target and the inputs that they read, which may be none."""
    inputs, targets, late, allowed, seed = common
    reads = np.flatnonzero(allowed[target])
    if len(reads) > MOST_READ:
        first = grown(inputs[:, reads], targets[:, target], late, seed, MOST_FIRST_TREES)
        reads = np.sort(reads[np.argsort(-_gains(first, len(reads)))[:MOST_READ]])
    return (grown(inputs[:, reads], targets[:, target], late, seed) if len(reads) else None), reads


def _nodes(model: Any) -> list[npt.NDArray[Any]]:
    """The table of nodes of every tree."""
    return [predictors[0].nodes for predictors in model._predictors]


def _gains(model: Any, inputs: int) -> Array:
    """What splits by each input gained, (input,)."""
    gains = np.zeros(inputs)
    for nodes in _nodes(model):
        inner = nodes[~nodes["is_leaf"].astype(bool)]
        np.add.at(gains, inner["feature_idx"].astype(np.int64), inner["gain"])
    return gains

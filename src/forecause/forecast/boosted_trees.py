"""Gradient-boosted trees on the inputs that matter, and their stack with the dictionary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from forecause.forecast.predictor import HasTerms, Predictor, part_of
from forecause.work_sharing import one_thread

if TYPE_CHECKING:  # nothing else needs scikit-learn, and importing it takes long
    from sklearn.ensemble import HistGradientBoostingRegressor

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

RATE = 0.15
LEAVES = 15
MOST_TREES = 100
BINS = 63  # of an input's values
PATIENCE = 4  # trees without a gain before growing stops
HELD_OUT_STRETCHES = 4  # of which one, spread over time, tells when to stop and how to stack
LEAST_WEIGHT = 0.15  # of a learner in the stack; below, the other stands alone
LEAST_LEAF = 20  # rows


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Histogram trees that read some columns of the inputs."""

    reads: Index
    model: HistGradientBoostingRegressor

    def predict(self, inputs: Array) -> Array:
        """(row,) of inputs (row, input)."""
        return np.asarray(self.model.predict(inputs[:, self.reads]), dtype=np.float64)

    def part(self, inputs: Array, columns: Index) -> Array:
        """The sum (row,) of the trees that split by any of some columns."""
        read, wanted = inputs[:, self.reads], set(columns.tolist())
        total = np.zeros(len(inputs))
        categories = self.model._bin_mapper.make_known_categories_bitsets()
        for (tree,), split_by in zip(self.model._predictors, self._split_by, strict=True):
            if not wanted.isdisjoint(split_by):
                total += tree.predict(read, *categories, 1)
        return total

    @cached_property
    def _split_by(self) -> list[frozenset[int]]:
        """The columns of the inputs that every tree splits by."""
        nodes = (tree.nodes for (tree,) in self.model._predictors)
        inner = (own["feature_idx"][own["is_leaf"] == 0] for own in nodes)
        return [frozenset(self.reads[places].tolist()) for places in inner]


@dataclass(frozen=True, eq=False)
class Stack:
    """A weighted mean of predictors; the weights are not negative and sum to one."""

    parts: tuple[Predictor, ...]
    weights: tuple[float, ...]

    @property
    def reads(self) -> Index:
        return np.unique(np.concatenate([part.reads for part in self.parts]))

    def predict(self, inputs: Array) -> Array:
        """(row,) of inputs (row, input)."""
        parts = zip(self.weights, self.parts, strict=True)
        return np.asarray(sum(weight * part.predict(inputs) for weight, part in parts))

    def part(self, inputs: Array, columns: Index) -> Array:
        """The terms (row,) that involve any of some columns, of the parts that can tell them."""
        parts = zip(self.weights, self.parts, strict=True)
        return np.asarray(sum(w * part_of(p, inputs, columns) for w, p in parts))

    def terms(self, inputs: Array) -> tuple[list[tuple[int, ...]], Array]:
        """Those of the parts that can name terms; see `HasTerms`."""
        named = [part.terms(inputs) for part in self.parts if isinstance(part, HasTerms)]
        columns = [own for names, _ in named for own in names]
        return columns, np.concatenate([np.zeros((len(inputs), 0)), *(v for _, v in named)], axis=1)


def held_out_rows(rows: int) -> npt.NDArray[np.bool_]:
    """A quarter of the rows (row,), in stretches spread over time."""
    stretch = max(rows // (4 * HELD_OUT_STRETCHES), 1)
    return np.asarray((np.arange(rows) // stretch) % HELD_OUT_STRETCHES == HELD_OUT_STRETCHES - 1)


def stacked_with_trees(
    first: Predictor, held_out_forecast: Array, inputs: Array, target: Array, seed: int
) -> Predictor:
    """The stack of a predictor and trees on the same inputs, or the predictor if trees add nothing.

    `held_out_forecast` holds what a version of the predictor that did not see `held_out_rows`
    says of them.
    """
    late = held_out_rows(len(inputs))
    trees = BoostedTrees(first.reads, grown(inputs[:, first.reads], target, late, seed))
    errors = target[late] - held_out_forecast
    gained = trees.predict(inputs[late]) - held_out_forecast
    weight = float(np.clip(errors @ gained / max(float(gained @ gained), 1e-12), 0.0, 1.0))
    if weight < LEAST_WEIGHT:
        return first
    if weight > 1 - LEAST_WEIGHT:
        return trees
    return Stack((first, trees), (1 - weight, weight))


def grown(
    inputs: Array, target: Array, late: npt.NDArray[np.bool_], seed: int, most: int = MOST_TREES
) -> HistGradientBoostingRegressor:
    """At most `most` trees, grown as long as that helps on the rows that `late` (row,) marks.

    These are not learned from.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        learning_rate=RATE,
        max_leaf_nodes=LEAVES,
        max_iter=most,
        max_bins=BINS,
        min_samples_leaf=LEAST_LEAF,
        early_stopping=True,
        n_iter_no_change=PATIENCE,
        validation_fraction=None,
        random_state=seed,
    )
    with one_thread():  # of the pool that came with the import
        return model.fit(inputs[~late], target[~late], X_val=inputs[late], y_val=target[late])

"""Gradient-boosted trees, one ensemble per target, on the inputs that matter.

The method is that of scikit-learn's HistGradientBoostingRegressor, whose trees cannot be looked
into: inputs are put into bins of equal counts, each tree splits the leaf whose squared error falls
most, and growing ends once held-out rows are not forecast better any more. Everything that is
fitted is a table of nodes, so a saved run holds numbers alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from forecause.common.arrays import Array, Floats, Index, Mask
from forecause.common.work_sharing import parallel_map
from forecause.config import PLAIN_READOUTS
from forecause.forecast.forecaster import (
    ENOUGH_WINDOWS,
    PLAIN,
    STEP,
    FitData,
    Forecaster,
    ForecasterSettings,
    Rules,
)
from forecause.forecast.input_tests.projected_covariance import Predictor
from forecause.forecast.members import by_domain

# Shape of the model:
RATE = 0.15
LEAVES = 15
NODES = 2 * LEAVES - 1  # of one tree
BINS = 63  # of an input's values
PATIENCE = 4  # trees without a gain before growing stops
LEAST_LEAF = 20  # rows
LEAST_GAIN = 1e-7  # of half the mean squared error on held-out rows, that counts as one
HELD_OUT_STRETCHES = 4  # of which one, spread over time, tells when to stop and how to stack

# Time and memory:
BLOCK = 1_000  # rows whose leaves are looked up at a time
MOST_TREES = 100
MOST_READ = 20  # inputs of a target
MOST_FIRST_TREES = 30  # that tell which inputs these are

RANK_OF_BIT = np.zeros(2**LEAVES, dtype=np.intp)
RANK_OF_BIT[1 << np.arange(LEAVES)] = np.arange(LEAVES)


class Trees(ForecasterSettings):
    """Histogram trees on the inputs of each target that first trees of all inputs use most.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.Trees().kind
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
        windows = fit_data.windows.thin(ENOUGH_WINDOWS)
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


@dataclass(frozen=True, eq=False)
class BoostedTrees(Predictor):
    """Trees as tables of nodes, numbered from each root on; a leaf is its own child."""

    reads: Index  # (read,) the input columns that they were grown on
    gains: Array  # (read,) by how much splits lowered the sum of squared errors
    intercept: float
    inputs: Index  # (tree, node) the input column of a split
    thresholds: Array  # (tree, node), left if not above; infinite for leaves
    branches: Index  # (tree, node, 2)
    values: Array  # (tree, node) of leaves

    def predict(self, inputs: Array) -> Array:
        """(row,) of inputs (row, input)."""
        return self.intercept + self._sum(inputs, slice(None))

    def part(self, inputs: Array, columns: Index) -> Array:
        """The sum (row,) of the trees that split by any of some columns."""
        splits = np.isin(self.inputs, columns) & np.isfinite(self.thresholds)
        return self._sum(inputs, np.flatnonzero(splits.any(1)))

    def _sum(self, x: Array, trees: slice | Index) -> Array:
        inputs, branches = self.inputs[trees], self.branches[trees]
        return sum_of_trees(x, inputs, self.thresholds[trees], branches, self.values[trees])


def sum_of_trees(
    x: Floats,
    inputs: Index,
    thresholds: Floats,
    branches: Index,
    values: Floats,
) -> Floats:
    """What trees add up to (row,) for inputs x (row, input); tables as in BoostedTrees.

    Every split rules out the leaves on the side not taken, a bit each; the last one is the row's.
    """
    trees, low, high = np.arange(len(inputs))[:, None], branches[..., 0], branches[..., 1]
    is_leaf = (low == high) & (low == np.arange(NODES))
    rank = is_leaf.cumsum(1) - 1
    leaves = np.where(is_leaf, 1 << np.maximum(rank, 0), 0).astype(np.uint16)  # below each node
    for node in range(NODES - 1, -1, -1):
        leaves[:, node] |= leaves[trees[:, 0], low[:, node]] | leaves[trees[:, 0], high[:, node]]
    by_rank = np.zeros((len(inputs), LEAVES), dtype=values.dtype)
    by_rank[np.nonzero(is_leaf)[0], rank[is_leaf]] = values[is_leaf]
    splits = np.argsort(low == high, axis=1, kind="stable")[:, : LEAVES - 1]
    is_split = (low != high)[trees, splits]
    column, cut = inputs[trees, splits], thresholds[trees, splits]
    if_low, if_above = (
        ~np.where(is_split, leaves[trees, side[trees, splits]], np.uint16(0))
        for side in (high, low)
    )
    either = if_low ^ if_above  # quicker than a choice
    total = np.empty(len(x), dtype=values.dtype)
    for first in range(0, len(x), BLOCK):
        own = slice(first, first + BLOCK)
        columns = np.ascontiguousarray(x[own].T)
        left = np.repeat(leaves[:, :1], columns.shape[1], axis=1)
        for k in range(int(is_split.sum(1).max(initial=0))):
            is_above = columns[column[:, k]] > cut[:, k, None]
            left &= if_low[:, k, None] ^ either[:, k, None] * is_above
        total[own] = by_rank.ravel()[RANK_OF_BIT[left] + LEAVES * trees].sum(0)
    return total


def grown(
    inputs: Array, target: Array, reads: Index, late: Mask, most: int = MOST_TREES
) -> BoostedTrees:
    """At most `most` trees of some columns of inputs (row, input), grown as long as that helps on
    the rows that `late` (row,) marks, which are not learned from."""
    inputs = inputs[:, reads]
    cuts = [_cuts(column) for column in inputs[~late].T]
    codes = np.stack([np.searchsorted(c, x) for c, x in zip(cuts, inputs.T, strict=True)], axis=1)
    intercept = float(target[~late].mean())
    left = target - intercept  # (row,) not yet explained
    losses, trees = [float(np.mean(left[late] ** 2)) / 2], list[_Tree]()
    while len(trees) < most and not _has_stalled(losses):
        tree = _Tree(codes, left, late)
        trees.append(tree)
        left = left - tree.fitted
        losses.append(float(np.mean(left[late] ** 2)) / 2)
    return _tables(reads, intercept, trees, cuts)


def _cuts(column: Array) -> Array:
    """Values between the bins of an input, at most BINS - 1; a cut belongs to the bin below it."""
    distinct = np.unique(column)
    if len(distinct) <= BINS:
        return np.asarray((distinct[:-1] + distinct[1:]) / 2)
    shares = np.linspace(0, 100, BINS + 1)[1:-1]
    return np.unique(np.percentile(column, shares, method="averaged_inverted_cdf"))


def _has_stalled(losses: list[float]) -> bool:
    """Whether the last trees brought no progress on held-out rows."""
    if len(losses) <= PATIENCE:
        return False
    return min(losses[-PATIENCE:]) >= losses[-PATIENCE - 1] - LEAST_GAIN


@dataclass(eq=False)
class _Leaf:
    """A leaf while its tree grows: its rows, their sums by bin, and its best split."""

    node: int
    rows: Index  # learned from
    held_out: Index
    sums: Array  # (2, input, bin) of rows, and of what is to be explained
    gain: float = -np.inf
    input: int = 0
    bin: int = 0


def _find_splits(leaves: list[_Leaf]) -> None:
    """The split of each leaf that lowers the squared error most, with enough rows on both sides."""
    sums = np.stack([leaf.sums for leaf in leaves]).cumsum(-1)  # (leaf, 2, input, bin)
    whole = sums[..., -1:]
    count, total = sums.swapaxes(0, 1)
    rest_count, rest = (whole - sums).swapaxes(0, 1)
    gains = total**2 / np.maximum(count, 1) + rest**2 / np.maximum(rest_count, 1)
    gains[np.minimum(count, rest_count) < LEAST_LEAF] = -np.inf
    places = gains.reshape(len(leaves), -1).argmax(1).tolist()
    for leaf, own, (all_count, all_total), place in zip(leaves, gains, whole, places, strict=True):
        leaf.input, leaf.bin = divmod(place, BINS)
        of_whole = all_total[leaf.input, 0] ** 2 / max(all_count[leaf.input, 0], 1)
        leaf.gain = float(own[leaf.input, leaf.bin] - of_whole)


class _Tree:
    """Grown leaf by leaf; `fitted` (row,) is what it says of all rows."""

    def __init__(self, codes: Index, left: Array, late: Mask) -> None:
        self.left, self.width = left, codes.shape[1]
        self.codes = codes
        self.places = codes + BINS * np.arange(self.width)  # of a row's values among all bins
        self.splits: list[tuple[int, int, int, float]] = []  # node, input, bin, gain
        rows = np.flatnonzero(~late)
        fresh = [_Leaf(0, rows, np.flatnonzero(late), self._sums(rows))]
        leaves = list(fresh)
        while len(leaves) < LEAVES:
            _find_splits(fresh)
            best = max(leaves, key=lambda leaf: leaf.gain)
            if best.gain <= 0:
                break
            leaves.remove(best)
            fresh = self._halves(best)
            leaves += fresh
        self.fitted, self.values = np.zeros(len(left)), dict[int, float]()
        for leaf in leaves:
            value = RATE * float(left[leaf.rows].mean())
            self.values[leaf.node] = value
            self.fitted[leaf.rows] = self.fitted[leaf.held_out] = value

    def _sums(self, rows: Index) -> Array:
        """Count and sum (2, input, bin) of some rows."""
        places = self.places[rows].ravel()
        weights = np.repeat(self.left[rows], self.width)
        size = BINS * self.width
        sums = np.empty((2, size))
        sums[0] = np.bincount(places, minlength=size)
        sums[1] = np.bincount(places, weights, minlength=size)
        return sums.reshape(2, self.width, BINS)

    def _halves(self, leaf: _Leaf) -> list[_Leaf]:
        """The two leaves of a split; the sums of the larger one are what the smaller one leaves."""
        node = 2 * len(self.splits) + 1  # of the lower half; the upper one follows
        self.splits.append((leaf.node, leaf.input, leaf.bin, leaf.gain))
        column = self.codes[:, leaf.input]
        is_low, is_low_out = (column[rows] <= leaf.bin for rows in (leaf.rows, leaf.held_out))
        low, high = leaf.rows[is_low], leaf.rows[~is_low]
        low_out, high_out = leaf.held_out[is_low_out], leaf.held_out[~is_low_out]
        sums = self._sums(low if len(low) <= len(high) else high)
        other = leaf.sums - sums
        own, rest = (sums, other) if len(low) <= len(high) else (other, sums)
        return [_Leaf(node, low, low_out, own), _Leaf(node + 1, high, high_out, rest)]


def _tables(reads: Index, intercept: float, trees: list[_Tree], cuts: list[Array]) -> BoostedTrees:
    """The trees as tables."""
    size = (len(trees), NODES)
    inputs, values = np.zeros(size, dtype=np.int64), np.zeros(size)
    thresholds, gains = np.full(size, np.inf), np.zeros(len(cuts))
    branches = np.zeros((*size, 2), dtype=np.int64)
    for place, tree in enumerate(trees):
        for node, value in tree.values.items():
            values[place, node], branches[place, node] = value, node
        for number, (node, column, cut, gain) in enumerate(tree.splits):
            inputs[place, node], thresholds[place, node] = reads[column], cuts[column][cut]
            branches[place, node] = 2 * number + 1, 2 * number + 2
            gains[column] += gain
    return BoostedTrees(reads, gains, intercept, inputs, thresholds, branches, values)


def held_out_rows(rows: int) -> Mask:
    """A quarter of the rows (row,), in stretches spread over time."""
    stretch = max(rows // (4 * HELD_OUT_STRETCHES), 1)
    return np.asarray((np.arange(rows) // stretch) % HELD_OUT_STRETCHES == HELD_OUT_STRETCHES - 1)

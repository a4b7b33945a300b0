"""Cross-fitted projected covariance: p-values for the inputs of any forecaster.

A forecaster f is fitted on one part of time. On the other part, a candidate c is tested given all
other inputs Z by what f makes of it: h_c = f(x) minus the mean of f over likely values of x_c. If
c is no cause, what h_c and the errors Y - (f - h_c) have beyond functions of Z is uncorrelated.
Only forecasts are needed, so any forecaster will do (after Lundborg, Kim, Shah and Samworth, 2024).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.special import ndtr

from forecause.common.arrays import Array, Index, Mask
from forecause.common.work_sharing import parallel_map
from forecause.config.thresholds import thresholds
from forecause.regression.least_squares import damped, orthonormal_basis, precision, solved
from forecause.regression.scan import InputGroups
from forecause.regression.splines import BENDS, Splines

# Shape of the model:
LIKELY = (1 / 6, 1 / 2, 5 / 6)  # quantiles of what Z leaves open of a candidate
MOST_MULTIPLIED = 9  # other inputs whose products are part of the second projection
BLOCKS_RESAMPLED = 10  # stretches of a fold's rows that the stability is resampled from

# Numerics:
SMALLEST_ENERGY = 1e-10  # of h_c, below which a forecaster is taken not to use a candidate


class Predictor(ABC):
    """Anything that forecasts one target from inputs; it need not be differentiable."""

    reads: Index  # the input columns that it looks at; the others cannot become edges
    for_all_targets = False  # whether its effects are worked out for all targets at once

    @abstractmethod
    def predict(self, inputs: Array) -> Array:
        """Forecasts (row,) from inputs (row, input)."""

    def part(self, inputs: Array, columns: Index) -> Array:
        """Forecasts (row,) up to terms that some columns have no part in, if it can tell them."""
        return self.predict(inputs)

    def terms(self, inputs: Array) -> tuple[list[tuple[int, ...]], Array]:
        """The joint functions of inputs that it is made of, if it can name them: the input columns
        of each, and their values (row, term)."""
        return [], np.zeros((len(inputs), 0))

    def effect(self, view: FoldView, group: int) -> Array:
        """h_c (row,): what it makes of a candidate beyond the other inputs."""
        columns = view.candidates.groups[group]
        if not np.isin(columns, self.reads).any():
            return np.zeros(len(view.inputs))
        versions = [view.inputs, *view.replaced(group)]
        every = self.part(np.concatenate(versions), columns)
        own, *others = every.reshape(len(versions), -1)
        return np.asarray(own - np.mean(others, axis=0))


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to learn from and rows to test on."""

    train: Index
    test: Index


def time_folds(rows: Index, max_lag: int) -> tuple[Fold, Fold]:
    """Two folds of alternating stretches of time; `rows` (window,) number the targets' rows.

    A window whose past holds a row that is tested on is not learned from, wherever series and
    gaps lie: no window's past reaches across those.
    """
    bounds = thresholds().tests
    length = max(bounds.rows_per_stretch, 5 * max_lag)
    count = int(np.clip(len(rows) // length, 4, bounds.most_stretches))
    odd = np.arange(len(rows)) * count // max(len(rows), 1) % 2 == 1
    return _fold(rows, odd, max_lag), _fold(rows, ~odd, max_lag)


def _fold(rows: Index, tested: Mask, max_lag: int) -> Fold:
    held = rows[tested]
    past = (held[:, None] + np.arange(1, max_lag + 1)).ravel()
    learned = ~tested & ~np.isin(rows, past)
    return Fold(np.flatnonzero(learned), np.flatnonzero(tested))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a forecaster says about every candidate; groups are those of the candidates."""

    p_values: Array  # (target, group), one-sided; 1 where no fold's forecaster reads a group
    relevance: Array  # (target, group): mean of h_c^2
    errors: Array  # (row, target) of forecasts for rows that were not learned from
    block_sums: Array  # (target, group, block, 2): numerator and squared noise of the statistic

    def stability(self, level: float, draws: int, rng: np.random.Generator) -> Array:
        """Share (target, group) of resamples of the blocks of time in which p stays <= level."""
        blocks = self.block_sums.shape[2]
        counts = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=draws)
        sums = np.einsum("db,tgbk->dtgk", counts, self.block_sums)
        statistics = sums[..., 0] / np.sqrt(np.maximum(sums[..., 1], 1e-300))
        return np.asarray((ndtr(-statistics) <= level).mean(0))


def candidate_evidence(
    inputs: Array,
    targets: Array,
    folds: Sequence[Fold],
    predictors: Sequence[Sequence[Predictor]],
    candidates: InputGroups,
    wanted: Mask | None = None,
) -> Evidence:
    """Test every candidate for every target, or for those that `wanted` (target,) marks.

    inputs (row, input) and targets (row, target) are on a standard scale, rows in order of time;
    predictors[fold][target] was fitted on the fold's training rows.
    """
    views = [FoldView(inputs, fold, candidates) for fold in folds]
    common = targets, views, predictors, wanted
    each = parallel_map(_of_target, common, range(targets.shape[1]))
    if any(one.for_all_targets for own in predictors for one in own):
        each = map(partial(_of_target, common), range(targets.shape[1]))
    statistics, relevance, sums, left = (np.stack(parts) for parts in zip(*each, strict=True))
    errors = np.zeros_like(targets)
    errors[:] = left.T
    p_values = np.where(relevance > 0, ndtr(-statistics), 1.0)
    return Evidence(p_values, relevance, errors, sums)


def _of_target(
    common: tuple[Array, list[FoldView], Sequence[Sequence[Predictor]], Mask | None], target: int
) -> tuple[Array, Array, Array, Array]:
    """Statistics and relevance (group,), sums (group, block, 2) and errors (row,) of one target;
    see candidate_evidence."""
    targets, views, predictors, wanted = common
    tests = [
        _TargetTest(view, own[target], targets[view.fold.test, target])
        for view, own in zip(views, predictors, strict=True)
    ]
    groups = len(views[0].candidates.groups)
    statistics, relevance = np.zeros(groups), np.zeros(groups)
    sums = np.zeros((groups, len(tests) * BLOCKS_RESAMPLED, 2))
    for group in range(groups) if wanted is None or wanted[target] else ():
        statistics[group], sums[group] = _pooled_statistic(tests, group)
        relevance[group] = np.mean([test.energy(group) for test in tests])
    errors = np.zeros(len(targets))
    for test in tests:
        errors[test.view.fold.test] = test.observed - test.forecast
    return statistics, relevance, sums, errors


def _pooled_statistic(tests: Sequence[_TargetTest], group: int) -> tuple[float, Array]:
    """T of both folds together, and its sums by block of time (block, 2).

    The smaller of two projections counts where it matters.
    """
    first = _sums_of(tests, group, rich=False)
    if _t_value(first) < thresholds().tests.promising_t:
        return _t_value(first), first
    second = _sums_of(tests, group, rich=True)
    smaller = min(first, second, key=_t_value)
    return _t_value(smaller), smaller


def _sums_of(tests: Sequence[_TargetTest], group: int, rich: bool) -> Array:
    """Sums (block, 2) of L and of (L / (1 - leverage))^2; zero where a group is not read.

    A fold counts by the size of its h_c. Each fold's rows teach the other's h_c, so the signs of
    both parts go together; with lines of slope a and b the sum is 2ab / sqrt(a^2 + b^2), which is
    standard normal, but with equal weights it is too large too often.
    """
    parts = []
    for test in tests:
        sums = np.zeros((BLOCKS_RESAMPLED, 2))
        if test.energy(group) > 0:
            own, leverage = test.products(group, rich)
            each = np.stack([own, (own / (1 - leverage)) ** 2], axis=1)
            starts = np.linspace(0, len(each), BLOCKS_RESAMPLED, endpoint=False).astype(int)
            sums = np.add.reduceat(each, starts, axis=0)
        parts.append(sums)
    return np.concatenate(parts)


def _t_value(sums: Array) -> float:
    """Sum of L over the root of the sum of (L / (1 - leverage))^2, from sums (block, 2)."""
    total, spread = sums.sum(0)
    return float(total / np.sqrt(spread)) if spread > 0 else 0.0


class FoldView:
    """What targets share on a fold: the test rows, their splines, likely values of every input."""

    def __init__(self, inputs: Array, fold: Fold, candidates: InputGroups) -> None:
        self.fold, self.candidates = fold, candidates
        train = inputs[fold.train]
        self.inputs = inputs[fold.test]
        self.bends = Splines.of(train, candidates.curved).bends(self.inputs)
        self.bends_of = np.arange(inputs.shape[1]).repeat(BENDS)
        self.expected, self.quantiles = _linear_expectations(train, self.inputs)

    def replaced(self, group: int) -> list[Array]:
        """Copies of the inputs in which a group has values that are likely given the others."""
        columns = self.candidates.groups[group]
        if len(columns) == 1:
            column = int(columns[0])
            values = self.expected[:, [column]] + self.quantiles[:, column]
            return [self._with(columns, values[:, [k]]) for k in range(values.shape[1])]
        rows = len(self.inputs)  # levels of a label: those of other rows
        shifts = [(k + 1) * rows // (len(LIKELY) + 1) for k in range(len(LIKELY))]
        return [self._with(columns, np.roll(self.inputs[:, columns], s, axis=0)) for s in shifts]

    def _with(self, columns: Index, values: Array) -> Array:
        changed = self.inputs.copy()
        changed[:, columns] = values
        return changed


def _linear_expectations(train: Array, test: Array) -> tuple[Array, Array]:
    """Every test input (row, input) forecast from all others, and quantiles (k, input) of what
    such forecasts leave open."""
    mean = train.mean(0)
    centred = train - mean
    inverse = precision(damped(centred.T @ centred, 1e-3 * len(train)))
    weights = inverse / np.diag(inverse)  # x - E[x | others] = x weights
    left = centred @ weights
    expected = test - (test - mean) @ weights
    return expected, np.quantile(left, LIKELY, axis=0)


class _TargetTest:
    """One target on one fold's test rows."""

    def __init__(self, view: FoldView, predictor: Predictor, observed: Array) -> None:
        """`observed` (row,) are the target's values."""
        self.view, self.predictor, self.observed = view, predictor, observed
        self.forecast = predictor.predict(view.inputs)
        self._effects: dict[int, Array] = {}
        self._energies: dict[int, float] = {}

    @cached_property
    def _leverage(self) -> Array:
        """(row,) of the projection on functions of single inputs."""
        _, design = self._columns_and_design
        pulled = solved(self._gram, design.T)
        return _bounded((design * pulled.T).sum(1))

    @cached_property
    def _gram(self) -> Array:
        _, design = self._columns_and_design
        gram = design.T @ design
        return damped(gram, 1e-6 * len(gram))

    @cached_property
    def _columns_and_design(self) -> tuple[Index, Array]:
        """Lines of all inputs and bends of those that are read; which input each column is of."""
        view, rows = self.view, len(self.view.inputs)
        read = self.predictor.reads
        every = np.arange(view.inputs.shape[1])
        bends = np.flatnonzero(np.isin(view.bends_of, read))
        most = rows / thresholds().tests.rows_per_projected
        if 1 + len(every) + len(bends) > most:
            every = np.unique(read)
        if 1 + len(every) + len(bends) > most:
            bends = bends[:0]
        parts = [np.ones((rows, 1)), view.inputs[:, every], view.bends[:, bends]]
        columns = np.concatenate([[-1], every, view.bends_of[bends]])
        return columns, np.concatenate(parts, axis=1)

    def effect(self, group: int) -> Array:
        """h_c (row,): what the forecaster makes of a candidate beyond the other inputs."""
        if group not in self._effects:
            self._effects[group] = self.predictor.effect(self.view, group)
        return self._effects[group]

    def energy(self, group: int) -> float:
        """Mean of h_c^2; 0 for a candidate that makes no difference."""
        if group not in self._energies:
            energy = float((self.effect(group) ** 2).mean())
            self._energies[group] = energy if energy > SMALLEST_ENERGY else 0.0
        return self._energies[group]

    def products(self, group: int, rich: bool) -> tuple[Array, Array]:
        """L = (h_c - its projection)(r - its projection), and the leverage of each row."""
        effect = self.effect(group)
        values = np.stack([effect, self.observed - self.forecast + effect], axis=1)
        left = values - self._projection(values, group)
        if not rich:
            return left[:, 0] * left[:, 1], self._leverage
        more = self._joint_functions(group)
        more = more - self._projection(more, group)
        more = more / np.maximum(np.linalg.norm(more, axis=0), 1e-12)
        basis = orthonormal_basis(more, 1e-4)
        left = left - basis @ (basis.T @ left)
        return left[:, 0] * left[:, 1], _bounded(self._leverage + (basis**2).sum(1))

    def _projection(self, values: Array, group: int) -> Array:
        """Values (row, ...) as far as lines and splines of the other inputs explain them."""
        columns, design = self._columns_and_design
        kept = np.flatnonzero(~np.isin(columns, self.view.candidates.groups[group]))
        design = design[:, kept]
        return design @ solved(self._gram[np.ix_(kept, kept)], design.T @ values)

    def _joint_functions(self, group: int) -> Array:
        """Joint functions (row, function) of the other inputs: f - h_c, terms, products."""
        own = set(self.view.candidates.groups[group].tolist())
        parts = [(self.forecast - self.effect(group))[:, None]]
        columns, values = self.predictor.terms(self.view.inputs)
        parts.append(values[:, [i for i, c in enumerate(columns) if not own & set(c)]])
        parts.append(self._products_of_others(own))
        functions = np.concatenate(parts, axis=1)
        return functions[:, : max(len(functions) // thresholds().tests.rows_per_projected, 1)]

    def _products_of_others(self, own: set[int]) -> Array:
        """Of pairs of the other inputs that matter most to the forecast."""
        groups = self.view.candidates.groups
        single = [g for g, c in enumerate(groups) if len(c) == 1 and not own & set(c.tolist())]
        ranked = sorted((g for g in single if self.energy(g) > 0), key=lambda g: -self.energy(g))
        columns = [int(groups[g][0]) for g in ranked[:MOST_MULTIPLIED]]
        values = np.clip(self.view.inputs[:, columns], -3, 3)
        left, right = np.triu_indices(len(columns), 1)
        return np.asarray(values[:, left] * values[:, right])


def _bounded(leverage: Array) -> Array:
    """The leverage of rows, as far as it is trusted."""
    return np.minimum(leverage, thresholds().tests.largest_leverage)

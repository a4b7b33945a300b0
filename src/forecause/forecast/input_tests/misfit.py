"""The alarm: edges that may only be there because the learner misses something.

The error rate is not controlled where the learner cannot represent what drives a target while
another input carries a noisy copy of it: the copy then looks like a cause. The alarm searches for
functions of two to four inputs that a learner misses, and marks an edge as doubtful

- if its source carries a copy of what the learner of its own target misses, or
- if the learner of its source (as a target) misses a function which the target's errors follow
  too, one lag later: source and target then share a cause that neither learner can represent.

The search looks at the target less its own past, not at the learner's residual: inputs that are
correlated with the missing cause already absorb it there. It judges the learner before the extra
scans, since what these repaired in part hides the rest, and stays silent where the learner after
them leaves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from forecause.common.arrays import Array, Index, Mask
from forecause.config.thresholds import thresholds
from forecause.forecast.input_tests.projected_covariance import Fold
from forecause.regression import scan
from forecause.regression.atoms import Kind
from forecause.regression.least_squares import orthonormal_columns, residual_of, ridge
from forecause.regression.scan import InputGroups

# Time and memory:
PAIRS_TRIED = 2  # sets of two inputs that are looked at closely, for every target
MOST_COLUMNS_OF_FOURS = 30
MOST_ROWS_OF_FOURS = 1500

# Shape of the model:
NEIGHBOURS = 8
RIDGE = 0.01  # per row
RATES = (1.0, 2.0, 3.0, 4.0)

PAIR_FUNCTIONS: tuple[tuple[Kind, float], ...] = (
    ("line", 1.0),
    ("tanh", 2.5),
    *((kind, rate) for rate in RATES for kind in ("sin", "cos")),
)
TRIPLE_FUNCTIONS: tuple[tuple[tuple[Kind, float], ...], ...] = (
    (("sin", 1.0), ("cos", 1.0)),
    (("sin", 2.0), ("cos", 2.0)),
)


@dataclass(frozen=True, eq=False)
class Missed:
    """The function of some inputs that the learner of one target misses most."""

    members: tuple[int, ...]  # input columns
    correlation: float  # with the errors before the extra scans
    z: float
    after_extra_scans: float  # the same after them, the largest of all sets
    judge: Index  # rows on which it was judged
    forecast: Array  # (judged row,) what the function says, less cubics of its members

    @property
    def is_missed(self) -> bool:
        """Whether it is beyond chance and was not repaired."""
        bounds = thresholds().misfit
        beyond = self.correlation > bounds.least_correlation and self.z > bounds.least_z
        return beyond and self.after_extra_scans > bounds.repaired


@dataclass(frozen=True, eq=False)
class Layout:
    """Where every variable's past stands among the inputs."""

    variable: Index  # (input,) the variable of each column; -1: of none
    lag: Index  # (input,)

    def own(self, target: int) -> Index:
        """The columns of a variable's own past."""
        return np.flatnonzero(self.variable == target)

    def shifted(self, members: tuple[int, ...], lag: int) -> tuple[int, ...] | None:
        """The same inputs, `lag` steps earlier; None if they lie outside the window."""
        columns = []
        for column in members:
            same = self.variable == self.variable[column]
            places = np.flatnonzero(same & (self.lag == self.lag[column] + lag))
            if not len(places):
                return None
            columns.append(int(places[0]))
        return tuple(columns)


class Misfit:
    """What the learners of all targets miss; `doubtful` turns it into doubts about edges."""

    def __init__(
        self,
        inputs: Array,
        targets: Array,
        earlier_errors: Array,
        later_errors: Array,
        folds: Sequence[Fold],
        candidates: InputGroups,
        layout: Layout,
    ) -> None:
        """Search on one half of time, judge on the other, both ways.

        earlier_errors and later_errors (row, target) are the learners' on rows that they did not
        learn from; inputs (row, input) and targets (row, target) on a standard scale.
        """
        self.inputs, self.targets, self.layout = inputs, targets, layout
        self.errors = earlier_errors
        self.halves = [fold.test for fold in folds]
        self.own_terms = [_cubics(inputs[:, layout.own(t)]) for t in range(targets.shape[1])]
        self.missed = self._search(later_errors, candidates)

    def _search(self, later_errors: Array, candidates: InputGroups) -> list[Missed | None]:
        best: list[Missed | None] = [None] * self.targets.shape[1]
        after = np.zeros(len(best))
        for search, judge in (self.halves, self.halves[::-1]):
            left = self._less_own_past(search)
            sets = _suspicious_sets(self.inputs[search], left, candidates.scanned)
            for target, own_sets in enumerate(sets):
                for members in own_sets:
                    judged = self._judge(members, left[:, target], target, search, judge)
                    r, z, forecast = judged.strongest(self.errors[:, target])
                    after[target] = max(after[target], judged.strongest(later_errors[:, target])[0])
                    before = best[target]
                    if before is None or _strength(r, z) > _strength(before.correlation, before.z):
                        best[target] = Missed(members, r, z, 0.0, judge, forecast)
        return [
            m and replace(m, after_extra_scans=float(a)) for m, a in zip(best, after, strict=True)
        ]

    def _less_own_past(self, rows: Index) -> Array:
        """(row, target) targets less cubics of their own lags."""
        parts = [
            residual_of(y, o[rows])
            for o, y in zip(self.own_terms, self.targets[rows].T, strict=True)
        ]
        return np.stack(parts, axis=1)

    def _judge(
        self, members: tuple[int, ...], left: Array, target: int, search: Index, judge: Index
    ) -> _Judge:
        return _Judge(self.inputs, left, self.own_terms[target], members, search, judge)

    def doubtful(self, edges: Mask) -> Mask:
        """Which of the edges (target, input) that were found may be due to a misfit."""
        doubted = np.zeros_like(edges)
        for target, column in zip(*np.nonzero(edges), strict=True):
            source = int(self.layout.variable[column])
            if source != target:
                copied = self._is_copy(self.missed[target], int(column))
                doubted[target, column] = copied or self._is_shared(source, target, int(column))
        return doubted

    def _is_copy(self, missed: Missed | None, column: int) -> bool:
        """Whether an input carries what a target's learner misses."""
        if missed is None or not missed.is_missed or column in missed.members:
            return False
        values = self.inputs[missed.judge][:, missed.members]
        rest = residual_of(self.inputs[missed.judge, column], _cubics(values))
        r, z = _correlation_and_z(missed.forecast, rest)
        return _strength(abs(r), abs(z)) > 1

    def _is_shared(self, source: int, target: int, column: int) -> bool:
        """Whether a target's errors follow what the learner of its source misses."""
        missed = self.missed[source] if source >= 0 else None
        if missed is None or not missed.is_missed:
            return False
        members = self.layout.shifted(missed.members, int(self.layout.lag[column]))
        if members is None:
            return False  # a shared cause that lies outside the window is none of the target's
        for search, judge in (self.halves, self.halves[::-1]):
            left = self._less_own_past(search)[:, target]
            judged = self._judge(members, left, target, search, judge)
            if judged.strongest(self.errors[:, target])[1] > thresholds().misfit.least_shared_z:
                return True
        return False


def _strength(correlation: float, z: float) -> float:
    """Above 1 where both are beyond their bounds."""
    bounds = thresholds().misfit
    return min(correlation / bounds.least_correlation, z / bounds.least_z)


def _suspicious_sets(inputs: Array, left: Array, columns: Index) -> list[list[tuple[int, ...]]]:
    """For every target the two best pairs, the best triple and the best four of inputs."""
    if len(columns) < 2:
        return [[] for _ in range(left.shape[1])]
    pairs = scan.PairScan(inputs, columns, PAIR_FUNCTIONS)(left)
    triples = [scan.TripleScan(inputs, columns, f)(left) for f in TRIPLE_FUNCTIONS]
    fours = _best_fours(inputs, left, columns)
    sets = []
    for target in range(left.shape[1]):
        best = list(dict.fromkeys(tuple(sorted(p.atom.columns)) for p in pairs[target]))
        best = best[:PAIRS_TRIED]
        proposals = [p for t in triples for p in t[target]]
        if proposals:
            best.append(max(proposals, key=lambda p: p.z).atom.columns)
        sets.append([*best, *fours[target]])
    return sets


def _best_fours(inputs: Array, left: Array, columns: Index) -> list[list[tuple[int, ...]]]:
    """The four inputs whose signs' product goes best with each target."""
    columns = columns[:MOST_COLUMNS_OF_FOURS]
    if len(columns) < 4:
        return [[] for _ in range(left.shape[1])]
    rows = np.unique(np.linspace(0, len(inputs) - 1, MOST_ROWS_OF_FOURS).astype(np.int64))
    part = inputs[np.ix_(rows, columns)]
    signs = np.where(part > np.median(part, axis=0), 1.0, -1.0).astype(np.float32)
    pairs = np.array(list(combinations(range(len(columns)), 2)))
    products = signs[:, pairs[:, 0]] * signs[:, pairs[:, 1]]
    usable = pairs[:, 1][:, None] < pairs[:, 0]  # each four once, in order
    fours = []
    for target in range(left.shape[1]):
        e = (left[rows, target] - left[rows, target].mean()).astype(np.float32)
        z = np.abs(products.T @ (products * e[:, None]))
        first, second = divmod(int(np.where(usable, z, 0).argmax()), len(pairs))
        members = columns[[*pairs[first], *pairs[second]]]
        fours.append([tuple(int(c) for c in members)])
    return fours


class _Judge:
    """Judges on some rows what a set of inputs tells of a learner's errors.

    Two forecasts of the errors are tried: ridge on products of functions of the members, fitted to
    the target less its own past, and nearest neighbours of the learner's errors.
    """

    def __init__(
        self,
        inputs: Array,
        left: Array,
        own: Array,
        members: tuple[int, ...],
        search: Index,
        judge: Index,
    ) -> None:
        self.search, self.judge = search, judge
        nuisance = np.concatenate([_cubics(inputs[judge][:, members]), own[judge]], axis=1)
        self.nuisance = orthonormal_columns(nuisance)
        self.ridge = self._rest(_ridge_forecast(inputs, left, members, search, judge))
        self.near = _nearest(inputs[search][:, members], inputs[judge][:, members])

    def strongest(self, errors: Array) -> tuple[float, float, Array]:
        """Correlation and z-value with the learner's errors (row,), and the forecast of them."""
        r = self._rest(errors[self.judge])
        neighbours = self._rest(errors[self.search][self.near].mean(1))
        forecasts = [(*_correlation_and_z(g, r), g) for g in (self.ridge, neighbours)]
        return max(forecasts, key=lambda one: _strength(one[0], one[1]))

    def _rest(self, values: Array) -> Array:
        """Values (row,) less what cubics of the members and of the own past explain."""
        return np.asarray(values - self.nuisance @ (self.nuisance.T @ values))


def _nearest(known: Array, asked: Array) -> Index:
    """The rows of `known` (row, member) that are nearest to each of `asked`, (asked, neighbour)."""
    from scipy.spatial import KDTree  # seldom needed

    _, near = KDTree(known).query(asked, k=NEIGHBOURS)
    return np.asarray(near)


def _correlation_and_z(g: Array, r: Array) -> tuple[float, float]:
    products = g * r
    total = float(products.sum())
    size = float(np.sqrt((g**2).sum() * (r**2).sum()))
    return total / max(size, 1e-12), total / max(float(np.sqrt((products**2).sum())), 1e-12)


def _ridge_forecast(
    inputs: Array, left: Array, members: tuple[int, ...], search: Index, judge: Index
) -> Array:
    terms = _products(inputs[:, members])
    train = terms[search] - terms[search].mean(0)
    weights = ridge(train, left - left.mean(), RIDGE * len(train))
    return np.asarray((terms[judge] - terms[search].mean(0)) @ weights)


def _products(values: Array) -> Array:
    """Products (row, product) of one function of every member; same rates for three or more."""
    if values.shape[1] == 2:
        left, right = (_functions(values[:, i], RATES) for i in range(2))
        return (left[:, :, None] * right[:, None, :]).reshape(len(values), -1)
    signs = np.prod(np.where(values > np.median(values, axis=0), 1.0, -1.0), axis=1)
    parts = [np.tanh(2.5 * values).prod(1)[:, None], signs[:, None]]
    for rate in RATES[:3]:
        waves = np.stack([np.sin(rate * values), np.cos(rate * values)], axis=2)
        product = waves[:, 0]
        for member in range(1, values.shape[1]):
            product = (product[:, :, None] * waves[:, member, None, :]).reshape(len(values), -1)
        parts.append(product)
    return np.concatenate(parts, axis=1)


def _functions(values: Array, rates: Sequence[float]) -> Array:
    """x, tanh and waves (row, function) of one input (row,)."""
    waves = [f(rate * values) for rate in rates for f in (np.sin, np.cos)]
    return np.stack([np.clip(values, -3, 3), np.tanh(2.5 * values), *waves], axis=1)


def _cubics(values: Array) -> Array:
    """Intercept and the first three powers (row, term) of every column."""
    clipped = np.clip(values, -4, 4)
    powers = [clipped, clipped**2, clipped**3]
    return np.concatenate([np.ones((len(values), 1)), *powers], axis=1)

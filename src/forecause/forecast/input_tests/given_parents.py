"""Tests of every input given the plausible parents of its target: for few rows and many inputs.

A test that is given all other inputs loses power to each of them. Here every input is tested given
the few inputs that its target plausibly depends on, found by forward selection, and again given the
lines of all others. The second p-value is divided by an allowance for the power that it lost: none
with many windows per input, so that the test is then the one given all others, and none for a
target whose plausible parents do not suffice. The larger p-value counts. What is asked of an input
is a line first and its whole spline second, and errors that allow for unequal variance are used
where the residuals show it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import fdtrc

from forecause.common.arrays import Array, Index, Mask
from forecause.config.thresholds import thresholds
from forecause.data.variables import Inputs
from forecause.data.windows import MOST_SAMPLED_WINDOWS, Windows, inputs_of, place_knots, sample_of
from forecause.forecast.input_tests.designs import KNOTS, Designs
from forecause.regression.least_squares import (
    lower_factor,
    lower_solved,
    positive_inverse,
    solve_many,
    wald,
)
from forecause.regression.moments import BATCH, Moments, with_intercept
from forecause.regression.p_values import cauchy_combination
from forecause.regression.robust import batches_of_sample, hc3_terms, wald_p_values
from forecause.regression.sample import Design, Sample

# Time and memory:
MOST_PARENTS = 20  # of a target

# Numerics:
NEARLY_DEPENDENT = 1e-8  # share of a term that must not be explained by the terms given


@dataclass(frozen=True)
class Terms:
    """The features of each input, numbered as in the Gram matrix (the intercept is 0)."""

    lines: list[Index]  # (input,) the line, or all levels of a label
    curves: list[Index]  # (input,) the line and the bends

    @classmethod
    def of(cls, design: Design, inputs: Inputs, moments: Moments) -> Terms:
        """The terms that vary, of a design of lines or of splines."""
        varies = moments.gram.diagonal() > 0
        curves = [group[varies[group + 1]] + 1 for group in design.groups]
        labels = [bool(inputs.is_label(inputs.places(i[None])[0]).any()) for i in design.inputs]
        lines = [c if label else c[:1] for c, label in zip(curves, labels, strict=True)]
        return cls(lines, curves)


@dataclass
class Model:
    """The plausible parents of a target, each a line or a spline."""

    terms: Terms
    bent: dict[int, bool] = field(default_factory=dict)  # input -> whether it is a spline

    def features(self, without: int | None = None) -> Index:
        """The features of the intercept and of all parents, but those of one input."""
        kept = [self.of(i) for i in self.bent if i != without]
        return np.concatenate([np.zeros(1, dtype=np.int64), *kept])

    def of(self, parent: int) -> Index:
        """The features that a parent has in the model."""
        return (self.terms.curves if self.bent[parent] else self.terms.lines)[parent]


class TargetTests:
    """Classical F-tests of the inputs of one target, from moments alone."""

    def __init__(self, moments: Moments, target: int, terms: Terms, line_share: float) -> None:
        """`target` is its place among the targets of the moments; see line_share."""
        self.terms, self.windows, self.line_share = terms, moments.count, line_share
        self.gram = moments.penalised()
        self.cross = moments.cross[:, target]
        self.square = float(moments.square[target])

    def group_p_values(self, given: Index, groups: Sequence[Index]) -> Array:
        """P-value that each group of features adds nothing to the features given, (group,)."""
        p_values = np.ones(len(groups))
        factor = lower_factor(self.gram[np.ix_(given, given)])
        outcome = lower_solved(factor, self.cross[given, None])[:, 0]
        left = self.square - float(outcome @ outcome)
        sizes = np.array([len(group) for group in groups])
        for size in np.unique(sizes[sizes > 0]):
            places = np.flatnonzero(sizes == size)
            freedom = self.windows - len(given) - int(size)
            if freedom < 1:
                continue
            members = np.stack([groups[int(g)] for g in places])  # (group, feature)
            own = lower_solved(factor, self.gram[np.ix_(given, members.ravel())])
            explained = self._explained(members, own, outcome).clip(0, left)
            noise = np.maximum(left - explained, np.finfo(float).tiny) / freedom
            p_values[places] = fdtrc(size, freedom, explained / size / noise)
        return p_values

    def p_values(self, given: Index, inputs: Sequence[int]) -> Array:
        """P-values of inputs given some features: of the line and of the spline, combined."""
        lines = self.group_p_values(given, [self.terms.lines[i] for i in inputs])
        if all(len(self.terms.curves[i]) == len(self.terms.lines[i]) for i in inputs):
            return lines
        curves = self.group_p_values(given, [self.terms.curves[i] for i in inputs])
        return self.combined(np.stack([lines, curves]))

    def combined(self, line_and_curve: Array) -> Array:
        """One p-value (input,) from those of the line and of the spline, (2, input)."""
        return cauchy_combination(line_and_curve, np.array([self.line_share, 1 - self.line_share]))

    def given_parents(self, model: Model, inputs: Iterable[int]) -> Array:
        """P-values of inputs given the parents, a parent's given the other ones."""
        every = list(inputs)
        outside = [i for i in every if i not in model.bent]
        given = self.p_values(model.features(), outside) if outside else np.zeros(0)
        known = dict(zip(outside, given, strict=True))
        for parent in (i for i in every if i in model.bent):
            known[parent] = self.p_values(model.features(without=parent), [parent])[0]
        return np.array([known[i] for i in every])

    def select_parents(self, allowed: Index, always: Sequence[int] = ()) -> Model:
        """Forward selection with a look back after every step; `always` stay in the model."""
        model = Model(self.terms, dict.fromkeys(always, False))
        while len(model.bent) < MOST_PARENTS:
            outside = [int(i) for i in allowed if i not in model.bent]
            if not outside:
                break
            p_values = self.p_values(model.features(), outside)
            best = outside[int(np.argmin(p_values))]
            if p_values.min() >= thresholds().tests.entry_level:
                break
            model.bent[best] = False
            self._bend(model)
            self._drop_useless(model, always)
            if best not in model.bent:
                break  # it would enter and leave for ever
        return model

    def _bend(self, model: Model) -> None:
        """Make splines of the parents whose bends matter, lines of the others."""
        for parent in model.bent:
            line, curve = self.terms.lines[parent], self.terms.curves[parent]
            given = np.concatenate([model.features(without=parent), line])
            bends = np.setdiff1d(curve, line)
            p_value = self.group_p_values(given, [bends])[0]
            model.bent[parent] = bool(p_value < thresholds().tests.spline_level)

    def _drop_useless(self, model: Model, always: Sequence[int]) -> None:
        """Remove, worst first, the parents that the others made superfluous."""
        while candidates := [i for i in model.bent if i not in always]:
            p_values = self.given_parents(model, candidates)
            worst = int(np.argmax(p_values))
            if p_values[worst] < thresholds().tests.entry_level:
                return
            del model.bent[candidates[worst]]

    def _explained(self, members: Index, own: Array, outcome: Array) -> Array:
        """Sum of squares that each group (group, feature) adds to what is given, (group,).

        `own` (given, group * feature) and `outcome` (given,) are the parts of the features and of
        the target that the given features explain, as coordinates along them.
        """
        explained = own.T.reshape(*members.shape, -1)  # (group, feature, given)
        gram = self.gram[members[:, :, None], members[:, None, :]]
        left = gram - explained @ explained.transpose(0, 2, 1)
        along = self.cross[members] - explained @ outcome
        nearly_zero = NEARLY_DEPENDENT * gram.diagonal(axis1=1, axis2=2)
        left = left + nearly_zero[:, :, None] * np.eye(members.shape[1])
        return wald(left, along)


class ConditionalTests:
    """Tests of all inputs of all targets, each given the plausible parents of its target."""

    @classmethod
    def of(
        cls, windows: Windows, allowed: Mask, most: int = MOST_SAMPLED_WINDOWS
    ) -> ConditionalTests:
        """On at most so many windows; `allowed` (target column, input)."""
        sample = sample_of(windows.sample(most, np.random.default_rng(0)))
        latest = np.concatenate([rows[:, -sample.columns :] for rows in sample.rows])
        designs = Designs(inputs_of(windows), latest, place_knots(windows, KNOTS))
        return cls(sample, designs, allowed)

    def __init__(
        self,
        sample: Sample,
        designs: Designs,
        allowed: Mask,
        straight: Collection[int] = (),
    ) -> None:
        """`allowed` (target column, input) leaves inputs out of a target's models and tests; of
        `straight` targets nothing but lines is asked."""
        self.sample, self.inputs, self.allowed = sample, designs.inputs, allowed
        self.straight = frozenset(straight)
        self.design = designs.curved(np.arange(allowed.shape[1]))
        targets = range(len(allowed))
        self.moments = Moments.summed(batches_of_sample(sample, self.design, targets))
        self.terms = Terms.of(self.design, designs.inputs, self.moments)

    @cached_property
    def features(self) -> Array:
        """All features (window, 1 + feature), the intercept first."""
        parts = [self.design.features(batch) for batch in self.sample.batches(BATCH)]
        return with_intercept(np.concatenate(parts))

    def tests_of(self, target: int, share: float | None = None) -> TargetTests:
        """The tests of one target column; `share` is the weight of lines beside splines."""
        terms = self.terms
        if target in self.straight:
            terms = Terms(terms.lines, terms.lines)
        lines = thresholds().tests.line_share if share is None else share
        return TargetTests(self.moments, target, terms, lines)

    @cached_property
    def models(self) -> list[Model]:
        """The plausible parents of every target column; its own last value is always one."""
        models = []
        for target, allowed in enumerate(self.allowed):
            own = own_last_value(self.inputs, target)
            always = [own] if allowed[own] else []
            models.append(self.tests_of(target).select_parents(np.flatnonzero(allowed), always))
        return models

    def p_values(self) -> Array:
        """P-values (target column, input); NaN where an input is not allowed."""
        share = line_share(self.models)
        return np.stack([self._p_values(target, share) for target in range(len(self.allowed))])

    def outcome(self, target: int) -> Array:
        """What is to be forecast of a target column, (window,)."""
        batches = self.sample.batches(BATCH)
        return np.concatenate([self.sample.following(rows, [target])[:, 0] for rows in batches])

    def _p_values(self, target: int, share: float) -> Array:
        """P-values of one target column, (input,), in the model of its plausible parents."""
        tests, model = self.tests_of(target, share), self.models[target]
        p_values = np.full(self.allowed.shape[1], np.nan)
        candidates = np.flatnonzero(self.allowed[target])
        p_values[candidates] = tests.given_parents(model, candidates.tolist())
        promising = candidates[p_values[candidates] < thresholds().tests.confirm_level].tolist()
        if not promising:
            return p_values
        robust = [self._robust(tests, target, model, candidate) for candidate in promising]
        p_values[promising] = robust
        if self.has_rows_for_all(target):
            given_all = self._given_all(tests, target, model, promising)
            p_values[promising] = self.confirmed(target, np.array(robust), given_all)
        return p_values

    def has_rows_for_all(self, target: int) -> bool:
        """Whether the lines of all inputs of a target can be fitted at once."""
        lines = int(self.allowed[target].sum())
        return len(self.sample) >= thresholds().tests.windows_per_line * lines

    def confirmed(self, target: int, given_parents: Array, given_all: Array) -> Array:
        """What p-values given the parents are worth beside those given all lines, (candidate,)."""
        is_gone = given_all > thresholds().tests.max_p_given_all_lines
        allowed_for = np.where(is_gone, given_all, given_all / self.allowances[target])
        return np.maximum(given_parents, allowed_for)

    @cached_property
    def allowances(self) -> list[float]:
        """By how much p-values of each target given all lines may exceed those given parents."""
        return [self._allowance(target) for target in range(len(self.allowed))]

    def _allowance(self, target: int) -> float:
        """1 where windows are enough for the test given all lines to decide, and where these lines
        explain what the parents leave: then no few parents are enough.
        """
        bounds, candidates = thresholds().tests, np.flatnonzero(self.allowed[target])
        lost = bounds.allowance_below * len(candidates) / len(self.sample)
        usual = float(np.clip(lost**3, 1.0, bounds.most_allowance))
        tests, model = self.tests_of(target), self.models[target]
        others = [tests.terms.lines[i] for i in candidates.tolist() if i not in model.bent]
        if usual == 1.0 or not others:
            return usual
        left = tests.group_p_values(model.features(), [np.concatenate(others)])[0]
        return 1.0 if left < bounds.parents_suffice_level else usual

    def _given_all(
        self, tests: TargetTests, target: int, model: Model, candidates: list[int]
    ) -> Array:
        """P-values (candidate,) given the parents and the lines of all others: of the line by the
        larger of the classical and the HC3 test, of the spline by the classical one."""
        lines = {i: tests.terms.lines[i] for i in np.flatnonzero(self.allowed[target]).tolist()}
        every = np.unique(np.concatenate([model.features(), *lines.values()]))
        outcome = self.outcome(target)[:, None]
        hc3 = wald_p_values(self.features[:, every], outcome, len(every), 1)[0]
        robust = dict(zip(every.tolist(), hc3.tolist(), strict=True))
        line_and_curve = np.ones((2, len(candidates)))
        for place, candidate in enumerate(candidates):
            others = [own for i, own in lines.items() if i != candidate]
            given = np.unique(np.concatenate([model.features(without=candidate), *others]))
            kinds = [lines[candidate], tests.terms.curves[candidate]]
            line_and_curve[:, place] = tests.group_p_values(given, kinds)
            if not model.bent.get(candidate) and len(lines[candidate]) == 1:
                of_line = line_and_curve[0, place], robust[int(lines[candidate][0])]
                line_and_curve[0, place] = max(of_line)
        return tests.combined(line_and_curve)

    def _robust(self, tests: TargetTests, target: int, model: Model, candidate: int) -> float:
        """The p-value of an input given the parents, with errors that allow for unequal variance
        where the residuals show it."""
        given = model.features(without=candidate)
        kinds = [tests.terms.lines[candidate], tests.terms.curves[candidate]]
        classical = tests.group_p_values(given, kinds)
        outcome = self.outcome(target)
        robust = [robust_p_value(self.features, outcome, given, tested) for tested in kinds]
        return float(tests.combined(np.maximum(classical, robust)[:, None])[0])


def robust_p_value(features: Array, outcome: Array, given: Index, tested: Index) -> float:
    """HC3 Wald test of some features given others; 0 if the variance does not look unequal.

    Unequal variance voids the classical test only if squared errors rise with the leverage of the
    tested features. Their covariance is that evidence, in standard errors.
    """
    rows = features[:, np.concatenate([given, tested])]
    windows, width = rows.shape
    inverse = positive_inverse(rows.T @ rows + np.eye(width) * (windows * 1e-10))
    shares = rows @ inverse
    errors = outcome - shares @ (rows.T @ outcome)
    own = slice(len(given), width)
    weights = shares[:, own]  # what each window adds to the tested coefficients
    pull = (solve_many(inverse[own, own], weights.T).T * weights).sum(1)
    squares = errors**2
    spread = float(((pull - pull.mean()) ** 2).sum() * squares.var(ddof=1))
    evidence = float(((pull - pull.mean()) * squares).sum()) / np.sqrt(max(spread, 1e-300))
    if evidence <= thresholds().tests.unequal_spread:
        return 0.0
    beta = inverse @ (rows.T @ outcome)
    _, corrected = hc3_terms(rows, outcome[:, None], inverse, beta[:, None])
    scaled = weights * corrected
    statistic = float(wald(scaled.T @ scaled, beta[own])) / len(tested)
    return float(fdtrc(len(tested), max(windows - width, 1), statistic))


def line_share(models: Sequence[Model]) -> float:
    """The weight of lines beside splines, from the share of plausible parents that are bent."""
    bent = sum(sum(model.bent.values()) for model in models)
    parents = sum(len(model.bent) for model in models)
    bounds = thresholds().tests
    return 1 - min(bounds.most_spline_share, (bent + 0.5) / (parents + bounds.prior_parents))


def own_last_value(inputs: Inputs, column: int) -> int:
    """The input that is the last value of a target column's own variable."""
    return (inputs.steps - 1) * inputs.variables + int(inputs.coding.of_column[column])

"""Closed forms: lines, splines and products of pairs, which of them a target keeps, and its tests.

Models of growing richness are fitted to every target: straight lines and splines of all inputs,
where these are many the same of the plausible ones alone, and splines with products of pairs.
A target keeps the one that forecasts held-out windows best, and its inputs are tested in that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from forecause.common.arrays import Array, Index
from forecause.common.work_sharing import in_blocks, parallel_map
from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows, early_and_late, inputs_of, place_knots
from forecause.forecast.forecaster import ENOUGH_WINDOWS, MANY_INPUTS
from forecause.forecast.input_tests.designs import KNOTS, Designs
from forecause.forecast.input_tests.given_parents import ConditionalTests
from forecause.forecast.input_tests.protocol import DRAWS, InputTests, TestRequest
from forecause.regression.moments import BATCH, Moments, unexplained
from forecause.regression.p_values import clearly_better
from forecause.regression.residuals import product_t_values
from forecause.regression.robust import Wald, batches_of_sample
from forecause.regression.sample import Design, Sample
from forecause.regression.screen import is_wide, screened_inputs

# Numerics:
RIDGE = 1e-4  # of the fits that are compared on held-out windows

# Time and memory:
MOST_FEATURES = 4000  # of a model
WORK, WORK_PER_TARGET = 1e11, 4e9  # windows times squared features of one fit, at most
WORK_OF_TARGETS = 2e11  # of a fit to every target
WORK_OF_SCREEN = 2e11  # of splines of all inputs, of which each target's own are then a part
MOST_STORED = 100_000_000  # numbers, if spline terms are kept beside the windows: 400 MB
MOST_PLAUSIBLE, MOST_PAIRED = 40, 14  # of them, and of those whose products are tried
TARGETS_AT_ONCE, FEW_TARGETS = 8, 100  # tried together, where there are more than a few


ClosedForm = Literal["linear", "additive", "products"]
EVERY: tuple[ClosedForm, ...] = ("linear", "additive", "products")


def closed_form_tests(request: TestRequest, kinds: Sequence[ClosedForm] = EVERY) -> InputTests:
    """Is there an effect given all other inputs? Every target keeps the best of some kinds.

    An input that is not allowed is left out of its target's models and not tested (NaN). All levels
    of a label are tested together as a source; as a target, the most striking of its levels counts,
    its p-value times their number. A target with filled cells is tested on the windows in which its
    value was observed: what was filled follows the rows before it by construction.
    """
    windows, effort = request.windows, request.effort
    every = ClosedForms(windows, effort, kinds=kinds)
    every.test(request)
    inputs = every.inputs
    level = request.level(inputs.p_values_of_targets(every.p_values))
    stability, kept = every.stability(level), every.kept
    for target in np.flatnonzero(windows.filled_share > thresholds().tests.most_filled).tolist():
        own = ClosedForms(windows.observed(target), effort, [target], kinds)
        own.test(request)
        every.p_values[target] = own.p_values[target]
        stability[target], kept[target] = own.stability(level)[target], own.kept[target]
        every.tested |= own.tested
    products = {
        target: tuple(inputs.places(every.tested[target].inputs)[0].tolist())
        for target, kind in kept.items()
        if kind == "products"
    }
    tests = InputTests.of_columns(inputs, every.p_values, stability, kept)
    return replace(tests, products=products)


class ClosedForms:
    """The best model so far for every target column, and its p-values (target, input)."""

    def __init__(
        self,
        windows: Windows,
        effort: float,
        targets: list[int] | None = None,
        kinds: Sequence[ClosedForm] = EVERY,
    ) -> None:
        """Of these target columns, or of all; `kinds` are those that a target may keep."""
        self.effort, self.kinds = effort, tuple(kinds)
        self.targets = list(range(windows.shape[1])) if targets is None else targets
        self.work_per_target = min(WORK_PER_TARGET, WORK_OF_TARGETS / windows.shape[1])
        self.inputs = inputs_of(windows)
        self.windows = len(windows)
        self.columns = windows.shape[1]
        self.early, self.late = early_and_late(windows, thresholds().tests.held_out)
        latest = np.concatenate(
            [rows[:, -self.columns :] for rows in (self.early + self.late).rows]
        )
        self.designs = Designs(self.inputs, latest, place_knots(windows, KNOTS))
        self.is_wide = is_wide(windows.inputs, self.windows)
        terms = len(latest) * windows.inputs * KNOTS
        if self.has_many and not self.is_wide and terms <= MOST_STORED:
            self.early, self.late = self.designs.store_terms([self.early, self.late])
        self.hinting = (self.early + self.late).at_most(ENOUGH_WINDOWS)
        self.p_values = np.ones((self.columns, self.inputs.steps * self.inputs.variables))
        self.allowed = np.ones(self.p_values.shape, dtype=bool)
        self.smallest = np.ones_like(self.p_values)  # over the models of all inputs
        self.best: dict[int, _Fit] = {}  # of the models of all inputs
        self.tested: dict[int, _Tested] = {}  # by the best of all models
        self.thinned: dict[int, tuple[Sample, Sample]] = {}
        self.held: list[_Held] = []  # moments of models of all inputs

    def test(self, request: TestRequest) -> None:
        """Try all models; the p-values of the best are then known."""
        self.allowed = self.inputs.by_input(request.allowed.values)
        if self.is_wide:
            self.screen()
        else:
            self.try_all_targets("linear")
            if self.has_many:
                self.screen_curves()
            elif "additive" in self.kinds:
                self.try_all_targets("additive")
        self.suspects = self.inputs.by_input(request.suspects.values)
        work = min(self.work_per_target, len(self.early) * MOST_PLAUSIBLE**2)
        size = TARGETS_AT_ONCE if len(self.targets) > FEW_TARGETS else 1
        blocks = in_blocks(self.targets, size)
        for block, tried in zip(
            blocks, parallel_map(_tried_plausible, self, blocks, size * work), strict=True
        ):
            for target, better_models in zip(block, tried, strict=True):
                for tested in better_models:
                    self._keep(target, tested)
        enough = thresholds().tests.enough_per_input * self.p_values.shape[1]
        if not self.has_many and self.windows < enough:
            self.test_given_parents()  # given all others alone a test would lose too much power
        self.p_values[~self.allowed] = np.nan

    def test_given_parents(self) -> None:
        """Take the p-values given plausible parents where no products are in the best model."""
        straight = self.targets if self.kinds == ("linear",) else ()
        sample = self.early + self.late
        p_values = ConditionalTests(sample, self.designs, self.allowed, straight).p_values()
        for target in self.targets:
            if self.kept[target] != "products":
                self.p_values[target] = p_values[target]

    @property
    def kept(self) -> dict[int, ClosedForm]:
        """The kind of model that each target column keeps; without any input, lines."""
        tested = self.tested
        return {t: tested[t].kind if t in tested else self.kinds[0] for t in self.targets}

    @property
    def has_many(self) -> bool:
        """Whether a target's plausible inputs alone are tried, too."""
        return self.inputs.steps * self.inputs.variables > MANY_INPUTS

    def design(self, kind: ClosedForm, inputs: Index) -> Design:
        """The model of a kind that reads some inputs."""
        make = {
            "linear": self.designs.straight,
            "additive": self.designs.curved,
            "products": self.designs.pairs,
        }
        return make[kind](inputs)

    def targets_and_designs(self, kind: ClosedForm) -> Iterator[tuple[list[int], Design]]:
        """The design of all inputs for all targets that may have the same ones."""
        kinds, kind_of = np.unique(self.allowed, axis=0, return_inverse=True)
        for place, allowed in enumerate(kinds):
            inputs = np.flatnonzero(allowed)
            targets = [target for target in self.targets if kind_of[target] == place]
            if not len(inputs) or not targets:
                continue
            design = self.design(kind, inputs)
            if targets[0] not in self.best or self._affords(design):
                yield targets, design

    def try_all_targets(self, kind: ClosedForm) -> None:
        """Fit a model of all inputs to all targets."""
        for targets, design in self.targets_and_designs(kind):
            inputs = design.inputs
            fit = self._fit(kind, design, targets, WORK)
            for place, target in enumerate(targets):
                smallest = np.minimum(self.smallest[target, inputs], fit.tested.p_values[place])
                self.smallest[target, inputs] = smallest
                if target not in self.best or self._prefers(fit, self.best[target], target):
                    self.best[target] = fit
                    self._keep(target, fit.tested)

    def _prefers(self, fit: _Fit, other: _Fit, target: int) -> bool:
        """Whether a model replaces another: it is asked for and the other not, or is better."""
        if other.kind not in self.kinds:
            return True
        return fit.is_better(other, target)

    def screen_curves(self) -> None:
        """Find which inputs are plausible as splines beside those of all others, by F-tests.

        Splines of so many inputs blur each other: no target is tested in such a model.
        """
        for targets, design in self.targets_and_designs("additive"):
            most = int(self.effort * WORK_OF_SCREEN / design.width**2)
            early, late = self._enough(most, design)
            moments = Moments.added(self._moments(design, targets, early, late))
            at = np.ix_(np.array(targets), design.inputs)
            self.smallest[at] = np.minimum(self.smallest[at], moments.group_p_values(design.groups))

    def screen(self) -> None:
        """Of very many inputs only those that a screen finds are tried; see regression.screen.

        All others keep the p-value 1 and count among the candidates that were tested.
        """
        coding, steps = self.inputs.coding, self.inputs.steps
        rows = np.concatenate((self.early + self.late).rows)
        past, targets = rows[:, : -self.columns], rows[:, -self.columns :]
        latest = np.arange(self.columns) + (steps - 1) * self.columns
        step, column = np.divmod(np.arange(steps * self.columns), self.columns)
        input_of = step * self.inputs.variables + coding.of_column[column]
        allowed = self.allowed[:, input_of]
        taken = screened_inputs(past, targets, latest, allowed).mask(len(input_of))
        target, place = np.nonzero(taken)
        self.smallest[target, input_of[place]] = thresholds().tests.plausible_p / 2

    def better_models(self, target: int) -> list[_Fit]:
        """Models of the plausible inputs alone, each better for one target than those before."""
        few = self._plausible(self.smallest[target], MOST_PLAUSIBLE)
        better = [self.best[target]] if target in self.best else []
        before = len(better)
        if len(few) and (self.has_many or not better):
            for kind in ("linear", "additive"):
                if kind in self.kinds:
                    self._try(target, kind, few, better)
        if "products" not in self.kinds:
            return better[before:]
        rank = self.smallest[target].copy()
        believed = self.suspects[target] & self.allowed[target]
        rank[believed] = np.minimum(rank[believed], thresholds().tests.plausible_p / 2)
        paired = self._plausible(rank, MOST_PAIRED)
        if len(paired) > 1 and better and self._hints_at_products(target, paired, better[-1]):
            self._try(target, "products", paired, better)
        return better[before:]

    def stability(self, level: float) -> Array:
        """Share of resamples of each target column's model with p <= level, which the columns of
        a label share."""
        levels = level / np.array([self.inputs.tests(v) for v in self.inputs.coding.of_column])
        resampled = np.zeros_like(self.p_values)
        for one in {id(one): one for one in self.tested.values()}.values():
            shares = one.tests.stability(levels[one.targets], DRAWS, np.random.default_rng(0))
            for place, target in enumerate(one.targets):
                if self.tested[target] is one:
                    resampled[target, one.inputs] = shares[place]
        return resampled

    def _plausible(self, p_values: Array, most: int) -> Index:
        """The inputs with the smallest p-values, in their own order."""
        order = np.argsort(p_values, kind="stable")[:most]
        return np.sort(order[p_values[order] < thresholds().tests.plausible_p])

    def _affords(self, design: Design) -> bool:
        most = min(MOST_FEATURES, len(self.early) / thresholds().tests.windows_per_term)
        return design.width <= most

    def _try(self, target: int, kind: ClosedForm, inputs: Index, better: list[_Fit]) -> None:
        """Append the model to the better ones if it is clearly better than the last of them."""
        design = self.design(kind, inputs)
        if self._affords(design):
            fit = self._fit(kind, design, [target], self.work_per_target)
            if not better or self._prefers(fit, better[-1], target):
                better.append(fit)

    def _fit(self, kind: ClosedForm, design: Design, targets: list[int], work: float) -> _Fit:
        width = design.width
        most = int(self.effort * work / width**2)
        early, late = self._enough(most, design)
        learned, held_out = self._moments(design, targets, early, late)
        judged = batches_of_sample(self.late, design, targets)
        errors = unexplained(judged, learned.solve(RIDGE)) ** 2
        whole = Moments.added([learned, held_out])
        return _Fit(kind, design, targets, early + late, self.hinting, whole, errors)

    def _moments(
        self, design: Design, targets: list[int], early: Sample, late: Sample
    ) -> list[Moments]:
        """Of the early and of the late windows; those of some inputs are part of those of all."""
        for held in self.held:
            if held.holds(design, targets, early):
                return held.part(design, targets)
        moments = [
            Moments.summed(batches_of_sample(part, design, targets)) for part in (early, late)
        ]
        if design.is_plain and len(design.inputs) == self.p_values.shape[1]:
            self.held.append(_Held(design, targets, early, moments))
        return moments

    def _enough(self, most: int, design: Design) -> tuple[Sample, Sample]:
        """Early and late windows, at most so many or half of that, so that fits share them; never
        fewer than a design needs."""
        most = max(most, 2 * thresholds().tests.windows_per_term * design.width)
        most = 1 << (most.bit_length() - 1)
        if most not in self.thinned:
            late = thresholds().tests.held_out
            early = self.early.at_most(round(most * (1 - late)))
            self.thinned[most] = early, self.late.at_most(round(most * late))
        return self.thinned[most]

    def _keep(self, target: int, tested: _Tested) -> None:
        self.tested[target] = tested
        self.p_values[target, tested.inputs] = tested.p_values[tested.targets.index(target)]

    def _hints_at_products(self, target: int, inputs: Index, best: _Fit) -> bool:
        """Whether products of the inputs have to do with what the best model leaves unexplained,
        which is far cheaper to ask than to fit them."""
        design = self.designs.factors(inputs)
        factors = np.concatenate([design.features(rows) for rows in self.hinting.batches(BATCH)])
        t = product_t_values(factors, best.of(target, best.left))
        for own in design.groups:
            t[np.ix_(own, own)] = 0.0  # products are of different inputs
        return bool(np.abs(t).max() > thresholds().tests.product_t)


def _tried_plausible(forms: ClosedForms, targets: Sequence[int]) -> list[list[_Tested]]:
    """The tests of every target in models of its plausible inputs, each better than before."""
    return [[fit.tested for fit in forms.better_models(target)] for target in targets]


@dataclass(frozen=True, eq=False)
class _Tested:
    """The tests of some inputs of some target columns: what is kept of a fit."""

    inputs: Index
    targets: list[int]
    tests: Wald
    kind: ClosedForm

    @cached_property
    def p_values(self) -> Array:
        """(target, input)."""
        return self.tests.p_values


@dataclass(frozen=True, eq=False)
class _Held:
    """Moments of the lines or splines of all inputs and of many targets on one sample."""

    design: Design
    targets: list[int]
    early: Sample
    moments: list[Moments]

    def holds(self, design: Design, targets: list[int], early: Sample) -> bool:
        """Whether those of a design are among them."""
        return (
            design.is_plain
            and early is self.early
            and set(targets) <= set(self.targets)
            and bool(np.isin(design.places, self.design.places).all())
        )

    def part(self, design: Design, targets: list[int]) -> list[Moments]:
        features = np.searchsorted(self.design.places, design.places)
        own = np.searchsorted(self.targets, targets)
        return [m.of_features(features).of_targets(own.tolist()) for m in self.moments]


class _Fit:
    """A design fitted to some target columns of a sample, which has these moments.

    `hinting` are the windows whose residuals hint at products; `errors` are squared, on held-out
    windows, of a fit to the others.
    """

    def __init__(
        self,
        kind: ClosedForm,
        design: Design,
        targets: list[int],
        sample: Sample,
        hinting: Sample,
        moments: Moments,
        errors: Array,
    ) -> None:
        self.kind, self.design, self.targets = kind, design, targets
        self.sample, self.hinting, self.moments = sample, hinting, moments
        self.errors = errors

    def of(self, target: int, values: Array) -> Array:
        """What belongs to one of the targets, of values (window, target)."""
        return values[:, self.targets.index(target)]

    def is_better(self, other: _Fit, target: int) -> bool:
        """Whether it clearly forecasts a target better than another model does."""
        return clearly_better(other.of(target, other.errors), self.of(target, self.errors))

    @cached_property
    def tested(self) -> _Tested:
        tests = Wald.of(self.sample, self.design, self.targets, self.moments)
        return _Tested(self.design.inputs, self.targets, tests, self.kind)

    @cached_property
    def left(self) -> Array:
        """Residuals (window, target) of the fit to everything, on the windows for hints."""
        batches = batches_of_sample(self.hinting, self.design, self.targets)
        return unexplained(batches, self.moments.solve(RIDGE))

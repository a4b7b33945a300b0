"""Which test decides about a target: that of a rich learner, the closed form, or both.

A learner earns its place on rows that it did not learn from: it must forecast them better than
lines and splines do, by more than the standard error over blocks of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from forecause.common.arrays import Array, Index, Mask
from forecause.common.work_sharing import parallel_map
from forecause.config.thresholds import thresholds
from forecause.forecast.dictionary_search import (
    AdditiveModels,
    DictionaryFit,
    DictionarySearch,
)
from forecause.forecast.input_tests.projected_covariance import (
    Evidence,
    Fold,
    Predictor,
    candidate_evidence,
    time_folds,
)
from forecause.forecast.trees import BoostedTrees, grown, held_out_rows
from forecause.regression.p_values import cauchy_combination, gain_over_blocks
from forecause.regression.scan import WAVE_RATES, InputGroups

# Time and memory:
MOST_WAVE_ROWS = 4000  # that waves are looked for in


@dataclass(frozen=True, eq=False)
class FoldFits:
    """What was fitted on one fold's training rows."""

    additive: AdditiveModels
    plain: list[Predictor]  # (target,) before the extra scans; the alarm looks at their errors
    predictors: list[Predictor]  # (target,) with them


@dataclass(frozen=True, eq=False)
class LearnedEvidence:
    """P-values of the learners, and where they may speak."""

    folds: tuple[Fold, ...]
    fits: tuple[FoldFits, ...]
    evidence: Evidence
    waves: Array  # (target, group) p-values of waves that the learner missed
    additive_errors: Array  # (row, target) of rows that were not learned from
    variance: Array  # (target,) of the targets
    gain: Array  # (target,) of the learner over lines and splines, in standard errors
    is_rich: Mask  # (target,) whether it holds more than lines and splines

    def plain_errors(self, inputs: Array, targets: Array) -> Array:
        """(row, target) errors of the models before the extra scans, on rows that they did not
        learn from."""
        forecasts = [
            np.stack([model.predict(inputs[fold.test]) for model in fit.plain], axis=1)
            for fold, fit in zip(self.folds, self.fits, strict=True)
        ]
        return _left_out(targets, self.folds, forecasts)

    @property
    def verdicts(self) -> npt.NDArray[np.str_]:
        """Which p-values decide about each target: "learner", "closed form" or "both"."""
        of_rich = np.where(self.gain > thresholds().tests.clear_gain, "learner", "both")
        return np.where(self.is_rich, of_rich, "closed form")

    def decided_by(self, target: int, closed_form: str) -> str:
        """What a target keeps, given the closed form that it would keep without a learner."""
        verdict = self.verdicts[target]
        parts = [part for fit in self.fits for part in _parts(fit.predictors[target])]
        are_trees = {isinstance(part, BoostedTrees) for part in parts}
        kinds = [
            kind
            for kind, is_tree in (("dictionary", False), ("trees", True))
            if is_tree in are_trees
        ]
        before = [] if verdict == "learner" else [closed_form]
        return closed_form if verdict == "closed form" else " + ".join(before + kinds)

    def p_values(self, closed_form: Array) -> Array:
        """(target, group), given those of the closed-form tests."""
        own, verdicts = self.evidence.p_values, self.verdicts[:, None]
        both = np.where(verdicts == "both", combined_p_values(own, closed_form), closed_form)
        result = np.where(verdicts == "learner", own, both)
        has_wave = (self.waves < 1).any(1, keepdims=True)
        result = np.where(has_wave, combined_p_values(result, self.waves), result)
        return np.where(np.isnan(closed_form), np.nan, result)


def learned_evidence(
    inputs: Array,
    targets: Array,
    candidates: InputGroups,
    own_lags: Sequence[Index],
    rows: Index,
    max_lag: int,
) -> LearnedEvidence:
    """Fit learners on two parts of time and test every candidate on the other part.

    inputs (row, input) and targets (row, target) on a standard scale, rows in order of time;
    own_lags (target) are the columns that hold a target's own past; rows (row,) number the rows
    of the panel, so that nothing is learned from a past that is tested on.
    """
    folds = time_folds(rows, max_lag)
    common = (inputs, targets, candidates, own_lags)
    fits = tuple(parallel_map(_fit_to, common, [fold.train for fold in folds]))
    predictors = [fit.predictors for fit in fits]
    is_rich = np.array([any(map(_is_rich, pair)) for pair in zip(*predictors, strict=True)])
    evidence = candidate_evidence(inputs, targets, folds, predictors, candidates, is_rich)
    simpler = [fit.additive.predict(inputs[f.test]) for f, fit in zip(folds, fits, strict=True)]
    additive_errors = _left_out(targets, folds, simpler)
    waves = wave_p_values(inputs, evidence.errors, candidates)
    gain = gain_over_blocks(additive_errors**2, evidence.errors**2)
    return LearnedEvidence(
        folds, fits, evidence, waves, additive_errors, targets.var(0), gain, is_rich
    )


def _left_out(targets: Array, folds: Sequence[Fold], forecasts: Sequence[Array]) -> Array:
    """Errors (row, target) of forecasts of every fold's test rows."""
    errors = np.zeros_like(targets)
    for fold, forecast in zip(folds, forecasts, strict=True):
        errors[fold.test] = targets[fold.test] - forecast
    return errors


def _fit_to(common: tuple[Array, Array, InputGroups, Sequence[Index]], rows: Index) -> FoldFits:
    """All learners, on some rows of inputs (row, input) and targets (row, target)."""
    inputs, targets, candidates, own_lags = common
    inputs, targets = inputs[rows], targets[rows]
    additive = AdditiveModels(inputs, targets, candidates)
    search = DictionarySearch(additive, own_lags, thresholds().search.level)
    search.look()
    plain = search.models()
    search.scan_target_minus_own_past()
    extended = search.models()
    predictors = _stacked(extended, inputs, targets)
    before = list(predictors)  # the extra scans
    changed = [t for t, new in enumerate(extended) if new is not plain[t]]
    again = _stacked([plain[t] for t in changed], inputs, targets[:, changed])
    for target, predictor in zip(changed, again, strict=True):
        before[target] = predictor
    return FoldFits(additive, before, predictors)


def _stacked(models: Sequence[DictionaryFit], inputs: Array, targets: Array) -> list[Predictor]:
    """Each model with trees, where these help; without any joint function they only blur."""
    late = held_out_rows(len(inputs))
    return [
        stacked_with_trees(m, m.forecast_of(late, inputs, y), inputs, y) if m.atoms else m
        for m, y in zip(models, targets.T, strict=True)
    ]


def _is_rich(predictor: Predictor) -> bool:
    """Whether it holds more than lines and splines."""
    return not isinstance(predictor, DictionaryFit) or bool(predictor.atoms)


def _parts(predictor: Predictor) -> Sequence[Predictor]:
    """What a predictor is made of."""
    return predictor.parts if isinstance(predictor, Stack) else [predictor]


def combined_p_values(*p_values: Array) -> Array:
    """One p-value of several dependent ones; 1 does not outweigh the others."""
    return cauchy_combination(np.minimum(np.stack(p_values), thresholds().tests.largest_p))


class Stack(Predictor):
    """A weighted mean of predictors; the weights are not negative and sum to one."""

    def __init__(self, parts: Sequence[Predictor], weights: Sequence[float]) -> None:
        self.parts, self.weights = parts, weights
        self.reads = np.unique(np.concatenate([part.reads for part in parts]))

    def predict(self, inputs: Array) -> Array:
        parts = zip(self.weights, self.parts, strict=True)
        return np.asarray(sum(weight * part.predict(inputs) for weight, part in parts))

    def part(self, inputs: Array, columns: Index) -> Array:
        parts = zip(self.weights, self.parts, strict=True)
        return np.asarray(sum(w * part.part(inputs, columns) for w, part in parts))

    def terms(self, inputs: Array) -> tuple[list[tuple[int, ...]], Array]:
        each = [part.terms(inputs) for part in self.parts]
        columns = [own for names, _ in each for own in names]
        return columns, np.concatenate([values for _, values in each], axis=1)


def stacked_with_trees(
    first: Predictor, held_out_forecast: Array, inputs: Array, target: Array
) -> Predictor:
    """The stack of a predictor and trees on the same inputs, or the predictor if trees add nothing.

    `held_out_forecast` holds what a version of the predictor that did not see `held_out_rows`
    says of them.
    """
    late = held_out_rows(len(inputs))
    trees = grown(inputs, target, first.reads, late)
    errors = target[late] - held_out_forecast
    gained = trees.predict(inputs[late]) - held_out_forecast
    weight = float(np.clip(errors @ gained / max(float(gained @ gained), 1e-12), 0.0, 1.0))
    least = thresholds().tests.least_weight
    if weight < least:
        return first
    if weight > 1 - least:
        return trees
    return Stack((first, trees), (1 - weight, weight))


def wave_p_values(inputs: Array, errors: Array, candidates: InputGroups) -> Array:
    """P-values (target, group) of no wave in inputs (row, input) that errors (row, target) follow.

    A fast wave of an input, sin(w x + phase), shows in nothing that lines, splines or products see,
    and half of the rows are too few to find its rate by. Here the errors of forecasts for rows that
    were not learned from are tested against every rate at once, on all rows.

    The largest over all rates of s' V^-1 s, with s the sum of (sin, cos) times the error and V
    the sum of their outer products, squared errors as weights, so that the noise may vary; a
    p-value is multiplied by the number of rates. 1 for groups that are not a single number, and
    everywhere if no target shows a clear wave.
    """
    p_values = np.ones((errors.shape[1], len(candidates.groups)))
    groups = [
        g for g, own in enumerate(candidates.groups) if len(own) == 1 and candidates.curved[own[0]]
    ]
    if not groups:
        return p_values
    columns = np.array([candidates.groups[g][0] for g in groups])
    rows = np.unique(np.linspace(0, len(inputs) - 1, MOST_WAVE_ROWS).astype(np.int64))
    largest = _largest_statistics(inputs[np.ix_(rows, columns)], errors[rows])
    corrected = np.clip(chdtrc(2, largest) * len(WAVE_RATES), 1e-300, 1.0)
    if corrected.min() * corrected.size < thresholds().tests.wave_p:
        p_values[:, groups] = corrected
    return p_values


def _largest_statistics(inputs: Array, errors: Array) -> Array:
    """(target, input) over all rates."""
    x = inputs.astype(np.float32)
    e = (errors - errors.mean(0)).astype(np.float32)
    squares = e * e
    largest = np.zeros((e.shape[1], x.shape[1]))
    for rate in WAVE_RATES:
        waves = (wave(np.float32(rate) * x) for wave in (np.sin, np.cos))
        sine, cosine = (wave - wave.mean(0) for wave in waves)
        s, c = e.T @ sine, e.T @ cosine  # (target, input)
        ss, cc, sc = squares.T @ sine**2, squares.T @ cosine**2, squares.T @ (sine * cosine)
        determinant = np.maximum(ss * cc - sc * sc, 1e-6 * ss * cc + 1e-9)
        largest = np.maximum(largest, (s * s * cc - 2 * s * c * sc + c * c * ss) / determinant)
    return largest

"""Where lines, splines and products leave something to find: the tests of dictionary and trees.

Both are fitted on two parts of time, where a scan finds anything at all that they could hold, and
tested on the other part. A target that they forecast clearly better there keeps them, and their
p-values decide. Where they hold something but are not clearly better, it keeps both kinds, and
both tests count.
"""

from __future__ import annotations

import numpy as np

from forecause.common.arrays import Array, Index, Mask
from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows
from forecause.forecast.forecaster import ENOUGH_WINDOWS
from forecause.forecast.input_tests.learned_evidence import learned_evidence
from forecause.forecast.input_tests.misfit import Layout, Misfit
from forecause.forecast.input_tests.projected_covariance import Fold
from forecause.forecast.input_tests.protocol import (
    DRAWS,
    InputTests,
    TestedWindows,
    TestRequest,
    by_group,
    link_q_values,
)
from forecause.regression.least_squares import coefficients_of

# Time and memory:
MOST_DOUBTED = 4_000  # windows in which is looked for what a learner misses
MOST_KINDS = 4  # sets of targets with the same allowed inputs; a learner is fitted for each


def with_learners(request: TestRequest, closed: InputTests) -> InputTests:
    """Tests of closed forms, replaced or joined by those of learners where these earn it.

    `relevance` then holds what the learner makes of each input of such a target, `least_share` the
    share of its target's relevance that an edge must have, and `doubtful` marks edges that may be
    there only because the learner misses something.
    """
    data = TestedWindows.of(request.windows.thin(int(ENOUGH_WINDOWS * request.effort)))
    parts = _parts(request, data)
    if not parts:
        return closed
    p_values, stability = by_group(closed.p_value), by_group(closed.stability)
    decided_by = list(closed.decided_by)
    for part in parts:
        p_values[part.at] = part.learned.p_values(p_values[part.at])
        for target, variable in enumerate(part.variables.tolist()):
            decided_by[variable] = part.learned.decided_by(target, decided_by[variable])
    passes = by_group(link_q_values(data.by_lag(p_values))) <= request.fdr_if_weak
    level = request.fdr_if_weak * int(passes.sum()) / max(int(np.isfinite(p_values).sum()), 1)
    relevance = np.full(p_values.shape, np.nan)  # where gradients tell
    least_share = np.full(p_values.shape, thresholds().edges.least_share)
    doubtful = np.zeros(p_values.shape, dtype=bool)
    for part in parts:
        verdicts = np.array(part.learned.verdicts)[:, None]
        own = part.learned.evidence.stability(level, DRAWS, np.random.default_rng(0))
        before = stability[part.at]
        joined = np.where(verdicts == "both", np.maximum(own, before), before)
        stability[part.at] = np.where(verdicts == "learner", own, joined)
        relevance[part.at] = np.where(verdicts == "learner", part.energies(), np.nan)
        least_share[part.at] = part.least_shares()
        doubtful[part.at] = part.doubtful(passes[part.at])
    return InputTests(
        data.by_lag(p_values),
        data.by_lag(stability),
        tuple(decided_by),
        data.by_lag(relevance),
        data.by_lag(least_share),
        data.by_lag(doubtful),
        closed.products,
    )


def _parts(request: TestRequest, data: TestedWindows) -> list[_Part]:
    """Learners of the targets that they suit, those with the same allowed inputs together; only
    where something was found that closed forms do not hold."""
    windows, coding = request.windows, request.windows.panel.coding
    open_inputs = by_group(request.allowed.values)
    numbers = np.array([len(coding.columns(v)) == 1 for v in range(len(open_inputs))])
    filled = windows.filled_share[coding.first] > thresholds().tests.most_filled
    usable = np.flatnonzero(numbers & ~filled & open_inputs.any(1))
    learned_of = usable[[not _is_near_unit_root(data, windows, v) for v in usable.tolist()]]
    kinds = np.unique(open_inputs[learned_of], axis=0)
    parts = []
    for kind in kinds if len(kinds) <= MOST_KINDS else kinds[:0]:
        own = learned_of[(open_inputs[learned_of] == kind).all(1)]
        groups = np.flatnonzero(kind)
        targets = data.targets[:, coding.first[own]]
        parts.append(_Part(data.of_groups(groups), targets, own, groups))
    return [part for part in parts if part.found_nonlinear_terms]


def _is_near_unit_root(data: TestedWindows, windows: Windows, variable: int) -> bool:
    """Whether the sum of a number's own autoregressive coefficients is near 1.

    What a learner's penalty leaves of such a level drifts with time, and so do other walks.
    """
    past = data.inputs[:, data.variable == variable]
    design = np.column_stack([past, np.ones(len(past))])
    target = data.targets[:, windows.panel.coding.first[variable]]
    total = float(coefficients_of(design, target)[:-1].sum())
    return total > thresholds().diagnosis.near_unit_root


class _Part:
    """The learner of targets that may have the same inputs."""

    def __init__(
        self, data: TestedWindows, targets: Array, variables: Index, groups: Index
    ) -> None:
        """Targets (row, target) are these variables; groups (own,) number the inputs among all."""
        self.data, self.targets, self.variables = data, targets, variables
        self.at = np.ix_(variables, groups)  # what is told of them, among (target, group) of all
        size = int(max(data.variable.max(), variables.max())) + 1
        place = -1 - np.arange(size)  # of what is no target: any number below zero
        place[variables] = np.arange(len(variables))
        self.layout = Layout(place[data.variable], data.lag)
        own_lags = [self.layout.own(t) for t in range(len(variables))]
        self.learned = learned_evidence(
            data.inputs, targets, data.groups, own_lags, data.rows, data.past_shape[0]
        )

    @property
    def found_nonlinear_terms(self) -> bool:
        """Whether anything was found that closed forms do not hold."""
        return bool(self.learned.is_rich.any() or (self.learned.waves < 1).any())

    def energies(self) -> Array:
        """Mean squared effect (target, group), of a wave that the learner misses from its test.

        Those of a target add up to the share of it that is forecast: as the squared slopes of lines
        do, if inputs are on a standard scale, and unlike those of a fast wave.
        """
        waves, errors = self.learned.waves, self.learned.evidence.errors
        explained = -2 * np.log(np.maximum(waves, 1e-300)) / len(errors)
        own = self.learned.evidence.relevance
        is_wave = waves < thresholds().tests.wave_p
        energies = np.where(is_wave, own + explained * errors.var(0)[:, None], own)
        total = np.maximum(energies.sum(1), 1e-300)
        return np.asarray(
            energies * (np.maximum(self.known, thresholds().tests.least_known) / total)[:, None]
        )

    @property
    def known(self) -> Array:
        """The share (target,) of each target's variance that is forecast."""
        errors = self.learned.evidence.errors
        return np.asarray(1 - (errors**2).mean(0) / self.learned.variance)

    def least_shares(self) -> Array:
        """Share of its target's relevance (target, group) that an edge must have."""
        learned = self.learned
        relevance = learned.evidence.relevance
        share = relevance / np.maximum(relevance.sum(1, keepdims=True), 1e-12)
        bounds = thresholds().edges
        is_nearly_known = self.known > bounds.nearly_known
        least = np.where(is_nearly_known, bounds.least_share_nearly_known, bounds.least_share)
        is_judged = np.array(learned.verdicts) == "learner"
        # of those that both decide
        usual = np.where(share > bounds.least_share, 0.0, bounds.least_share)
        shares = np.where(is_judged[:, None], least[:, None], usual)
        return np.asarray(np.where(learned.waves < thresholds().tests.wave_p, 0.0, shares))

    def doubtful(self, edges: Mask) -> Mask:
        """Which edges (target, group) may be due to what the learner misses.

        Not asked where no target is decided by a learner that is much better than lines and
        splines: hardly anything is joint then, and hardly anything joint is missed.
        """
        data, learned = self.data, self.learned
        errors, simpler = learned.evidence.errors, learned.additive_errors
        share = 1 - thresholds().tests.least_learner_gain
        much_better = (errors**2).mean(0) < share * (simpler**2).mean(0)
        if not (much_better & (np.array(learned.verdicts) == "learner")).any():
            return np.zeros_like(edges)
        plain = learned.plain_errors(data.inputs, self.targets)
        kept = np.unique(np.linspace(0, len(errors) - 1, MOST_DOUBTED).astype(np.int64))
        misfit = Misfit(
            data.inputs[kept],
            self.targets[kept],
            plain[kept],
            errors[kept],
            [_thinned(fold, kept) for fold in learned.folds],
            data.groups,
            self.layout,
        )
        first = np.array([group[0] for group in data.groups.groups])  # labels: their first level
        by_column = np.zeros((len(edges), data.inputs.shape[1]), dtype=bool)
        by_column[:, first] = edges
        return np.asarray(misfit.doubtful(by_column)[:, first])


def _thinned(fold: Fold, kept: Index) -> Fold:
    """The fold of some rows alone, renumbered."""
    learned, tested = (np.flatnonzero(np.isin(kept, part)) for part in (fold.train, fold.test))
    return Fold(learned.astype(np.int64), tested.astype(np.int64))

"""The tests of the default: closed forms, and a learner where these leave something to find.

Lines, splines and products of pairs are tested in closed form (see nested_models). Dictionaries and
trees are then fitted on two parts of time, where a scan finds anything at all that they could hold.
A target whose future they forecast clearly better is decided by their p-values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from forecause.data.windows import Windows
from forecause.edges.learned_evidence import (
    LEAST_SHARE,
    LEAST_SHARE_IF_NEARLY_KNOWN,
    NEARLY_KNOWN,
    LearnedEvidence,
    learned_evidence,
)
from forecause.edges.misfit import Layout, Misfit
from forecause.edges.nested_models import DRAWS, MOST_FILLED
from forecause.edges.projected_covariance import Fold
from forecause.edges.select import q_values
from forecause.edges.tested_windows import TestedWindows, by_group
from forecause.edges.wave_tests import CLEAR
from forecause.forecast.selection import affords_learners

MOST_WINDOWS = 20_000  # that learners are fitted to and tested on
MOST_DOUBTED = 4_000  # windows in which is looked for what a learner misses
LEAST_GAIN = 0.01  # of a learner over lines and splines, as a share of the loss, to look for it
MOST_KINDS = 4  # sets of targets with the same allowed inputs; a learner is fitted for each
WANDERING = 0.95  # sum of own autoregressive coefficients, above which a target hardly forgets
LEAST_KNOWN = 0.01  # share of a target's variance that its relevance adds up to, at least
FAINT = 1e-6  # weight of the forecaster's relevance, to rank inputs that the learner ignores

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


def with_learner(
    windows: Windows,
    closed: xr.Dataset,
    scores: xr.DataArray,
    allowed: xr.DataArray,
    fdr: float,
    seed: int = 0,
    effort: float = 1.0,
) -> xr.Dataset:
    """Closed-form tests (p_value, stability) improved by a learner where it earns that.

    Where the learner speaks, `relevance` holds what it makes of each input, `least_share` the
    share of its target's relevance that an edge must have, and `doubtful` marks edges that may be
    there only because the learner misses something. `scores` is the relevance read so far.
    """
    most = int(MOST_WINDOWS * effort)
    if not affords_learners(windows.inputs, min(len(windows), most)):
        return closed
    data = TestedWindows.of(windows.spread(most))
    found = _Combined.of(closed, scores)
    open_inputs = np.asarray(by_group(allowed.values), dtype=bool)
    numbers = np.array([len(windows.panel.coding.columns(v)) == 1 for v in range(len(open_inputs))])
    filled = windows.filled_share[windows.panel.coding.first] > MOST_FILLED
    usable = numbers & ~filled & open_inputs.any(1)
    learned_of = np.flatnonzero(usable)
    learned_of = learned_of[[not _wanders(data, windows, v) for v in learned_of.tolist()]]
    kinds = np.unique(open_inputs[learned_of], axis=0)
    parts = []
    for kind in kinds if len(kinds) <= MOST_KINDS else kinds[:0]:
        own = learned_of[(open_inputs[learned_of] == kind).all(1)]
        targets = data.targets[:, windows.panel.coding.first[own]]
        part = _Part(data.of_groups(np.flatnonzero(kind)), targets, own, np.flatnonzero(kind), seed)
        if part.speaks:
            parts.append(part)
            found.take_p_values(part)
    if not parts:
        return closed
    adjusted = np.asarray(by_group(q_values(np.asarray(data.by_lag(found.p_values), dtype=float))))
    passed = int((adjusted <= fdr).sum())
    level = fdr * passed / max(int(np.isfinite(found.p_values).sum()), 1)
    for part in parts:
        found.take_details(part, level, np.asarray(adjusted <= fdr))
    return found.dataset(closed, data)


def _wanders(data: TestedWindows, windows: Windows, variable: int) -> bool:
    """Whether a number hardly forgets, as a random walk does.

    What a learner's penalty leaves of such a level drifts with time, and so do other walks.
    """
    past = data.inputs[:, data.variable == variable]
    design = np.column_stack([past, np.ones(len(past))])
    target = data.targets[:, windows.panel.coding.first[variable]]
    return float(np.linalg.lstsq(design, target, rcond=None)[0][:-1].sum()) > WANDERING


class _Part:
    """The learner of targets that may have the same inputs."""

    def __init__(
        self, data: TestedWindows, targets: Array, variables: Index, groups: Index, seed: int
    ) -> None:
        """Targets (row, target) are these variables; groups (own,) number the inputs among all."""
        self.data, self.targets, self.variables, self.groups = data, targets, variables, groups
        size = int(max(data.variable.max(), variables.max())) + 1
        place = -1 - np.arange(size)  # of what is no target: any number below zero
        place[variables] = np.arange(len(variables))
        self.layout = Layout(place[data.variable], data.lag)
        own_lags = [self.layout.own(t) for t in range(len(variables))]
        self.learned: LearnedEvidence = learned_evidence(
            data.inputs, targets, data.groups, own_lags, data.rows, data.past_shape[0], seed
        )

    @property
    def speaks(self) -> bool:
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
        found = np.where(waves < CLEAR, own + explained * errors.var(0)[:, None], own)
        total = np.maximum(found.sum(1), 1e-300)
        return np.asarray(found * (np.maximum(self.known, LEAST_KNOWN) / total)[:, None])

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
        least = np.where(self.known > NEARLY_KNOWN, LEAST_SHARE_IF_NEARLY_KNOWN, LEAST_SHARE)
        is_judged = np.array([verdict == "learner" for verdict in learned.verdicts])
        usual = np.where(share > LEAST_SHARE, 0.0, LEAST_SHARE)  # of those that both decide
        found = np.where(is_judged[:, None], least[:, None], usual)
        return np.asarray(np.where(learned.waves < CLEAR, 0.0, found))

    def doubtful(self, edges: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Which edges (target, group) may be due to what the learner misses.

        Not asked where no target is decided by a learner that is much better than lines and
        splines: hardly anything is joint then, and hardly anything joint is missed.
        """
        data, learned = self.data, self.learned
        errors, simpler = learned.evidence.errors, learned.additive_errors
        much_better = (errors**2).mean(0) < (1 - LEAST_GAIN) * (simpler**2).mean(0)
        if not any(
            v == "learner" and m for v, m in zip(learned.verdicts, much_better, strict=True)
        ):
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


@dataclass(eq=False)
class _Combined:
    """What closed forms and learners say together, (target, group)."""

    p_values: Array
    stability: Array
    relevance: Array
    least_share: Array
    doubtful: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, closed: xr.Dataset, scores: xr.DataArray) -> _Combined:
        p_values, stability, relevance = (
            np.asarray(by_group(one.values), dtype=np.float64)
            for one in (closed["p_value"], closed["stability"], scores)
        )
        usual = np.full(p_values.shape, LEAST_SHARE)
        return cls(p_values, stability, relevance, usual, np.zeros(p_values.shape, dtype=bool))

    def take_p_values(self, part: _Part) -> None:
        at = np.ix_(part.variables, part.groups)
        self.p_values[at] = part.learned.p_values(self.p_values[at])

    def take_details(self, part: _Part, level: float, edges: npt.NDArray[np.bool_]) -> None:
        at = np.ix_(part.variables, part.groups)
        own = part.learned.evidence.stability(level, DRAWS, np.random.default_rng(0))
        energies, before, stability = part.energies(), self.relevance[at], self.stability[at]
        for target, verdict in enumerate(part.learned.verdicts):
            if verdict == "learner":
                stability[target] = own[target]
                faint = FAINT * before[target] / max(float(before[target].max()), 1e-300)
                before[target] = energies[target] + faint
            elif verdict == "both":
                stability[target] = np.maximum(own[target], stability[target])
        self.stability[at], self.relevance[at] = stability, before
        self.least_share[at] = part.least_shares()
        self.doubtful[at] = part.doubtful(edges[at])

    def dataset(self, closed: xr.Dataset, data: TestedWindows) -> xr.Dataset:
        """The closed-form tests with everything replaced or added."""
        found = {
            "p_value": self.p_values,
            "stability": self.stability,
            "relevance": self.relevance,
            "least_share": self.least_share,
            "doubtful": self.doubtful,
        }
        like = closed["p_value"]
        return closed.assign({n: like.copy(data=data.by_lag(v)) for n, v in found.items()})

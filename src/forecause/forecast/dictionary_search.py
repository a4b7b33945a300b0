"""The dictionary: lines and splines of the inputs, and atoms found by scanning residuals.

Where nothing is left in the residual of lines and splines, the dictionary is just these, at next
to no cost; all targets share the scans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from forecause.common.arrays import Array, Index, Mask
from forecause.config.thresholds import thresholds
from forecause.forecast.input_tests.projected_covariance import Predictor
from forecause.regression import scan
from forecause.regression.atoms import Atom, Factor, atom_of, atom_values
from forecause.regression.least_squares import KnownFeatures, ridge
from forecause.regression.moments import Moments
from forecause.regression.sample import stretches
from forecause.regression.scan import InputGroups
from forecause.regression.splines import BENDS, Splines

# Shape of the model:
LINE_PENALTIES = (1e-3, 1e-2, 0.1)
BEND_PENALTIES = (3e-3, 3e-2, 0.3, 1e4)  # the last one leaves straight lines
ATOM_PENALTY = 3e-3
MOST_ATOMS = 24  # with their variants
MOST_READ = 10  # inputs that a target's model reads
SATURATION = 3.0  # rate of the tanh that stands in for a step

# Time and memory:
ROUNDS = 3  # of scans
ATOMS_A_ROUND = 4


ScanOf = Callable[[Array, Index], scan.Scan]
"""Makes a scan of inputs (row, input) for functions of some columns."""


@dataclass(frozen=True, eq=False)
class DictionaryFit(Predictor):
    """A fitted model of one target: intercept + lines + bends + atoms, all plain arrays."""

    splines: Splines
    reads: Index  # (read,) the input columns it looks at
    intercept: float
    lines: Array  # (read,)
    bends: Array  # (read, bend)
    atoms: tuple[Atom, ...]
    weights: Array  # (atom,)
    penalty: Array  # (feature,) of the fit, per row
    left_out_loss: float  # mean squared error on blocks of time that were left out
    is_sure: bool  # whether chance hardly ever proposes such atoms

    @classmethod
    def of(
        cls, splines: Splines, reads: Index, atoms: Sequence[Atom], beta: Array, **fit: Any
    ) -> DictionaryFit:
        """From coefficients (feature,): intercept, lines, bends, atoms."""
        lines, main = 1 + len(reads), 1 + len(reads) * (1 + BENDS)
        bends = beta[lines:main].reshape(len(reads), BENDS)
        found = float(beta[0]), beta[1:lines], bends, tuple(atoms), beta[main:]
        return cls(splines, reads, *found, **fit)

    def features(self, inputs: Array) -> Array:
        """(row, feature) of inputs (row, input): intercept, lines, bends, atoms."""
        intercept, bends = np.ones((len(inputs), 1)), self.splines.bends(inputs, self.reads)
        values = [intercept, inputs[:, self.reads], bends, atom_values(self.atoms, inputs)]
        return np.concatenate(values, axis=1)

    def terms(self, inputs: Array) -> tuple[list[tuple[int, ...]], Array]:
        """The inputs of every atom, and the atoms' values (row, atom)."""
        return [atom.columns for atom in self.atoms], atom_values(self.atoms, inputs)

    def forecast_of(self, late: Mask, inputs: Array, target: Array) -> Array:
        """What the same terms, fitted to all other rows, say of the rows `late` (row,) marks."""
        features = self.features(inputs)
        early, count = features[~late], float((~late).sum())
        return np.asarray(features[late] @ ridge(early, target[~late], self.penalty * count + 1e-9))

    def predict(self, inputs: Array) -> Array:
        """(row,) of inputs (row, input)."""
        forecasts = self.intercept + inputs[:, self.reads] @ self.lines
        forecasts = forecasts + self.splines.bends(inputs, self.reads) @ self.bends.ravel()
        return np.asarray(forecasts + atom_values(self.atoms, inputs) @ self.weights)

    def part(self, inputs: Array, columns: Index) -> Array:
        """The terms (row,) of inputs (row, input) that involve any of some columns."""
        at = np.flatnonzero(np.isin(self.reads, columns))
        own = self.reads[at]
        terms = inputs[:, own] @ self.lines[at]
        terms = terms + self.splines.bends(inputs, own) @ self.bends[at].ravel()
        wanted = set(columns.tolist())
        for atom, weight in zip(self.atoms, self.weights, strict=True):
            if wanted.intersection(atom.columns):
                terms = terms + weight * atom.values(inputs)
        return np.asarray(terms)


class AdditiveModels:
    """Lines and splines of all inputs, fitted to every target on one part of time."""

    def __init__(self, inputs: Array, targets: Array, candidates: InputGroups) -> None:
        """Inputs (row, input) and targets (row, target), rows in order of time."""
        self.inputs, self.targets, self.candidates = inputs, targets, candidates
        self.blocks = stretches(len(inputs))
        self.splines = Splines.of(inputs, candidates.curved)
        intercept = np.ones((len(inputs), 1))
        bends = self.splines.bends(inputs)
        self.features = np.concatenate([intercept, inputs, bends], axis=1)
        self.moments = Moments.of_blocks(self.features, targets, self.blocks)
        self.penalties = penalties_tried(inputs.shape[1])
        self.choice, self.loss = self.moments.best_penalties(self.penalties)

    @cached_property
    def residuals(self) -> Array:
        """(row, target), every block of time by a fit that did not see it."""
        left = np.empty_like(self.targets)
        for chosen in np.unique(self.choice):
            own = np.flatnonzero(self.choice == chosen)
            for b, block in enumerate(self.blocks):
                beta = self.moments.total(without=b).solve(self.penalties[chosen])[:, own]
                left[block, own] = self.targets[block][:, own] - self.features[block] @ beta
        return left

    def predict(self, inputs: Array) -> Array:
        """Forecasts (row, target) of inputs (row, input) by the fits to all rows."""
        bends = self.splines.bends(inputs)
        features = np.concatenate([np.ones((len(inputs), 1)), inputs, bends], axis=1)
        forecasts = np.empty((len(inputs), self.targets.shape[1]))
        for chosen in np.unique(self.choice):
            own = np.flatnonzero(self.choice == chosen)
            forecasts[:, own] = (
                features @ self.moments.total().solve(self.penalties[chosen])[:, own]
            )
        return forecasts

    def model(self, target: int) -> DictionaryFit:
        """Lines and splines of all inputs as a dictionary without atoms."""
        penalty, inputs = self.penalties[int(self.choice[target])], self.inputs.shape[1]
        return DictionaryFit.of(
            self.splines,
            np.arange(inputs),
            (),
            self.moments.total().of_targets([target]).solve(penalty)[:, 0],
            penalty=penalty,
            left_out_loss=float(self.loss[target]),
            is_sure=False,
        )

    def columns_of(self, reads: Index) -> Index:
        """The features, intercept first, that belong to some inputs."""
        inputs = self.inputs.shape[1]
        bends = 1 + inputs + (reads[:, None] * BENDS + np.arange(BENDS)).ravel()
        return np.concatenate([[0], 1 + reads, bends])


def penalties_tried(inputs: int, atoms: int = 0) -> list[Array]:
    """Penalties (feature,) of intercept, lines, bends and atoms."""
    of_atoms = np.full(atoms, ATOM_PENALTY)
    return [
        np.concatenate([[0.0], np.full(inputs, line), np.full(inputs * BENDS, bend), of_atoms])
        for line, bend in product(LINE_PENALTIES, BEND_PENALTIES)
    ]


class DictionarySearch:
    """The growing dictionaries of all targets; every scan is shared by them."""

    def __init__(self, additive: AdditiveModels, own_lags: Sequence[Index], level: float) -> None:
        """own_lags (target): the columns of the inputs that hold a target's own past."""
        self.additive = additive
        self.searches = [_Search(additive, t, own, level) for t, own in enumerate(own_lags)]

    def look(self) -> None:
        """Look in the residuals for waves of single inputs, and for products of two and of three
        lines and bends."""
        columns = len(self.additive.candidates.scanned)
        of_three = scan.PLAIN if columns <= scan.FEW_COLUMNS else scan.PLAIN[:1]
        scans: list[ScanOf] = [
            scan.WaveScan,
            partial(scan.PairScan, functions=scan.PLAIN),
            partial(scan.TripleScan, functions=of_three),
        ]
        self._run(self.searches, scans, lambda search: (search.residual, search.known))

    def scan_target_minus_own_past(self) -> None:
        """Look in the target less its own past: other inputs may carry a noisy copy of what drives
        it, and the residual then holds nothing of it any more.

        Products of two waves, steps or lines, which usually mislead the first look; those of three
        waves are costly, so only for targets that follow some atom already.
        """
        pairs: list[ScanOf] = [partial(scan.PairScan, functions=scan.WAVES_AND_STEPS)]
        self._run(self.searches, pairs, _Search.less_own_past)
        triples: list[ScanOf] = [partial(scan.TripleScan, functions=f) for f in scan.WAVE_TRIPLES]
        self._run([s for s in self.searches if s.atoms], triples, _Search.less_own_past)

    def _run(
        self,
        active: list[_Search],
        scans: Sequence[ScanOf],
        part: Callable[[_Search], tuple[Array, KnownFeatures]],
    ) -> None:
        """Targets for which nothing is found drop out after a round."""
        columns = self.additive.candidates.scanned
        if not active or not len(columns):
            return
        prepared = [scan_of(self.additive.inputs, columns) for scan_of in scans]
        for _ in range(ROUNDS):
            parts = [part(s) for s in active]
            residuals = np.stack([residual for residual, _ in parts], axis=1)
            results = [own(residuals) for own in prepared]
            for place, (search, own) in enumerate(zip(active, parts, strict=True)):
                search.extend([p for proposed in results for p in proposed[place]], *own)
            active = [s for s in active if s.has_grown]
            if not active:
                break

    def models(self) -> list[DictionaryFit]:
        """One model per target, of what was found so far."""
        return [s.model() for s in self.searches]

    def quick_models(self) -> list[DictionaryFit]:
        """The same; where no atom was found, lines and splines of all inputs."""
        return [s.model() if s.atoms else self.additive.model(s.target) for s in self.searches]


class _Search:
    """The growing dictionary of one target."""

    def __init__(
        self, additive: AdditiveModels, target: int, own_lags: Index, level: float
    ) -> None:
        self.additive, self.target, self.own_lags, self.level = additive, target, own_lags, level
        self.observed = additive.targets[:, target : target + 1]
        self.moments = additive.moments.of_targets([target])
        self.features = additive.features
        self.main = additive.penalties[int(additive.choice[target])]
        self.atoms: list[Atom] = []
        self.residual = additive.residuals[:, target]
        self.has_grown = False
        self.is_sure = False  # whether a function was found that chance hardly ever proposes
        self._model: DictionaryFit | None = None

    @property
    def penalty(self) -> Array:
        return np.concatenate([self.main, np.full(len(self.atoms), ATOM_PENALTY)])

    @property
    def known(self) -> KnownFeatures:
        """Everything that is in the model so far."""
        return KnownFeatures(self.features, self.moments.gram.sum(0))

    def less_own_past(self) -> tuple[Array, KnownFeatures]:
        """The target less its own past and its atoms (row,), and these."""
        columns = self.additive.columns_of(np.unique(self.own_lags))
        atoms = np.arange(self.additive.features.shape[1], self.features.shape[1])
        own = np.concatenate([columns, atoms])
        known = KnownFeatures(self.features[:, own], self.moments.gram[:, own[:, None], own].sum(0))
        return known.taken_off(self.observed)[:, 0], known

    def extend(self, proposals: list[scan.Proposal], residual: Array, known: KnownFeatures) -> None:
        """Take in the proposals that hold up, with their variants, and renew the residual.

        The proposals are judged by the residual (row,) beside known features. Where these are not
        all that is known, the lines of other inputs are still in the residual, and a
        function of them may pass for a joint one: it must say something of its own.
        """
        inputs = self.additive.inputs
        level = thresholds().search.relaxed_level if self.atoms else self.level
        confirmed = self._confirmed(proposals, residual, known, level)
        if confirmed and not self.is_sure:
            sure_level = thresholds().choice.joint_level
            self.is_sure = bool(self._confirmed(proposals, residual, known, sure_level))
        with_variants: list[Atom] = []
        for atom in confirmed:
            with_variants += [atom, *phase_and_saturation_variants(atom, inputs)]
        added = [a for a in dict.fromkeys(with_variants) if a not in self.atoms]
        added = added[: MOST_ATOMS - len(self.atoms)]
        self.has_grown = bool(added)
        if added:
            self._model = None
            self._append(added)

    def _confirmed(
        self, proposals: list[scan.Proposal], residual: Array, known: KnownFeatures, level: float
    ) -> list[Atom]:
        room = min(ATOMS_A_ROUND, MOST_ATOMS - len(self.atoms))
        inputs = self.additive.inputs
        atoms = scan.confirmed(proposals, inputs, residual, known, room, level)
        if known.features is not self.features:
            own_level = thresholds().search.own_level * min(level, self.level)
            atoms = scan.beyond(atoms, inputs, self.residual, self.known, own_level)
        return atoms

    def _append(self, added: list[Atom]) -> None:
        values = atom_values(added, self.additive.inputs)
        blocks = self.additive.blocks
        self.moments = self.moments.extended(self.features, values, self.observed, blocks)
        self.features = np.concatenate([self.features, values], axis=1)
        self.atoms += added
        residual = np.empty(len(self.features))
        for b, block in enumerate(blocks):
            beta = self.moments.total(without=b).solve(self.penalty)
            residual[block] = (self.observed[block] - self.features[block] @ beta)[:, 0]
        self.residual = residual

    def model(self) -> DictionaryFit:
        """Read the inputs that matter, and fit once more."""
        if self._model is None:
            everything = float(self.moments.left_out_losses(self.penalty).mean())
            ranked = self._ranked_inputs()
            self._model = self._fit(ranked[:MOST_READ])
            most = (1 + thresholds().search.cost_of_reading_few) * everything
            if self._model.left_out_loss > most:
                self._model = self._fit(ranked[: 2 * MOST_READ])
        return self._model

    def _ranked_inputs(self) -> Index:
        """Tested inputs, those in atoms first, then by the rise of the loss without them."""
        candidates, first = self.additive.candidates, self.additive.features.shape[1]
        groups = []
        for column in candidates.tested:
            own = self.additive.columns_of(np.array([column]))[1:]
            used = [first + i for i, a in enumerate(self.atoms) if column in a.columns]
            groups.append(np.concatenate([own, used]).astype(np.int64))
        rises = self.moments.total().rises(self.penalty, groups)
        in_atoms = {c for a in self.atoms for c in a.columns}
        is_in_atom = np.array([c in in_atoms for c in candidates.tested])
        order = np.lexsort((-rises, ~is_in_atom))
        return np.asarray(candidates.tested[order])

    def _fit(self, chosen: Index) -> DictionaryFit:
        reads, first = np.sort(chosen), self.additive.features.shape[1]
        places = [i for i, a in enumerate(self.atoms) if set(a.columns) <= set(reads.tolist())]
        main = self.additive.columns_of(reads)
        kept = np.concatenate([main, first + np.array(places, dtype=np.int64)])
        moments = self.moments.of_features(kept[1:] - 1)
        penalties = penalties_tried(len(reads), len(places))
        best, loss = moments.best_penalties(penalties)
        penalty = penalties[int(best[0])]
        return DictionaryFit.of(
            self.additive.splines,
            reads,
            [self.atoms[i] for i in places],
            moments.total().solve(penalty)[:, 0],
            penalty=penalty,
            left_out_loss=float(loss[0]),
            is_sure=self.is_sure,
        )


def phase_and_saturation_variants(atom: Atom, inputs: Array) -> list[Atom]:
    """Other phases of an atom's waves; steps in place of an atom's lines."""
    waves = [f for f in atom.factors if f.kind in ("sin", "cos")]
    if waves:
        options = [_phases(f, inputs) for f in atom.factors]
        return [atom_of(*factors) for factors in product(*options)]
    if len(atom.factors) > 1 and any(f.kind == "line" for f in atom.factors):
        return [atom_of(*(_saturated(f, inputs) for f in atom.factors))]
    return []


def _phases(factor: Factor, inputs: Array) -> list[Factor]:
    if factor.kind not in ("sin", "cos"):
        return [factor]
    return [replace(factor, kind=kind).centred(inputs) for kind in ("sin", "cos")]


def _saturated(factor: Factor, inputs: Array) -> Factor:
    if factor.kind != "line":
        return factor
    return replace(factor, kind="tanh", rate=SATURATION).centred(inputs)

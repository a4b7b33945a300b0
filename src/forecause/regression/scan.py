"""Scans: which atoms, out of very many, does a residual still follow?

Everything is a few large matrix products. Scans look at no more than `MOST_ROWS` rows; what they
propose is confirmed on all rows, against everything that is already in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from forecause.common.work_sharing import shared
from forecause.config.thresholds import thresholds
from forecause.regression.atoms import Atom, Factor, Kind, atom_of, atom_values
from forecause.regression.least_squares import KnownFeatures

Array = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]
Index = npt.NDArray[np.int64]

# Time and memory:
MOST_ROWS = 2000  # of a scan of single inputs and pairs
MOST_ROWS_OF_TRIPLES = 1200
MOST_COLUMNS = 60  # inputs that are scanned for pairs
MOST_COLUMNS_OF_TRIPLES = 50
FACTORS_OF_PAIRS_AT_ONCE = 128  # first factors of pairs whose seconds are looked at together
FACTORS_AT_ONCE = 16  # second factors of triples whose thirds are looked at together
FEW_COLUMNS = 30  # up to so many, triples are made of bends too
PROPOSALS = 12  # of one scan, that are looked at more closely

# Numerics:
LEAST_VARIANCE = 1e-6  # of a wave in single precision; less is rounding

# Shape of the model:
WAVE_RATES = np.arange(2.0, 32.01, 0.25)  # of single inputs
PLAIN: tuple[tuple[Kind, float], ...] = (("line", 1.0), ("bend", 1.0))
PRODUCT_RATES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
WAVES_AND_STEPS: tuple[tuple[Kind, float], ...] = (
    ("line", 1.0),
    ("tanh", 2.5),
    *((kind, rate) for rate in PRODUCT_RATES for kind in ("sin", "cos")),
)
WAVE_TRIPLES: tuple[tuple[tuple[Kind, float], ...], ...] = (
    (("sin", 1.0), ("cos", 1.0)),
    (("sin", 1.6), ("cos", 1.6)),
)


@dataclass(frozen=True, eq=False)
class InputGroups:
    """Groups of input columns that are tested together (one column, or all levels of a label)."""

    groups: tuple[Index, ...]
    curved: npt.NDArray[np.bool_]  # (input,) whether more than a line can be made of a column

    @cached_property
    def tested(self) -> Index:
        """The columns that belong to a group, in order."""
        return np.unique(np.concatenate(self.groups)).astype(np.int64)

    @cached_property
    def scanned(self) -> Index:
        """The columns whose waves and products are looked for."""
        return np.intersect1d(self.tested, np.flatnonzero(self.curved)).astype(np.int64)


@dataclass(frozen=True)
class Proposal:
    """An atom and how strongly the scanned residual follows it, in standard errors."""

    atom: Atom
    z: float
    scanned: int  # atoms among which it was found

    def is_beyond_chance(self, level: float) -> bool:
        """Whether so large a value is unexpected among all that was scanned."""
        return bool(self.z > -ndtri(level / 2 / max(self.scanned, 1)))


class Scan(Protocol):
    """Looks for atoms in residuals (row, target); what the inputs give is worked out once."""

    def __call__(self, residuals: Array) -> list[list[Proposal]]:
        """The proposals of every target, the strongest first."""


class WaveScan:
    """Single waves sin(w x), cos(w x)."""

    def __init__(self, inputs: Array, columns: Index) -> None:
        self.columns = columns
        self.rows = _thinned(len(inputs), MOST_ROWS)
        self.inputs = inputs[np.ix_(self.rows, columns)].astype(np.float32)

    def _waves(self) -> Iterator[tuple[int, int, Single]]:
        """Phase, place of the rate and values (row, column) of every wave."""
        for place, rate in enumerate(WAVE_RATES):
            for phase, function in enumerate((np.sin, np.cos)):
                yield phase, place, function(np.float32(rate) * self.inputs)

    @cached_property
    def scale(self) -> Single:
        """What turns sums of products into standard errors, (phase, column, rate)."""
        rows = np.float32(len(self.rows))
        scale = np.empty((2, len(self.columns), len(WAVE_RATES)), dtype=np.float32)
        for phase, place, wave in self._waves():
            squares = np.einsum("rc,rc->c", wave, wave) - rows * wave.mean(0) ** 2
            varies = squares > LEAST_VARIANCE * rows  # beyond rounding
            scale[phase, :, place] = varies * np.sqrt(rows / np.where(varies, squares, 1.0))
        return scale

    def __call__(self, residuals: Array) -> list[list[Proposal]]:
        e = _unit(residuals[self.rows])  # its mean is zero, so that waves need not be centred
        best = np.empty((e.shape[1], *self.scale.shape), dtype=np.float32)
        for phase, place, wave in self._waves():
            best[:, phase, :, place] = e.T @ wave
        best = np.abs(best) * self.scale
        return [[self._proposal(z, place) for place in _largest(z, PROPOSALS)] for z in best]

    def _proposal(self, z: Single, place: tuple[int, ...]) -> Proposal:
        phase, column, rate = place
        kind: Kind = "cos" if phase else "sin"
        wave = Factor(int(self.columns[column]), kind, float(WAVE_RATES[rate]))
        return Proposal(atom_of(wave), float(z[place]), z.size)


class _ProductScan:
    """What scans of products share: factors of the inputs, and their values."""

    def __init__(
        self,
        inputs: Array,
        columns: Index,
        functions: Sequence[tuple[Kind, float]],
        most_rows: int,
    ) -> None:
        self.rows = _thinned(len(inputs), most_rows)
        own = np.asfortranarray(inputs[self.rows])  # a column at a time is read
        self.factors = [
            Factor(int(column), kind, rate).centred(own)
            for column in columns
            for kind, rate in functions
        ]
        values = [factor.values(own) for factor in self.factors]
        self.values = np.stack(values, axis=1, dtype=np.float32)  # (row, factor)
        self.owner = np.array([f.column for f in self.factors], dtype=np.int64)

    def _of_targets(
        self, residuals: Array, of_one: Callable[[Single], list[Proposal]], work: float
    ) -> list[list[Proposal]]:
        """`of_one` of the factors times every target's residual, (row, factor).

        Its work is to multiply them by so many products (row,) of factors.
        """

        def proposals(residual: Single) -> list[Proposal]:
            return of_one(self.values * residual[:, None])

        work = 2.0 * self.values.size * work
        return list(shared(proposals, _unit(residuals[self.rows]).T, work))


class PairScan(_ProductScan):
    """Products of a function of one input and a function of another."""

    def __init__(
        self, inputs: Array, columns: Index, functions: Sequence[tuple[Kind, float]]
    ) -> None:
        super().__init__(inputs, columns[:MOST_COLUMNS], functions, MOST_ROWS)
        norms = np.sqrt(np.maximum((self.values**2).T @ self.values**2, 1e-6))
        usable = np.triu(self.owner[:, None] != self.owner, 1)
        self.scanned = int(usable.sum())
        self.scale = _scale(usable, norms, len(self.rows))

    def __call__(self, residuals: Array) -> list[list[Proposal]]:
        return self._of_targets(residuals, self._of_pairs, work=len(self.factors) // 2)

    def _of_pairs(self, weighted: Single) -> list[Proposal]:
        """The proposals of one target, whose second factors stand behind their first."""
        proposals = []
        for start in range(0, len(self.factors), FACTORS_OF_PAIRS_AT_ONCE):
            first = slice(start, start + FACTORS_OF_PAIRS_AT_ONCE)
            z = np.abs(self.values[:, first].T @ weighted[:, start:]) * self.scale[first, start:]
            proposals += [
                self._proposal(start + i, start + j, z[i, j]) for i, j in _largest(z, PROPOSALS)
            ]
        return sorted(proposals, key=lambda proposal: -proposal.z)[:PROPOSALS]

    def _proposal(self, first: int, second: int, z: np.float32) -> Proposal:
        return Proposal(atom_of(self.factors[first], self.factors[second]), float(z), self.scanned)


class TripleScan(_ProductScan):
    """Products of functions of three different inputs, each triple once."""

    def __init__(
        self, inputs: Array, columns: Index, functions: Sequence[tuple[Kind, float]]
    ) -> None:
        super().__init__(inputs, columns[:MOST_COLUMNS_OF_TRIPLES], functions, MOST_ROWS_OF_TRIPLES)
        count = len(self.factors)
        starts = range(0, count, FACTORS_AT_ONCE)
        blocks = [self._block(start, min(start + FACTORS_AT_ONCE, count)) for start in starts]
        self.blocks = [block for block in blocks if block.scanned]
        self.scanned = sum(block.scanned for block in self.blocks)

    def __call__(self, residuals: Array) -> list[list[Proposal]]:
        pairs = sum(len(block.first) for block in self.blocks)
        return self._of_targets(residuals, self._of_triples, work=pairs)

    def _of_triples(self, weighted: Single) -> list[Proposal]:
        own = [p for block in self.blocks for p in self._of_block(block, weighted)]
        return sorted(own, key=lambda p: -p.z)[:PROPOSALS]

    def _block(self, start: int, stop: int) -> _Pairs:
        """The pairs whose second factor lies in a range; a third one stands behind the second."""
        first, second = (
            np.array([one[k] for one in self._pairs(start, stop)], dtype=np.int64) for k in (0, 1)
        )
        products = self.values[:, first] * self.values[:, second]  # (row, pair)
        behind = np.arange(start, len(self.factors))
        norms = np.sqrt(np.maximum((products**2).T @ self.values[:, start:] ** 2, 1e-6))
        usable = behind > second[:, None]
        for own in (first, second):
            usable &= self.owner[behind] != self.owner[own][:, None]
        scale = _scale(usable, norms, len(self.rows))
        return _Pairs(first, second, start, products, scale, int(usable.sum()))

    def _pairs(self, start: int, stop: int) -> list[tuple[int, int]]:
        owner = self.owner
        return [(i, j) for j in range(start, stop) for i in range(j) if owner[i] != owner[j]]

    def _of_block(self, block: _Pairs, weighted: Single) -> list[Proposal]:
        z = np.abs(block.products.T @ weighted[:, block.start :]) * block.scale
        return [
            Proposal(
                atom_of(*(self.factors[f] for f in (*block.pair(p), block.start + k))),
                float(z[p, k]),
                self.scanned,
            )
            for p, k in _largest(z, PROPOSALS)
        ]


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Products of two factors, to be multiplied by a third from `start` on."""

    first: Index  # (pair,)
    second: Index  # (pair,)
    start: int
    products: Single  # (row, pair)
    scale: Single  # (pair, third factor), 0 where a triple is no triple or counted elsewhere
    scanned: int

    def pair(self, place: int) -> tuple[int, int]:
        return int(self.first[place]), int(self.second[place])


def confirmed(
    proposals: Sequence[Proposal],
    inputs: Array,
    residual: Array,
    known: KnownFeatures,
    most: int,
    level: float,
) -> list[Atom]:
    """The proposals beyond chance that a residual (row,) follows whatever its noise is like.

    Each is freed of what known features explain of it and of the ones taken before.
    """
    chosen = [p for p in proposals if p.is_beyond_chance(level)]
    chosen.sort(key=lambda p: -p.z)
    atoms = list(dict.fromkeys(p.atom for p in chosen))
    if not atoms:
        return []
    values = atom_values(atoms, inputs)
    left = known.taken_off(values)
    return [atoms[i] for i in _pursuit(left, residual.copy(), most)]


def beyond(
    atoms: Sequence[Atom], inputs: Array, residual: Array, known: KnownFeatures, level: float
) -> list[Atom]:
    """The atoms that a residual (row,) follows once known features are taken off them.

    `level` is the chance that one without effect is taken to be followed.
    """
    if not atoms:
        return []
    products = known.taken_off(atom_values(atoms, inputs)) * residual[:, None]
    t = np.abs(products.sum(0)) / np.sqrt((products**2).sum(0) + 1e-12)
    return [atom for atom, value in zip(atoms, t, strict=True) if value > -ndtri(level / 2)]


def _pursuit(values: Array, residual: Array, most: int) -> list[int]:
    """Columns of values (row, atom), largest t-value first, each freed of those before it."""
    taken: list[int] = []
    start = np.maximum((values**2).sum(0), 1e-12)
    while len(taken) < min(most, values.shape[1]):
        products = values * residual[:, None]
        t = np.abs(products.sum(0)) / np.sqrt((products**2).sum(0) + 1e-12)
        t[(values**2).sum(0) < 0.1 * start] = 0.0  # mostly explained by those taken
        t[taken] = 0.0
        best = int(t.argmax())
        if t[best] < thresholds().search.least_t:
            break
        taken.append(best)
        direction = values[:, best] / np.linalg.norm(values[:, best])
        residual = residual - direction * (direction @ residual)
        values = values - np.outer(direction, direction @ values)
    return taken


def _unit(values: Array | Single) -> Single:
    """Centred columns of length one."""
    centred = values - values.mean(0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-9), dtype=np.float32)


def _scale(usable: npt.NDArray[np.bool_], norms: Single, rows: int) -> Single:
    """What turns sums of products into standard errors, 0 where they are not wanted."""
    return np.where(usable, np.sqrt(rows) / norms, 0.0).astype(np.float32)


def _largest(values: Single, count: int) -> list[tuple[int, ...]]:
    """Places of the largest values; of those that stand out from nothing none is looked for."""
    flat = values.ravel()
    picks = np.flatnonzero(flat > thresholds().search.least_z)
    order = np.argsort(-flat[picks], kind="stable")[:count]
    where = np.unravel_index(picks[order], values.shape)
    return [tuple(place) for place in np.stack(where, axis=1).tolist()]


def _thinned(rows: int, most: int) -> Index:
    """At most `most` rows, evenly spread over time."""
    return np.unique(np.linspace(0, rows - 1, min(rows, most)).astype(np.int64))

"""Scans: which atoms, out of very many, does a residual still follow?

Everything is a few large matrix products. Scans look at no more than `MOST_ROWS` rows; what they
propose is confirmed on all rows, against everything that is already in the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from forecause.regression.atoms import Atom, Factor, Kind, atom_of, atom_values
from forecause.regression.least_squares import ridge_residual_of

Array = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]
Index = npt.NDArray[np.int64]

MOST_ROWS = 2000  # of a scan of single inputs and pairs
MOST_ROWS_OF_TRIPLES = 1200
MOST_COLUMNS = 60  # inputs that are scanned for pairs
MOST_COLUMNS_OF_TRIPLES = 50
FEW_COLUMNS = 30  # up to so many, triples are made of bends too
LEVEL = 0.005  # of a scan as a whole: the chance to propose anything where there is nothing
LEAST_T = 3.5  # heteroscedastic t-value of an atom that is kept
LEAST_Z = 3.0  # of an atom that is proposed
PROPOSALS = 12  # of one scan, that are looked at more closely

WAVE_RATES = np.arange(2.0, 32.01, 0.25)  # of single inputs
PLAIN: tuple[tuple[Kind, float], ...] = (("line", 1.0), ("bend", 1.0))
CURE_RATES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
CURE: tuple[tuple[Kind, float], ...] = (
    ("line", 1.0),
    ("tanh", 2.5),
    *((kind, rate) for rate in CURE_RATES for kind in ("sin", "cos")),
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

    @classmethod
    def single(cls, inputs: int) -> InputGroups:
        """Every one of `inputs` columns is a candidate of its own and a number."""
        groups = tuple(np.array([i]) for i in range(inputs))
        return cls(groups, np.ones(inputs, dtype=bool))

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


def scan_waves(inputs: Array, residuals: Array, columns: Index) -> list[list[Proposal]]:
    """Single waves sin(w x), cos(w x); for every target of residuals (row, target)."""
    rows = _thinned(len(inputs), MOST_ROWS)
    e = _unit(residuals[rows])
    x = inputs[np.ix_(rows, columns)].astype(np.float32)
    best = np.zeros((e.shape[1], 2, len(columns), len(WAVE_RATES)), dtype=np.float32)
    for place, rate in enumerate(WAVE_RATES):
        for phase, function in enumerate((np.sin, np.cos)):
            wave = function(np.float32(rate) * x)
            best[:, phase, :, place] = np.abs(e.T @ _unit(wave))
    best *= np.sqrt(len(rows))
    kinds: tuple[Kind, Kind] = ("sin", "cos")
    found = []
    for z in best:
        picks = _largest(z.ravel(), PROPOSALS)
        where = np.stack(np.unravel_index(picks, z.shape), axis=1).tolist()
        found.append(
            [
                Proposal(
                    atom_of(Factor(int(columns[c]), kinds[f], float(WAVE_RATES[w]))),
                    float(z[f, c, w]),
                    z.size,
                )
                for f, c, w in where
            ]
        )
    return found


def scan_pairs(
    inputs: Array, residuals: Array, columns: Index, functions: Sequence[tuple[Kind, float]]
) -> list[list[Proposal]]:
    """Products of a function of one input and a function of another."""
    rows = _thinned(len(inputs), MOST_ROWS)
    factors = _factors(columns[:MOST_COLUMNS], functions, inputs[rows])
    values = _values(factors, inputs[rows])  # (row, factor)
    norms = np.sqrt(np.maximum((values**2).T @ values**2, 1e-6))
    owner = np.array([f.column for f in factors])
    usable = np.triu(owner[:, None] != owner, 1)
    e = _unit(residuals[rows])
    found = []
    for target in range(e.shape[1]):
        z = np.abs(values.T @ (values * e[:, target : target + 1])) / norms * np.sqrt(len(rows))
        z[~usable] = 0.0
        picks = _largest(z.ravel(), PROPOSALS)
        where = np.stack(np.unravel_index(picks, z.shape), axis=1).tolist()
        found.append(
            [
                Proposal(atom_of(factors[i], factors[j]), float(z[i, j]), int(usable.sum()))
                for i, j in where
            ]
        )
    return found


def scan_triples(
    inputs: Array, residuals: Array, columns: Index, functions: Sequence[tuple[Kind, float]]
) -> list[list[Proposal]]:
    """Products of functions of three different inputs."""
    rows = _thinned(len(inputs), MOST_ROWS_OF_TRIPLES)
    factors = _factors(columns[:MOST_COLUMNS_OF_TRIPLES], functions, inputs[rows])
    values = _values(factors, inputs[rows])
    e = _unit(residuals[rows])
    owner = np.array([f.column for f in factors])
    pairs = np.array(
        [(i, j) for i, j in combinations(range(len(factors)), 2) if owner[i] != owner[j]]
    )
    if len(pairs) == 0:
        return [[] for _ in range(e.shape[1])]
    products = values[:, pairs[:, 0]] * values[:, pairs[:, 1]]  # (row, pair)
    norms = np.sqrt(np.maximum((products**2).T @ values**2, 1e-6))  # (pair, factor)
    # each triple once: the third factor stands behind the second and is of another input
    usable = (np.arange(len(factors)) > pairs[:, 1:]) & (owner != owner[pairs[:, :1]])
    usable &= owner != owner[pairs[:, 1:]]
    scale = np.where(usable, np.sqrt(len(rows)) / norms, 0.0).astype(np.float32)
    found = []
    for target in range(e.shape[1]):
        z = np.abs(products.T @ (values * e[:, target : target + 1])) * scale
        picks = _largest(z.ravel(), PROPOSALS)
        where = np.stack(np.unravel_index(picks, z.shape), axis=1).tolist()
        found.append(
            [
                Proposal(
                    atom_of(factors[pairs[p, 0]], factors[pairs[p, 1]], factors[k]),
                    float(z[p, k]),
                    int(usable.sum()),
                )
                for p, k in where
            ]
        )
    return found


def confirmed(
    proposals: Sequence[Proposal],
    inputs: Array,
    residual: Array,
    features: Array,
    most: int,
    level: float = LEVEL,
) -> list[Atom]:
    """The proposals beyond chance that a residual (row,) follows whatever its noise is like.

    Each is freed of what features (row, feature) explain of it and of the ones taken before.
    """
    chosen = [p for p in proposals if p.is_beyond_chance(level)]
    chosen.sort(key=lambda p: -p.z)
    atoms = list(dict.fromkeys(p.atom for p in chosen))
    if not atoms:
        return []
    values = atom_values(atoms, inputs)
    left = ridge_residual_of(values, features)
    return [atoms[i] for i in _pursuit(left, residual.copy(), most)]


def beyond(
    atoms: Sequence[Atom], inputs: Array, residual: Array, features: Array, level: float
) -> list[Atom]:
    """The atoms that a residual (row,) follows once features (row, feature) are taken off them.

    `level` is the chance that one without effect is taken to be followed.
    """
    if not atoms:
        return []
    products = ridge_residual_of(atom_values(atoms, inputs), features) * residual[:, None]
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
        if t[best] < LEAST_T:
            break
        taken.append(best)
        direction = values[:, best] / np.linalg.norm(values[:, best])
        residual = residual - direction * (direction @ residual)
        values = values - np.outer(direction, direction @ values)
    return taken


def _factors(
    columns: Index, functions: Sequence[tuple[Kind, float]], inputs: Array
) -> list[Factor]:
    return [Factor(int(c), kind, rate).centred(inputs) for c in columns for kind, rate in functions]


def _values(factors: Sequence[Factor], inputs: Array) -> Single:
    """(row, factor) of inputs (row, input)."""
    return np.stack([f.values(inputs) for f in factors], axis=1, dtype=np.float32)


def _unit(values: Array | Single) -> Single:
    """Centred columns of length one."""
    centred = values - values.mean(0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-9), dtype=np.float32)


def _largest(values: Single, count: int) -> Index:
    """Places of the largest values; of those that stand out from nothing none is looked for."""
    picks = np.flatnonzero(values > LEAST_Z)
    order = np.argsort(-values[picks], kind="stable")[:count]
    return np.asarray(picks[order], dtype=np.int64)


def _thinned(rows: int, most: int) -> Index:
    """At most `most` rows, evenly spread over time."""
    return np.unique(np.linspace(0, rows - 1, min(rows, most)).astype(np.int64))

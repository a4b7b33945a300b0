"""Atoms: small smooth functions of one to four inputs, as plain records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

Kind = Literal["line", "bend", "tanh", "sin", "cos"]

# Shape of the model:
FARTHEST = 3.0  # standard deviations beyond which a line or bend grows no more


@dataclass(frozen=True, order=True)
class Factor:
    """A function of one standardised input: x, x^2, tanh(w x), sin(w x) or cos(w x), centred."""

    column: int
    kind: Kind
    rate: float = 1.0
    centre: float = 0.0  # taken off, so that a product says nothing that fewer inputs say

    def values(self, inputs: Array) -> Array:
        """(row,) of inputs (row, input)."""
        return self._raw(inputs[:, self.column]) - self.centre

    def centred(self, inputs: Array) -> Factor:
        """The same with mean zero over these rows."""
        return replace(self, centre=float(self._raw(inputs[:, self.column]).mean()))

    def _raw(self, x: Array) -> Array:
        match self.kind:
            case "line":
                return np.clip(x, -FARTHEST, FARTHEST)
            case "bend":
                return np.clip(x, -FARTHEST, FARTHEST) ** 2
            case "tanh":
                return np.tanh(self.rate * x)
            case "sin":
                return np.sin(self.rate * x)
            case "cos":
                return np.cos(self.rate * x)

    def slopes(self, inputs: Array) -> Array:
        """Derivative (row,) by the factor's own input."""
        x = inputs[:, self.column]
        match self.kind:
            case "line":
                return (np.abs(x) < FARTHEST).astype(np.float64)
            case "bend":
                return np.where(np.abs(x) < FARTHEST, 2 * x, 0.0)
            case "tanh":
                return np.asarray(self.rate * (1 - np.tanh(self.rate * x) ** 2))
            case "sin":
                return np.asarray(self.rate * np.cos(self.rate * x))
            case "cos":
                return np.asarray(-self.rate * np.sin(self.rate * x))


@dataclass(frozen=True, order=True)
class Atom:
    """A product of factors of different inputs."""

    factors: tuple[Factor, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(f.column for f in self.factors)

    def values(self, inputs: Array) -> Array:
        """(row,) of inputs (row, input)."""
        return np.asarray(np.prod([f.values(inputs) for f in self.factors], axis=0))

    def slopes(self, inputs: Array, column: int) -> Array:
        """Derivative (row,) by one input."""
        parts = [f.slopes(inputs) if f.column == column else f.values(inputs) for f in self.factors]
        return (
            np.asarray(np.prod(parts, axis=0)) if column in self.columns else np.zeros(len(inputs))
        )


def atom_of(*factors: Factor) -> Atom:
    """An atom whose factors stand in a fixed order, so that equal atoms compare equal."""
    return Atom(tuple(sorted(factors)))


def atom_values(atoms: Sequence[Atom], inputs: Array) -> Array:
    """(row, atom) of inputs (row, input)."""
    if not atoms:
        return np.zeros((len(inputs), 0))
    return np.stack([atom.values(inputs) for atom in atoms], axis=1)

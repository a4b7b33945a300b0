"""A sample of windows held in memory, and the features that tests make of it many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Single = npt.NDArray[np.float32]

# Shape of the model:
BLOCKS = 5  # stretches of time that are left out in turn to choose a penalty

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Sample:
    """Windows as rows, (window, (max_lag + 1) * column), the row to be forecast at the end."""

    rows: tuple[Single, ...]  # pieces that follow each other
    columns: int  # of the row to be forecast

    def __len__(self) -> int:
        return sum(len(part) for part in self.rows)

    def __add__(self, other: Sample) -> Sample:
        return Sample((*self.rows, *other.rows), self.columns)

    def at_most(self, count: int) -> Sample:
        """At most about `count` windows, drawn evenly at random, in the same order."""
        share = count / max(len(self), 1)
        if share >= 1:
            return self
        rng = np.random.default_rng(0)
        return Sample(tuple(_thinned(part, share, rng) for part in self.rows), self.columns)

    def batches(self, size: int) -> Iterator[Single]:
        """All windows in order, at most `size` at a time."""
        for part in self.rows:
            yield from pieces(part, size)

    def blocks(self, count: int) -> list[Sample]:
        """Consecutive stretches, about `count` of them."""
        length = max(1, -(-len(self) // count))
        return [
            Sample((piece,), self.columns) for part in self.rows for piece in pieces(part, length)
        ]

    def following(self, rows: Single, targets: Sequence[int]) -> Array:
        """What is to be forecast of some target columns, (window, target)."""
        first = rows.shape[1] - self.columns
        return rows[:, first + np.asarray(targets, np.int64)].astype(np.float64)


@dataclass(frozen=True)
class Design:
    """Features of the past, and which of them belong to which input."""

    places: Index  # (place,) of the columns of the past that are looked at
    transform: Callable[[Array], Array]  # (window, place) -> (window, feature)
    groups: list[Index]  # of feature indices
    inputs: Index  # (group,) the input that each is; see Inputs
    is_plain: bool = False  # the features are the places themselves

    def features(self, rows: Single) -> Array:
        """Features (window, feature) in float64 of windows as rows; see Sample."""
        return self.transform(rows.take(self.places, axis=1).astype(np.float64))

    @property
    def width(self) -> int:
        return 1 + int(max(group.max(initial=0) for group in self.groups))


def pieces(values: npt.NDArray[Number], size: int) -> list[npt.NDArray[Number]]:
    """Consecutive rows, `size` in each piece and the rest in the last; views."""
    return [values[start : start + size] for start in range(0, len(values), size)]


def stretches(rows: int, count: int = BLOCKS) -> list[slice]:
    """About equally long stretches of consecutive rows."""
    edges = np.linspace(0, rows, count + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def _thinned(part: Single, share: float, rng: np.random.Generator) -> Single:
    kept = rng.choice(len(part), max(1, round(len(part) * share)), replace=False)
    return part[np.sort(kept)]

"""A sample of windows held in memory, and the features that tests make of it many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sample:
    """Windows as rows, (window, (max_lag + 1) * column), the row to be forecast at the end."""

    rows: tuple[Tensor, ...]  # pieces that follow each other
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

    def batches(self, size: int) -> Iterator[Tensor]:
        """All windows in order, at most `size` at a time."""
        for part in self.rows:
            yield from part.split(size)

    def blocks(self, count: int) -> list[Sample]:
        """Consecutive stretches, about `count` of them."""
        length = max(1, -(-len(self) // count))
        return [
            Sample((piece,), self.columns) for part in self.rows for piece in part.split(length)
        ]

    def following(self, rows: Tensor, targets: list[int]) -> Tensor:
        """What is to be forecast of some target columns, (window, target)."""
        return rows[:, -self.columns :][:, targets].double()


@dataclass(frozen=True)
class Design:
    """Features of the past, and which of them belong to which input."""

    places: Index  # (place,) of the columns of the past that are looked at
    transform: Callable[[Tensor], Tensor]  # (window, place) -> (window, feature)
    groups: list[Index]  # of feature indices
    inputs: Index  # (group,) the input that each is; see Inputs
    is_plain: bool = False  # the features are the places themselves
    is_joint: bool = False  # some are products of several inputs

    def features(self, rows: Tensor) -> Tensor:
        """Features (window, feature) in float64 of windows as rows; see Sample."""
        chosen = rows.index_select(1, torch.from_numpy(self.places))  # far faster than rows[:, ...]
        return self.transform(chosen.double())

    @property
    def width(self) -> int:
        return 1 + int(max(group.max(initial=0) for group in self.groups))


def _thinned(part: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    kept = rng.choice(len(part), max(1, round(len(part) * share)), replace=False)
    return part[torch.from_numpy(np.sort(kept))]

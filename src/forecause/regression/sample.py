"""A sample of windows held in memory, for tests that go over them many times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from forecause.data.windows import Windows

MOST_WINDOWS = 100_000  # more add time, hardly edges
BATCH = 4096
MOST_NUMBERS = 100_000_000  # held at once: 400 MB


@dataclass(frozen=True, eq=False)
class Sample:
    """Windows as rows, (window, (max_lag + 1) * column), the row to be forecast at the end."""

    rows: tuple[Tensor, ...]  # pieces that follow each other
    columns: int  # of the row to be forecast

    @classmethod
    def of(cls, windows: Windows) -> Sample:
        """All of these windows."""
        steps, columns = windows.shape
        rows = torch.empty(len(windows), (steps + 1) * columns)
        filled = 0
        for batch in windows.batches(BATCH):
            rows[filled : filled + len(batch)] = batch.rows.flatten(1)
            filled += len(batch)
        return cls((rows,), columns)

    @classmethod
    def early_and_late(cls, windows: Windows, late: float) -> tuple[Sample, Sample]:
        """At most as many windows as are worth their time, the last in time apart."""
        steps, columns = windows.shape
        most = min(MOST_WINDOWS, MOST_NUMBERS // ((steps + 1) * columns))
        early, rest = windows.sample(most, np.random.default_rng(0)).split(late)
        return cls.of(early), cls.of(rest)

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


def _thinned(part: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    kept = rng.choice(len(part), max(1, round(len(part) * share)), replace=False)
    return part[torch.from_numpy(np.sort(kept))]

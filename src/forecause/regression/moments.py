"""Least squares from streamed moments: many windows, one small Gram matrix, no stored design."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats
from torch import Tensor

from forecause.data.windows import Windows
from forecause.errors import InputError

BATCH = 4096
BLOCKS = 5  # of time, each left out once to choose a penalty
WORK = 2e11  # windows times squared features of one fit: more windows add time, hardly precision


def _following(window: Tensor) -> Tensor:
    return window[:, -1]


@dataclass(frozen=True)
class Moments:
    """Sums of products of the design (intercept first) and the targets, in float64."""

    count: int
    gram: Tensor  # (1 + feature, 1 + feature)
    cross: Tensor  # (1 + feature, target)
    square: Tensor  # (target,)

    @classmethod
    def of(
        cls,
        windows: Windows,
        design: Callable[[Tensor], Tensor],
        response: Callable[[Tensor], Tensor] = _following,
    ) -> Moments:
        """Stream the windows once; `design` maps the past of a batch to (batch, feature).

        `response` maps the windows to what is explained, (batch, target): their last row.
        """
        total: list[Tensor] = []
        for batch in windows.batches(BATCH):
            parts = _products(batch.double(), design, response)
            total = [a.add_(b) for a, b in zip(total, parts, strict=True)] if total else parts
        return cls(len(windows), *total)

    @classmethod
    def by_block(
        cls, windows: Windows, design: Callable[[Tensor], Tensor], features: int
    ) -> list[Moments]:
        """The moments of BLOCKS consecutive stretches of the windows, or of a sample of them."""
        windows = windows.sample(int(WORK / features**2), np.random.default_rng(0))
        pieces = np.array_split(np.arange(len(windows)), BLOCKS)
        return [cls.of(windows.at(piece), design) for piece in pieces if len(piece)]

    @classmethod
    def added(cls, parts: Sequence[Moments]) -> Moments:
        """The moments of several parts together."""
        return cls(
            sum(part.count for part in parts),
            torch.stack([part.gram for part in parts]).sum(0),
            torch.stack([part.cross for part in parts]).sum(0),
            torch.stack([part.square for part in parts]).sum(0),
        )

    def without(self, part: Moments) -> Moments:
        """The moments of everything but a part."""
        return Moments(
            self.count - part.count,
            self.gram - part.gram,
            self.cross - part.cross,
            self.square - part.square,
        )

    def solve(self, ridge: float = 0.0, allowed: Tensor | None = None) -> Tensor:
        """Coefficients (1 + feature, target); the penalty is `ridge` per window and feature.

        Where `allowed` (feature, target) is False the coefficient stays zero.
        """
        gram = self.gram + self.penalty(ridge)
        if allowed is None or bool(allowed.all()):
            return _solved(gram, self.cross)
        coefficients = torch.zeros_like(self.cross)
        kinds, kind_of = torch.unique(allowed, dim=1, return_inverse=True)
        for kind, column in enumerate(kinds.T):
            rows = torch.cat([torch.zeros(1, dtype=torch.long), column.nonzero().flatten() + 1])
            targets = (kind_of == kind).nonzero().flatten()
            solved = _solved(gram[rows][:, rows], self.cross[rows][:, targets])
            coefficients[rows[:, None], targets] = solved
        return coefficients

    def penalty(self, ridge: float = 0.0) -> Tensor:
        """Diagonal matrix added to the Gram matrix; never quite zero, so that it can be solved."""
        weights = torch.full((len(self.gram),), self.count * max(ridge, 1e-10))
        weights[0] = 0.0
        return torch.diag(weights.double())

    def loss(self, coefficients: Tensor) -> Tensor:
        """Mean squared error per target of these coefficients on the windows seen, (target,)."""
        fitted = (coefficients * (self.gram @ coefficients)).sum(0)
        crossed = (coefficients * self.cross).sum(0)
        return (self.square - 2 * crossed + fitted) / self.count

    def inverse(self) -> Tensor:
        """Inverse of the Gram matrix, with a touch of ridge against features that never vary."""
        ridge = torch.eye(len(self.gram), dtype=torch.float64) * (self.count * 1e-10)
        return torch.linalg.inv(self.gram + ridge)

    def group_p_values(self, groups: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
        """F-test that all coefficients of a group are zero, (target, group).

        Groups hold feature indices without the intercept; features that never vary don't count.
        """
        freedom = self.count - int((self.gram.diagonal() > 0).sum())
        if freedom < 1:
            raise InputError(
                f"The tests need more windows than inputs: found {self.count} windows for "
                f"{len(self.gram) - 1} inputs; use a smaller lag, fewer variables, more rows, or "
                "choose edges by --select top-k."
            )
        coefficients = self.solve()
        inverse = self.inverse()
        variance = self.loss(coefficients) * self.count / freedom
        p_values = np.ones((self.cross.shape[1], len(groups)))
        for g, features in enumerate(groups):
            rows = torch.as_tensor(features) + 1
            rows = rows[self.gram[rows, rows] > 0]
            if not len(rows):
                continue
            beta = coefficients[rows]
            explained = (beta * torch.linalg.solve(inverse[rows][:, rows], beta)).sum(0)
            f = (explained / len(rows) / variance).numpy()
            p_values[:, g] = stats.f.sf(f, len(rows), freedom)
        return p_values


def cross_validated(blocks: Sequence[Moments], ridges: Sequence[float], allowed: Tensor) -> Tensor:
    """Coefficients with the penalty that forecasts left-out blocks of time best.

    One penalty for all targets: shrunk by different amounts, their slopes could not be compared.
    """
    whole = Moments.added(blocks)
    if len(blocks) < 2:
        return whole.solve(max(ridges), allowed)

    def judged(ridge: float) -> float:
        total = 0.0
        for block in blocks:
            total += (
                float(block.loss(whole.without(block).solve(ridge, allowed)).sum()) * block.count
            )
        return total

    best, least, worse = ridges[0], math.inf, 0
    for ridge in ridges:  # ascending: once the loss has risen twice it will not fall again
        loss = judged(ridge)
        worse = 0 if loss < least else worse + 1
        if loss < least:
            best, least = ridge, loss
        if worse == 2:
            break
    return whole.solve(best, allowed)


def _solved(gram: Tensor, cross: Tensor) -> Tensor:
    """Half the work of a general solution, unless the matrix is too close to singular."""
    factor, failed = torch.linalg.cholesky_ex(gram)
    return torch.linalg.solve(gram, cross) if failed else torch.cholesky_solve(cross, factor)


def _products(
    window: Tensor, design: Callable[[Tensor], Tensor], response: Callable[[Tensor], Tensor]
) -> list[Tensor]:
    features = design(window[:, :-1])
    rows = torch.cat([torch.ones(len(features), 1, dtype=features.dtype), features], dim=1)
    following = response(window)
    return [rows.T @ rows, rows.T @ following, following.square().sum(0)]

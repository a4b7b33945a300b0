"""Least squares from streamed moments: many windows, one small Gram matrix, no stored design.

Everything that is fitted in closed form goes through `Moments`: features and responses come in
batches, and what is kept of them is the sums of their products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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


Batch: TypeAlias = tuple[Tensor, Tensor]
"""Features (..., window, feature) and responses (..., window, target) of the same windows."""


def flat(past: Tensor) -> Tensor:
    """The linear design: past (batch, step, column) -> (batch, step * column)."""
    return past.flatten(1)


def batches_of(
    windows: Windows,
    design: Callable[[Tensor], Tensor] = flat,
    response: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Iterator[Batch]:
    """Features and responses of all windows, in float64.

    `design` maps the past of a batch to features, `response` past and target to what is explained,
    which is otherwise the target itself.
    """
    for window in windows.batches(BATCH):
        past, target = window.past.double(), window.target.double()
        yield design(past), response(past, target) if response else target


@dataclass(frozen=True)
class Moments:
    """Sums of products of the features (intercept first) and the targets, in float64.

    Several regressions of the same size may share one: their axes come before those named here.
    """

    count: int | Tensor  # a tensor where several regressions differ in it
    gram: Tensor  # (1 + feature, 1 + feature)
    cross: Tensor  # (1 + feature, target)
    square: Tensor  # (target,)

    @classmethod
    def summed(cls, batches: Iterable[Batch]) -> Moments:
        """Sum over batches of features and responses."""
        count, total = 0, list[Tensor]()
        for features, responses in batches:
            rows = with_intercept(features)
            products = rows.mT @ rows, rows.mT @ responses, responses.square().sum(-2)
            parts = [part.double() for part in products]
            total = [a.add_(b) for a, b in zip(total, parts, strict=True)] if total else parts
            count += responses.shape[-2]
        return cls(count, *total)

    @classmethod
    def of(
        cls,
        windows: Windows,
        design: Callable[[Tensor], Tensor] = flat,
        response: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> Moments:
        """Stream the windows once; see `batches_of`."""
        return cls.summed(batches_of(windows, design, response))

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
            sum(int(part.count) for part in parts),
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
        per_feature = (self._per_regression(1) * max(ridge, 1e-10)).float().double()
        weights = per_feature * torch.ones(self.gram.shape[-1], dtype=torch.float64)
        weights[..., 0] = 0.0
        return torch.diag_embed(weights)

    def loss(self, coefficients: Tensor) -> Tensor:
        """Mean squared error per target of these coefficients on the windows seen, (target,)."""
        fitted = (coefficients * (self.gram @ coefficients)).sum(-2)
        crossed = (coefficients * self.cross).sum(-2)
        return (self.square - 2 * crossed + fitted) / self._per_regression(1)

    def freedom(self) -> int:
        """Windows left once every feature that varies has taken one; refuses if there are none."""
        found = int(self.count) - int((self.gram.diagonal() > 0).sum())
        if found < 1:
            raise InputError(
                f"The tests need more windows than inputs: found {self.count} windows for "
                f"{len(self.gram) - 1} inputs; use a smaller lag, fewer variables, more rows, or "
                "choose edges by --select top-k."
            )
        return found

    def inverse(self) -> Tensor:
        """Inverse of the Gram matrix, with a touch of ridge against features that never vary."""
        ridge = torch.eye(len(self.gram), dtype=torch.float64) * (self.count * 1e-10)
        return torch.linalg.inv(self.gram + ridge)

    def group_p_values(self, groups: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
        """F-test that all coefficients of a group are zero, (target, group).

        Groups hold feature indices without the intercept; features that never vary don't count.
        """
        freedom = self.freedom()
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

    def _per_regression(self, axes: int) -> Tensor:
        """The count, with so many axes behind those of several regressions."""
        count = torch.as_tensor(self.count, dtype=torch.float64)
        return count.reshape(*count.shape, *[1] * axes)


def unexplained(batches: Iterable[Batch], coefficients: Tensor) -> Tensor:
    """What coefficients (1 + feature, target) leave of the responses, (window, target)."""
    parts = [
        responses - (features @ coefficients[1:] + coefficients[0])
        for features, responses in batches
    ]
    return torch.cat(parts)


def with_intercept(features: Tensor) -> Tensor:
    """Features (..., feature) with a column of ones before them."""
    return torch.cat([torch.ones_like(features[..., :1]), features], dim=-1)


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
            total += float(block.loss(whole.without(block).solve(ridge, allowed)).sum()) * int(
                block.count
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
    return torch.linalg.solve(gram, cross) if failed.any() else torch.cholesky_solve(cross, factor)

"""Least squares from streamed moments: many windows, one small Gram matrix, no stored design.

Everything that is fitted in closed form goes through `Moments`: features and responses come in
batches, and what is kept of them is the sums of their products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import fdtrc
from torch import Tensor

from forecause.errors import InputError
from forecause.work_sharing import shared

BATCH = 4096
MOST_JUDGED = 256  # targets by whose left-out losses a penalty is chosen
MANY_FEATURES = 1000  # with more, every second block is left out to choose a penalty
LEAST_NOISE = 1e-5  # as a share of the variance
LEAST_FREEDOM = 0.05  # share of the windows left to tell the noise from

Batch: TypeAlias = tuple[Tensor, Tensor]
"""Features (..., window, feature) and responses (..., window, target) of the same windows."""


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
        left = iter(batches)
        first = next(left)
        width, targets = first[0].shape[-1] + 1, first[1].shape[-1]
        work = 2 * first[0].numel() * (width + targets)
        for rows, *products in shared(_products, chain([first], left), work):
            total = [a.add_(b) for a, b in zip(total, products, strict=True)] if total else products
            count += rows
        return cls(count, *total)

    @classmethod
    def added(cls, parts: Sequence[Moments]) -> Moments:
        """The moments of several parts together."""
        return cls(
            sum(int(part.count) for part in parts),
            torch.stack([part.gram for part in parts]).sum(0),
            torch.stack([part.cross for part in parts]).sum(0),
            torch.stack([part.square for part in parts]).sum(0),
        )

    def of_targets(self, targets: Tensor | Sequence[int]) -> Moments:
        """The moments of some of the targets (target,)."""
        return replace(self, cross=self.cross[:, targets], square=self.square[targets])

    def of_features(self, features: npt.NDArray[np.int64]) -> Moments:
        """The moments of the intercept and some of the features (feature,)."""
        rows = torch.cat([torch.zeros(1, dtype=torch.long), torch.from_numpy(features) + 1])
        return replace(self, gram=self.gram[rows[:, None], rows], cross=self.cross[rows])

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
        gram = self.gram + self.penalty()
        factor, failed = torch.linalg.cholesky_ex(gram)
        return torch.linalg.inv(gram) if failed.any() else torch.cholesky_inverse(factor)

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
            explained = wald(inverse[rows][:, rows], beta.T)
            f = (explained / len(rows) / variance).numpy()
            p_values[:, g] = fdtrc(len(rows), freedom, f)
        return p_values

    def _per_regression(self, axes: int) -> Tensor:
        """The count, with so many axes behind those of several regressions."""
        count = torch.as_tensor(self.count, dtype=torch.float64)
        return count.reshape(*count.shape, *[1] * axes)


def _products(batch: Batch) -> tuple[int, Tensor, Tensor, Tensor]:
    """What a batch adds to the moments; its number of windows comes first."""
    features, responses = batch
    rows = with_intercept(features)
    products = _gram(rows), rows.mT @ responses, responses.square().sum(-2)
    gram, cross, square = (part.double() for part in products)
    return responses.shape[-2], gram, cross, square


def _gram(rows: Tensor) -> Tensor:
    """rows' rows, (..., feature, feature); NumPy knows that it need compute but half of it."""
    if rows.dim() > 2 or rows.device.type != "cpu":
        return rows.mT @ rows
    values = rows.numpy()
    return torch.from_numpy(values.T @ values)


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


def cross_validated(
    blocks: Sequence[Moments], ridges: Sequence[float], allowed: Tensor | None = None
) -> Tensor:
    """Coefficients with the penalty that forecasts left-out blocks of time best.

    One penalty for all targets: shrunk by different amounts, their slopes could not be compared.
    Of very many targets some are judged, and with very many features by some of the blocks.
    """
    whole = Moments.added(blocks)
    if len(blocks) < 2:
        return whole.solve(max(ridges), allowed)

    seen, judges, own = allowed, blocks, whole
    if whole.gram.dim() == 2:
        looked = torch.arange(0, len(whole.square), -(-len(whole.square) // MOST_JUDGED))
        seen = None if allowed is None else allowed[:, looked]
        judges, own = [block.of_targets(looked) for block in blocks], whole.of_targets(looked)

    def left_out_loss(block: Moments, ridge: float) -> float:
        loss = block.loss(own.without(block).solve(ridge, seen))
        return float(loss.sum()) * int(block.count)

    if own.gram.shape[-1] > MANY_FEATURES:
        judges = judges[::2]

    def judged(ridge: float) -> float:
        width = own.gram.shape[-1]
        work = 2 * own.gram.numel() * (width / 6 + 2 * own.cross.shape[-1])
        return sum(shared(partial(left_out_loss, ridge=ridge), judges, work))

    return whole.solve(ridges[lowest(lambda place: judged(ridges[place]), len(ridges))], allowed)


def lowest(height: Callable[[int], float], count: int) -> int:
    """The lowest of the places 0 .. count - 1 of a valley, walking downhill from its middle."""
    known: dict[int, float] = {}

    def at(place: int) -> float:
        if place not in known:
            known[place] = height(place) if 0 <= place < count else math.inf
        return known[place]

    place = count // 2
    while at(place - 1) < at(place) or at(place + 1) < at(place):
        place += -1 if at(place - 1) < at(place) else 1
    return place


class RidgeSystems(NamedTuple):
    """Coefficients of several systems and how sure they are."""

    found: Tensor  # (system, feature, target), 0 for features that were left out
    z_squares: Tensor  # (system, feature, target)
    noise: Tensor  # (system, target), the variance left


def ridge_of_systems(
    gram: Tensor, cross: Tensor, variance: Tensor, penalty: float, count: float, kept: slice
) -> RidgeSystems:
    """Ridge regression on the features that are kept, of many systems at once.

    Moments are centred and divided by `count`: gram (system, feature, feature), cross (system,
    feature, target), variance (system, target).
    """
    gram, part = gram[:, kept, kept], cross[:, kept]
    ridge = penalty / count * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    inverse = torch.linalg.inv(gram + ridge)
    spread = inverse.diagonal(dim1=1, dim2=2)
    solution = inverse @ part
    explained = (solution * (2 * part - gram @ solution)).sum(1)
    freedom = gram.shape[-1] - penalty / count * spread.sum(1)  # effective parameters
    left = (1 - freedom / count).clamp(min=LEAST_FREEDOM)[:, None]
    noise = ((variance - explained) / left).clamp(min=LEAST_NOISE * variance, max=variance)
    found, squares = torch.zeros_like(cross), torch.zeros_like(cross)
    found[:, kept] = solution
    squares[:, kept] = solution.square() * count / (spread[..., None] * noise[:, None])
    return RidgeSystems(found, squares, noise)


def wald(covariance: Tensor, beta: Tensor) -> Tensor:
    """beta' covariance^-1 beta (...) of coefficients (..., feature)."""
    return (beta * pulled(covariance, beta[..., None])[..., 0]).sum(-1)


def pulled(covariance: Tensor, values: Tensor) -> Tensor:
    """covariance^-1 values (..., feature, draw); of single features, which may be millions, a
    division."""
    if covariance.shape[-1] == 1:
        return values / covariance.clamp(min=torch.finfo(covariance.dtype).tiny)
    return torch.linalg.solve(covariance, values)


def _solved(gram: Tensor, cross: Tensor) -> Tensor:
    """Half the work of a general solution, unless the matrix is too close to singular."""
    if gram.dim() == 2 and len(gram) > MANY_FEATURES and gram.device.type == "cpu":
        with suppress(LinAlgError):  # SciPy's routine is half as fast again
            lower = cho_factor(gram.numpy(), lower=True, check_finite=False)
            return torch.from_numpy(cho_solve(lower, cross.numpy(), check_finite=False))
    factor, failed = torch.linalg.cholesky_ex(gram)
    return torch.linalg.solve(gram, cross) if failed.any() else torch.cholesky_solve(cross, factor)

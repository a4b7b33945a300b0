"""Least squares from streamed moments: many windows, one small Gram matrix, no stored design.

Everything that is fitted in closed form goes through `Moments`: features and responses come in
batches, and what is kept of them is the sums of their products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc

from forecause.common.work_sharing import shared
from forecause.config.advice import Advice
from forecause.errors import InputError
from forecause.regression.least_squares import positive_inverse, positive_solve, wald

# Time and memory:
BATCH = 4096
MOST_JUDGED = 256  # targets by whose left-out losses a penalty is chosen
MANY_FEATURES = 1000  # with more, every second block is left out to choose a penalty

# Numerics:
LEAST_RIDGE = 1e-10  # per window

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Batch: TypeAlias = tuple[Array, Array]
"""Features (..., window, feature) and responses (..., window, target) of the same windows."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of products of the features (intercept first) and the targets, in float64.

    Several regressions of the same size, or several blocks of time, may share one: their axes come
    before those named here.
    """

    count: int | Array  # an array where regressions or blocks differ in it
    gram: Array  # (1 + feature, 1 + feature)
    cross: Array  # (1 + feature, target)
    square: Array  # (target,)

    @classmethod
    def summed(cls, batches: Iterable[Batch]) -> Moments:
        """Sum over batches of features and responses."""
        count, total = 0, list[Array]()
        left = iter(batches)
        first = next(left)
        width, targets = first[0].shape[-1] + 1, first[1].shape[-1]
        work = 2 * first[0].size * (width + targets)
        for rows, *products in shared(_products, chain([first], left), work):
            for sum_, product in zip(total, products, strict=True) if total else ():
                sum_ += product
            total = total or products
            count += rows
        return cls(count, *total)

    @classmethod
    def added(cls, parts: Sequence[Moments]) -> Moments:
        """The moments of several parts together."""
        return cls(
            sum(int(part.count) for part in parts),
            _sum([part.gram for part in parts]),
            _sum([part.cross for part in parts]),
            _sum([part.square for part in parts]),
        )

    @classmethod
    def of_blocks(cls, design: Array, targets: Array, blocks: Sequence[slice]) -> Moments:
        """Those of every block of rows, on a first axis: design (row, 1 + feature), targets (row,
        target); see `stretches`."""
        parts = [(design[block], targets[block]) for block in blocks]
        return cls(
            np.array([float(len(x)) for x, _ in parts]),
            np.stack([x.T @ x for x, _ in parts]),
            np.stack([x.T @ y for x, y in parts]),
            np.stack([np.square(y).sum(0) for _, y in parts]),
        )

    def extended(
        self, design: Array, more: Array, targets: Array, blocks: Sequence[slice]
    ) -> Moments:
        """Moments of blocks with `more` (row, new feature) beside the design they were made of."""
        beside = np.stack([design[b].T @ more[b] for b in blocks])
        own = np.stack([more[b].T @ more[b] for b in blocks])
        cross = np.stack([more[b].T @ targets[b] for b in blocks])
        gram = np.block([[self.gram, beside], [beside.swapaxes(1, 2), own]])
        return replace(self, gram=gram, cross=np.concatenate([self.cross, cross], axis=1))

    def total(self, without: int | None = None) -> Moments:
        """The sum over all blocks, or over all but one."""
        sums = int(np.sum(self.count)), self.gram.sum(0), self.cross.sum(0), self.square.sum(0)
        whole = Moments(*sums)
        return whole if without is None else whole.without(self.block(without))

    def block(self, place: int) -> Moments:
        """The moments of one block."""
        count = int(np.asarray(self.count)[place])
        return Moments(count, self.gram[place], self.cross[place], self.square[place])

    def of_targets(self, targets: Index | Sequence[int]) -> Moments:
        """The moments of some of the targets (target,)."""
        return replace(self, cross=self.cross[..., targets], square=self.square[..., targets])

    def of_features(self, features: Index) -> Moments:
        """The moments of the intercept and some of the features (feature,)."""
        rows = np.concatenate([[0], features + 1])
        return replace(
            self, gram=self.gram[..., rows[:, None], rows], cross=self.cross[..., rows, :]
        )

    def without(self, part: Moments) -> Moments:
        """The moments of everything but a part."""
        return Moments(
            self.count - part.count,
            self.gram - part.gram,
            self.cross - part.cross,
            self.square - part.square,
        )

    def solve(self, ridge: float | Array = 0.0, allowed: Mask | None = None) -> Array:
        """Coefficients (1 + feature, target); the penalty per window is one `ridge` for all
        features or one for each (1 + feature,), of which the intercept's does not count.

        Where `allowed` (feature, target) is False the coefficient stays zero.
        """
        gram = self.penalised(ridge)
        if allowed is None or allowed.all():
            return positive_solve(gram, self.cross)
        coefficients = np.zeros_like(self.cross)
        kinds, kind_of = np.unique(allowed, axis=1, return_inverse=True)
        for kind, column in enumerate(kinds.T):
            rows = np.concatenate([[0], np.flatnonzero(column) + 1])
            own = np.ix_(rows, np.flatnonzero(kind_of.ravel() == kind))
            coefficients[own] = positive_solve(gram[np.ix_(rows, rows)], self.cross[own])
        return coefficients

    def penalised(self, ridge: float | Array = 0.0) -> Array:
        """The Gram matrix with `ridge` per window on its diagonal, except for the intercept.

        Never quite zero, so that it can be solved.
        """
        gram = self.gram.copy()
        weights = np.broadcast_to(np.maximum(ridge, LEAST_RIDGE), gram.shape[-1:])[1:]
        diagonal = np.einsum("...ii->...i", gram)  # a view
        diagonal[..., 1:] += self._per_regression(1) * weights
        return gram

    def loss(self, coefficients: Array) -> Array:
        """Mean squared error per target of these coefficients on the windows seen, (target,)."""
        fitted = (coefficients * (self.gram @ coefficients - 2 * self.cross)).sum(-2)
        return np.asarray((self.square + fitted) / self._per_regression(1))

    def freedom(self) -> int:
        """Windows left once every feature that varies has taken one; refuses if there are none."""
        left = int(self.count) - int((self.gram.diagonal() > 0).sum())
        if left < 1:
            raise InputError(
                f"The tests need more windows than inputs: found {self.count} windows for "
                f"{len(self.gram) - 1} inputs; use a smaller lag, fewer variables, more rows, or "
                f"choose edges by {Advice('select', 'top-k')}."
            )
        return left

    def inverse(self) -> Array:
        """Inverse of the Gram matrix, with a touch of ridge against features that never vary."""
        return positive_inverse(self.penalised())

    def group_p_values(self, groups: Sequence[Index]) -> Array:
        """F-test that all coefficients of a group are zero, (target, group).

        Groups hold feature indices without the intercept; features that never vary don't count.
        """
        freedom = self.freedom()
        coefficients = self.solve()
        inverse = self.inverse()
        variance = self.loss(coefficients) * self.count / freedom
        p_values = np.ones((self.cross.shape[1], len(groups)))
        for g, features in enumerate(groups):
            rows = features + 1
            rows = rows[self.gram[rows, rows] > 0]
            if len(rows):
                explained = wald(inverse[np.ix_(rows, rows)], coefficients[rows].T)
                p_values[:, g] = fdtrc(len(rows), freedom, explained / len(rows) / variance)
        return p_values

    def left_out_losses(self, ridge: float | Array) -> Array:
        """Mean squared errors (block, target) of fits to all blocks but the one they forecast."""
        return self.loss(self.left_out.solve(ridge))

    @cached_property
    def left_out(self) -> Moments:
        """Of every block, the moments of all others, on a first axis."""
        sums = (values.sum(0) for values in (self.gram, self.cross, self.square))
        return Moments(int(np.sum(self.count)), *sums).without(self)

    def best_penalties(self, candidates: Sequence[Array]) -> tuple[Index, Array]:
        """The candidate (target,) with the least left-out loss, and that loss (target,)."""
        weights = np.asarray(self.count) / np.sum(self.count)
        losses = np.stack([weights @ self.left_out_losses(ridge) for ridge in candidates])
        return losses.argmin(0), losses.min(0)

    def rises(self, ridge: float | Array, groups: Sequence[Index]) -> Array:
        """By how much the loss of one target rises, (group,), when a group of columns of the
        design goes."""
        inverse = positive_inverse(self.penalised(ridge))
        beta = (inverse @ self.cross)[:, 0]
        explained = [float(wald(inverse[np.ix_(g, g)], beta[g])) if len(g) else 0.0 for g in groups]
        return np.array(explained) / self.count

    def _per_regression(self, axes: int) -> Array:
        """The count, with so many axes behind those of several regressions."""
        count = np.asarray(self.count, dtype=np.float64)
        return count.reshape(*count.shape, *[1] * axes)


def _products(batch: Batch) -> tuple[int, Array, Array, Array]:
    """What a batch adds to the moments; its number of windows comes first."""
    features, responses = batch
    rows = with_intercept(features)
    across = rows.swapaxes(-1, -2)
    gram = across @ rows  # X'X; NumPy uses a symmetric rank-k update
    return responses.shape[-2], gram, across @ responses, np.square(responses).sum(-2)


def _sum(parts: Sequence[Array]) -> Array:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def unexplained(batches: Iterable[Batch], coefficients: Array) -> Array:
    """What coefficients (1 + feature, target) leave of the responses, (window, target)."""
    parts = [
        responses - (features @ coefficients[1:] + coefficients[0])
        for features, responses in batches
    ]
    return np.concatenate(parts)


def with_intercept(features: Array) -> Array:
    """Features (..., feature) with a column of ones before them."""
    *rows, width = features.shape
    design = np.empty((*rows, width + 1), features.dtype)
    design[..., 0] = 1
    design[..., 1:] = features
    return design


def cross_validated(
    blocks: Sequence[Moments], ridges: Sequence[float], allowed: Mask | None = None
) -> Array:
    """Coefficients with the penalty that forecasts left-out blocks of time best.

    One penalty for all targets: shrunk by different amounts, their slopes could not be compared.
    Of very many targets some are judged, and with very many features by some of the blocks.
    """
    whole = Moments.added(blocks)
    if len(blocks) < 2:
        return whole.solve(max(ridges), allowed)

    seen, judges, own = allowed, blocks, whole
    if whole.gram.ndim == 2:
        judged_targets = np.arange(0, len(whole.square), -(-len(whole.square) // MOST_JUDGED))
        seen = None if allowed is None else allowed[:, judged_targets]
        judges = [block.of_targets(judged_targets) for block in blocks]
        own = whole.of_targets(judged_targets)

    def left_out_loss(block: Moments, ridge: float) -> float:
        loss = block.loss(own.without(block).solve(ridge, seen))
        return float(loss.sum()) * int(block.count)

    if own.gram.shape[-1] > MANY_FEATURES:
        judges = judges[::2]

    def judged(ridge: float) -> float:
        width = own.gram.shape[-1]
        work = 2 * own.gram.size * (width / 6 + 2 * own.cross.shape[-1])
        return sum(shared(partial(left_out_loss, ridge=ridge), judges, work))

    return whole.solve(ridges[lowest(lambda place: judged(ridges[place]), len(ridges))], allowed)


def lowest(height: Callable[[int], float], count: int) -> int:
    """argmin of a unimodal sequence height(0) .. height(count - 1), by local search."""
    known: dict[int, float] = {}

    def at(place: int) -> float:
        if place not in known:
            known[place] = height(place) if 0 <= place < count else math.inf
        return known[place]

    place = count // 2
    while at(place - 1) < at(place) or at(place + 1) < at(place):
        place += -1 if at(place - 1) < at(place) else 1
    return place

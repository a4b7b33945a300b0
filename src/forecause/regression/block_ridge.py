"""Ridge regression whose penalties are chosen by leaving out blocks of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import linalg

from forecause.regression.least_squares import damped, precision, wald

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

BLOCKS = 5  # stretches of time that are left out in turn
JITTER = 1e-8  # relative to the diagonal, so that copies of an input do not break the solver


@dataclass(frozen=True, eq=False)
class BlockMoments:
    """Sums of products of features (an intercept first) and targets, per block of time."""

    gram: Array  # (block, feature, feature)
    cross: Array  # (block, feature, target)
    square: Array  # (block, target)
    count: Array  # (block,)

    @classmethod
    def of(cls, features: Array, targets: Array, blocks: Sequence[slice]) -> BlockMoments:
        """Features (row, feature) and targets (row, target); every block is a slice of rows."""
        parts = [(features[b], targets[b]) for b in blocks]
        return cls(
            np.stack([x.T @ x for x, _ in parts]),
            np.stack([x.T @ y for x, y in parts]),
            np.stack([(y**2).sum(0) for _, y in parts]),
            np.array([float(len(x)) for x, _ in parts]),
        )

    def of_target(self, target: int) -> BlockMoments:
        """The moments of one target."""
        one = slice(target, target + 1)
        return BlockMoments(self.gram, self.cross[..., one], self.square[:, one], self.count)

    def of_features(self, kept: Index) -> BlockMoments:
        """The moments of some features."""
        gram = self.gram[:, kept[:, None], kept]
        return BlockMoments(gram, self.cross[:, kept], self.square, self.count)

    def extended(
        self, features: Array, more: Array, targets: Array, blocks: Sequence[slice]
    ) -> BlockMoments:
        """With `more` (row, new feature) appended to the features these moments are of."""
        beside = np.stack([features[b].T @ more[b] for b in blocks])
        own = np.stack([more[b].T @ more[b] for b in blocks])
        upper = np.concatenate([self.gram, beside], axis=2)
        lower = np.concatenate([beside.transpose(0, 2, 1), own], axis=2)
        cross = np.stack([more[b].T @ targets[b] for b in blocks])
        return BlockMoments(
            np.concatenate([upper, lower], axis=1),
            np.concatenate([self.cross, cross], axis=1),
            self.square,
            self.count,
        )

    def solve(self, penalty: Array, without: int | None = None) -> Array:
        """Coefficients (feature, target) for penalties (feature,) per row; `without` a block."""
        gram, cross, count = self.gram.sum(0), self.cross.sum(0), self.count.sum()
        if without is not None:
            gram, cross = gram - self.gram[without], cross - self.cross[without]
            count = count - self.count[without]
        factor = linalg.cho_factor(_damped(gram, penalty * count), check_finite=False)
        return np.asarray(linalg.cho_solve(factor, cross, check_finite=False))

    def left_out_losses(self, penalty: Array) -> Array:
        """Mean squared errors (block, target) of fits that did not see the block."""
        losses = []
        for b in range(len(self.gram)):
            beta = self.solve(penalty, without=b)
            explained = 2 * (beta * self.cross[b]).sum(0)
            power = (beta * (self.gram[b] @ beta)).sum(0)
            losses.append((self.square[b] - explained + power) / self.count[b])
        return np.stack(losses)

    def best_penalties(self, candidates: Sequence[Array]) -> tuple[Index, Array]:
        """The candidate (target,) with the least left-out loss, and that loss (target,)."""
        weights = self.count / self.count.sum()
        losses = np.stack([weights @ self.left_out_losses(c) for c in candidates])
        return losses.argmin(0), losses.min(0)

    def rises(self, penalty: Array, groups: Sequence[Index]) -> Array:
        """By how much the loss of one target rises, (group,), when a group of features goes."""
        count = self.count.sum()
        inverse = precision(_damped(self.gram.sum(0), penalty * count))
        beta = (inverse @ self.cross.sum(0))[:, 0]
        return np.array(
            [float(wald(inverse[np.ix_(g, g)], beta[g])) / count if len(g) else 0.0 for g in groups]
        )


def _damped(gram: Array, penalty: Array) -> Array:
    return damped(gram, penalty + JITTER * np.diag(gram) + 1e-12)


def stretches(rows: int, count: int = BLOCKS) -> list[slice]:
    """About equally long stretches of consecutive rows."""
    edges = np.linspace(0, rows, count + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]

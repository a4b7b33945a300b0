"""Wald tests that stay honest when the noise is not the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats
from torch import Tensor

from forecause.regression.designs import Design
from forecause.regression.moments import BATCH, Batch, Moments, with_intercept
from forecause.regression.sample import Sample

NUMBERS = 8_000_000  # held at once while products are summed
BLOCKS = 40  # of time, which resampling keeps whole

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Class:
    """Groups of equally many features; all tensors are over (target, group, feature, ...)."""

    groups: npt.NDArray[np.int64]  # (group,) their places among all groups
    beta: Tensor
    covariance: Tensor  # (target, group, feature, feature)
    influence: Tensor  # (target, group, feature, block): what each block adds to beta

    def p_values(self, beta: Tensor, freedom: int) -> Array:
        """Of no effect, (target, group)."""
        solved = torch.linalg.solve(self.covariance, beta[..., None])[..., 0]
        wald = (beta * solved).sum(-1) / beta.shape[-1]
        return np.asarray(stats.f.sf(wald.numpy(), beta.shape[-1], freedom))


@dataclass(frozen=True)
class Wald:
    """Tests that all coefficients of a group of features are zero, (target, group).

    Least squares with an intercept; the covariance is HC3, which assumes nothing about the noise's
    variance. Features that never vary do not count; a group without any has p-value 1.
    """

    shape: tuple[int, int]
    classes: tuple[_Class, ...]
    freedom: int

    @classmethod
    def of(
        cls, sample: Sample, design: Design, targets: Sequence[int], moments: Moments | None = None
    ) -> Wald:
        """Two passes over the sample, or one if its moments are known."""
        moments = moments or Moments.summed(batches_of_sample(sample, design, targets))
        varying, freedom = moments.gram.diagonal() > 0, moments.freedom()
        members = [_varying(torch.as_tensor(g) + 1, varying) for g in design.groups]
        classes = _classes(sample, design, moments, targets, members)
        return cls((len(targets), len(members)), tuple(classes), freedom)

    @property
    def p_values(self) -> Array:
        found = np.ones(self.shape)
        for one in self.classes:
            found[:, one.groups] = one.p_values(one.beta, self.freedom)
        return found

    def stability(self, levels: Array, draws: int, rng: np.random.Generator) -> Array:
        """Share of resamples of time with p-value <= levels (target,), (target, group).

        Blocks of time are drawn with replacement; coefficients follow by their influence, to first
        order, which needs no refit.
        """
        found = np.zeros(self.shape)
        for one in self.classes:
            blocks = one.influence.shape[-1]
            weights = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=draws) - 1.0
            for extra in torch.from_numpy(weights):
                drawn = one.p_values(one.beta + one.influence @ extra, self.freedom)
                found[:, one.groups] += drawn <= levels[:, None]
        return found / draws


def batches_of_sample(sample: Sample, design: Design, targets: Sequence[int]) -> Iterator[Batch]:
    """Features of the windows in a sample, and the target columns that they are to explain."""
    for rows in sample.batches(BATCH):
        yield design.features(rows), sample.following(rows, list(targets))


def _classes(
    sample: Sample,
    design: Design,
    moments: Moments,
    targets: Sequence[int],
    members: Sequence[Tensor],
) -> list[_Class]:
    """Coefficients and HC3 covariance of every group, those of one size together.

    With h = (Z'Z)^-1 z and e the error over 1 - leverage, the covariance is the sum of h h' e^2
    and the influence of a block of time the sum of h e.
    """
    inverse = torch.linalg.inv(moments.gram + moments.penalty())
    coefficients = inverse @ moments.cross
    sizes = np.array([len(m) for m in members])
    kinds = [np.flatnonzero(sizes == size) for size in np.unique(sizes[sizes > 0])]
    rows = [
        torch.stack([members[g] for g in groups.tolist()]) for groups in kinds
    ]  # (group, feature)
    spread = [torch.zeros(len(targets), *r.shape, r.shape[1], dtype=torch.float64) for r in rows]
    influence = []
    widest = max([len(inverse), *(r.numel() * r.shape[1] for r in rows)])
    size = max(64, min(BATCH, NUMBERS // widest))
    for block in sample.blocks(BLOCKS):
        added = torch.zeros(len(inverse), len(targets), dtype=torch.float64)
        for batch in block.batches(size):
            z = with_intercept(design.features(batch))
            h = z @ inverse
            leverage = (z * h).sum(1, keepdim=True).clamp(max=0.99)
            errors = sample.following(batch, list(targets)) - z @ coefficients
            errors = errors / (1 - leverage)
            added += h.T @ errors
            for total, chosen in zip(spread, rows, strict=True):
                _add_weighted_products(total, h, chosen, errors.square())
        influence.append(added)
    every = torch.stack(influence, dim=-1)  # (feature, target, block)
    return [
        _Class(g, _by_target(coefficients[r]), s, _by_target(every[r]))
        for g, r, s in zip(kinds, rows, spread, strict=True)
    ]


def _by_target(values: Tensor) -> Tensor:
    """(group, feature, target, ...) -> (target, group, feature, ...)."""
    return values.movedim(2, 0).contiguous()


def _add_weighted_products(total: Tensor, h: Tensor, chosen: Tensor, weights: Tensor) -> None:
    """Add sum over windows of weight h h' to total (target, group, feature, feature).

    weights (window, target); the cheaper of two orders.
    """
    if weights.shape[1] == 1:
        own = h[:, chosen].transpose(0, 1)  # (group, window, feature)
        total[0] += (own * weights).transpose(1, 2) @ own
        return
    own = h[:, chosen]
    outer = (own[..., :, None] * own[..., None, :]).flatten(1)
    total += (weights.T @ outer).unflatten(1, total.shape[1:])


def _varying(rows: Tensor, varying: Tensor) -> Tensor:
    return rows[varying[rows]]

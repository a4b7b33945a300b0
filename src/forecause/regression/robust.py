"""Wald tests that stay honest when the noise is not the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import betaincinv, fdtrc
from torch import Tensor

from forecause.regression.least_squares import pseudo_inverse
from forecause.regression.least_squares import wald as wald_statistic
from forecause.regression.moments import BATCH, Batch, Moments, pulled, wald, with_intercept
from forecause.regression.sample import Design, Sample
from forecause.work_sharing import shared

NUMBERS = 8_000_000  # held at once while products are summed
LARGEST_LEVERAGE = 0.99
BLOCKS = 40  # of time, which resampling keeps whole

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Class:
    """Groups of equally many features; all tensors are over (target, group, feature, ...)."""

    groups: npt.NDArray[np.int64]  # (group,) their places among all groups
    beta: Tensor
    covariance: Tensor  # (target, group, feature, feature)
    influence: Tensor  # (target, group, feature, block): what each block adds, in float32

    def p_values(self, freedom: int) -> Array:
        """Of no effect, (target, group)."""
        size = self.beta.shape[-1]
        return f_p_values(wald(self.covariance, self.beta).numpy() / size, size, freedom)

    def stability(self, weights: Tensor, levels: Array, freedom: int) -> Array:
        """Share of resamples with weights (block, draw) whose p-value is at most the target's
        level (target,), (target, group): those whose statistic reaches the level's own."""
        size = self.beta.shape[-1]
        least = torch.from_numpy(size * f_statistic(levels, size, freedom))
        numbers = self.beta[0].numel() * weights.shape[1]
        parts = []
        for some in torch.arange(len(self.beta)).split(max(1, NUMBERS // numbers)):
            moved = self.influence[some].double() @ weights + self.beta[some, ..., None]
            statistic = (moved * pulled(self.covariance[some], moved)).sum(-2)
            parts.append((statistic >= least[some, None, None]).double().mean(-1))
        return np.asarray(torch.cat(parts).numpy())


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
            found[:, one.groups] = one.p_values(self.freedom)
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
            drawn = torch.from_numpy(weights).T
            found[:, one.groups] = one.stability(drawn, levels, self.freedom)
        return found


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
    inverse = moments.inverse()
    coefficients = inverse @ moments.cross
    sizes = np.array([len(m) for m in members])
    kinds = [np.flatnonzero(sizes == size) for size in np.unique(sizes[sizes > 0])]
    rows = [
        torch.stack([members[g] for g in groups.tolist()]) for groups in kinds
    ]  # (group, feature)
    shapes = [(len(targets), *r.shape, r.shape[1]) for r in rows]
    widest = max([len(inverse), *(r.numel() * r.shape[1] for r in rows)])
    size = max(64, min(BATCH, NUMBERS // widest))

    length = max(1, -(-len(sample) // BLOCKS))  # of a block of time
    pieces = [p for part in sample.rows for p in part.split(length * max(1, size // length))]

    def summed(piece: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Of some blocks: sums of h e (block, feature, target), and of h h' e^2 for every size."""
        added = torch.zeros(-(-len(piece) // length), len(inverse), len(targets)).double()
        spread = [torch.zeros(shape, dtype=torch.float64) for shape in shapes]
        for batch in piece.split(size if size < length else len(piece)):
            z = with_intercept(design.features(batch))
            h = z @ inverse
            leverage = (z * h).sum(1, keepdim=True).clamp(max=LARGEST_LEVERAGE)
            errors = sample.following(batch, list(targets)) - z @ coefficients
            errors = errors / (1 - leverage)
            by_block = zip(h.split(length), errors.split(length), strict=True)
            for place, (own, left) in enumerate(by_block):
                added[place] += own.T @ left
            for total, chosen in zip(spread, rows, strict=True):
                _add_weighted_products(total, h, chosen, errors.square())
        return added, spread

    blocks = sum(-(-len(part) // length) for part in sample.rows)
    influence = torch.empty(blocks, len(inverse), len(targets))
    filled = 0
    every = [torch.zeros(shape, dtype=torch.float64) for shape in shapes]
    work = 2 * len(pieces[0]) * len(inverse) * (len(inverse) + 2 * len(targets))
    for added, spread in shared(summed, pieces, work):
        influence[filled : filled + len(added)] = added
        filled += len(added)
        for total, part in zip(every, spread, strict=True):
            total += part
    return [
        _Class(g, _by_target(coefficients[r]), s, influence[:, r].permute(3, 1, 2, 0))
        for g, r, s in zip(kinds, rows, every, strict=True)
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
    each = [h.index_select(1, feature) for feature in chosen.T]  # (window, group)
    for i, j in combinations_with_replacement(range(len(each)), 2):
        part = weights.T @ (each[i] * each[j])
        total[..., i, j] += part
        if i != j:
            total[..., j, i] += part


def _varying(rows: Tensor, varying: Tensor) -> Tensor:
    return rows[varying[rows]]


def wald_p_values(design: Array, targets: Array, groups: int, size: int) -> Array:
    """HC3 tests of `groups` groups of `size` columns each, from the first column on.

    design (window, column), targets (window, target) -> (target, group).
    """
    scaled = design / np.maximum(np.sqrt((design**2).mean(0)), 1e-300)
    inverse = pseudo_inverse(scaled.T @ scaled)
    influence = scaled @ inverse  # (window, column)
    leverage = (influence * scaled).sum(1, keepdims=True)
    coefficients = influence.T @ targets  # (column, target)
    errors = targets - scaled @ coefficients
    errors /= 1 - np.minimum(leverage, LARGEST_LEVERAGE)
    weights = errors**2
    freedom = max(len(design) - design.shape[1], 1)
    own = [np.ascontiguousarray(influence[:, k : groups * size : size]) for k in range(size)]
    blocks = np.empty((targets.shape[1], groups, size, size))
    for i, j in combinations_with_replacement(range(size), 2):
        blocks[..., i, j] = blocks[..., j, i] = weights.T @ (own[i] * own[j])
    trace = np.trace(blocks, axis1=2, axis2=3)[..., None, None]
    blocks = blocks + (1e-10 * trace + 1e-300) * np.eye(size)
    beta = coefficients[: groups * size].T.reshape(-1, groups, size)
    return f_p_values(wald_statistic(blocks, beta) / size, size, freedom)


def f_p_values(statistic: Array, size: int, freedom: int) -> Array:
    """Chance that an F statistic of `size` and `freedom` degrees is larger than these."""
    return np.asarray(fdtrc(size, freedom, np.maximum(statistic, 0.0)))


def f_statistic(p_values: Array, size: int, freedom: int) -> Array:
    """The F statistics that have these p-values; no statistic has the p-value 0."""
    share = betaincinv(freedom / 2, size / 2, p_values)
    with np.errstate(divide="ignore"):
        return np.asarray(freedom / size * (1 / share - 1))

"""Wald tests with an HC3 covariance: valid where the variance of the noise differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, fdtrc

from forecause.common.work_sharing import shared
from forecause.regression.least_squares import pseudo_inverse, solve_many, wald
from forecause.regression.moments import BATCH, Batch, Moments, with_intercept
from forecause.regression.sample import Design, Sample, pieces

# Time and memory:
NUMBERS = 8_000_000  # held at once while products are summed

# Numerics:
LARGEST_LEVERAGE = 0.99

# Shape of the model:
BLOCKS = 40  # of time, which resampling keeps whole

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Single = npt.NDArray[np.float32]


@dataclass(frozen=True)
class _Class:
    """Groups of equally many features; all arrays are over (target, group, feature, ...)."""

    groups: Index  # (group,) their places among all groups
    beta: Array
    covariance: Array  # (target, group, feature, feature)
    influence: Single  # (target, group, feature, block): what each block adds

    def p_values(self, freedom: int) -> Array:
        """Of no effect, (target, group)."""
        size = self.beta.shape[-1]
        return f_p_values(wald(self.covariance, self.beta) / size, size, freedom)

    def stability(self, weights: Array, levels: Array, freedom: int) -> Array:
        """Share of resamples with weights (block, draw) whose p-value is at most the target's
        level (target,), (target, group): those whose statistic reaches the level's own."""
        size = self.beta.shape[-1]
        least = size * f_statistic(levels, size, freedom)
        numbers = self.beta[0].size * weights.shape[1]
        parts = []
        for some in pieces(np.arange(len(self.beta)), max(1, NUMBERS // numbers)):
            moved = self.influence[some].astype(np.float64) @ weights + self.beta[some, ..., None]
            statistic = (moved * solve_many(self.covariance[some], moved)).sum(-2)
            parts.append((statistic >= least[some, None, None]).mean(-1))
        return np.concatenate(parts)


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
        members = [rows[varying[rows]] for rows in (g + 1 for g in design.groups)]
        classes = _classes(sample, design, moments, targets, members)
        return cls((len(targets), len(members)), tuple(classes), freedom)

    @property
    def p_values(self) -> Array:
        p_values = np.ones(self.shape)
        for one in self.classes:
            p_values[:, one.groups] = one.p_values(self.freedom)
        return p_values

    def stability(self, levels: Array, draws: int, rng: np.random.Generator) -> Array:
        """Share of resamples of time with p-value <= levels (target,), (target, group).

        Blocks of time are drawn with replacement; coefficients follow by their influence, to first
        order, which needs no refit.
        """
        shares = np.zeros(self.shape)
        for one in self.classes:
            blocks = one.influence.shape[-1]
            counts = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=draws)
            weights = counts.astype(np.float64) - 1.0
            shares[:, one.groups] = one.stability(weights.T, levels, self.freedom)
        return shares


def batches_of_sample(sample: Sample, design: Design, targets: Sequence[int]) -> Iterator[Batch]:
    """Features of the windows in a sample, and the target columns that they are to explain."""
    for rows in sample.batches(BATCH):
        yield design.features(rows), sample.following(rows, targets)


def _classes(
    sample: Sample,
    design: Design,
    moments: Moments,
    targets: Sequence[int],
    members: Sequence[Index],
) -> list[_Class]:
    """Coefficients and HC3 covariance of every group, those of one size together.

    With h and e of `hc3_terms`, the covariance is the sum of h h' e^2 and the influence of a block
    of time the sum of h e.
    """
    inverse = moments.inverse()
    coefficients = inverse @ moments.cross
    sizes = np.array([len(m) for m in members])
    kinds = [np.flatnonzero(sizes == size) for size in np.unique(sizes[sizes > 0])]
    rows = [np.stack([members[g] for g in groups.tolist()]) for groups in kinds]  # (group, feature)
    shapes = [(len(targets), *r.shape, r.shape[1]) for r in rows]
    widest = max([len(inverse), *(r.size * r.shape[1] for r in rows)])
    size = max(64, min(BATCH, NUMBERS // widest))

    length = max(1, -(-len(sample) // BLOCKS))  # of a block of time
    stretches = [p for part in sample.rows for p in pieces(part, length * max(1, size // length))]

    def summed(stretch: Single) -> tuple[Array, list[Array]]:
        """Of some blocks: sums of h e (block, feature, target), and of h h' e^2 for every size."""
        added = np.zeros((-(-len(stretch) // length), len(inverse), len(targets)))
        sums = [np.zeros(shape) for shape in shapes]
        for batch in pieces(stretch, size if size < length else len(stretch)):
            z = with_intercept(design.features(batch))
            h, errors = hc3_terms(z, sample.following(batch, targets), inverse, coefficients)
            by_block = zip(pieces(h, length), pieces(errors, length), strict=True)
            for place, (own, left) in enumerate(by_block):
                added[place] += own.T @ left
            for total, chosen in zip(sums, rows, strict=True):
                _add_weighted_products(total, h, chosen, np.square(errors))
        return added, sums

    blocks = sum(-(-len(part) // length) for part in sample.rows)
    influence = np.empty((blocks, len(inverse), len(targets)), dtype=np.float32)
    filled = 0
    every = [np.zeros(shape) for shape in shapes]
    work = 2 * len(stretches[0]) * len(inverse) * (len(inverse) + 2 * len(targets))
    for added, sums in shared(summed, stretches, work):
        influence[filled : filled + len(added)] = added
        filled += len(added)
        for total, part in zip(every, sums, strict=True):
            total += part
    betas = [np.ascontiguousarray(np.moveaxis(coefficients[r], 2, 0)) for r in rows]
    blocks_last = [influence[:, r].transpose(3, 1, 2, 0) for r in rows]
    return [_Class(*one) for one in zip(kinds, betas, every, blocks_last, strict=True)]


def hc3_terms(
    design: Array, targets: Array, inverse: Array, coefficients: Array
) -> tuple[Array, Array]:
    """h = (Z'Z)^-1 z (window, feature), and e = error / (1 - leverage) (window, target).

    Of design Z (window, feature), targets (window, target), inverse (Z'Z)^-1 and the coefficients
    (feature, target). HC3, the covariance of the coefficients whatever the variance of the noise
    (MacKinnon and White 1985), is the sum over windows of h h' e^2.
    """
    h = design @ inverse
    leverage = np.minimum(np.einsum("wf,wf->w", design, h), LARGEST_LEVERAGE)
    errors = targets - design @ coefficients
    errors /= 1 - leverage[:, None]
    return h, errors


def hc3_fit(design: Array, targets: Array) -> tuple[Array, Array, Array]:
    """Least squares coefficients (feature, target), and the terms of their HC3 covariance."""
    inverse = pseudo_inverse(design.T @ design)
    coefficients = inverse @ (design.T @ targets)
    return coefficients, *hc3_terms(design, targets, inverse, coefficients)


def _add_weighted_products(total: Array, h: Array, chosen: Index, weights: Array) -> None:
    """Add sum over windows of weight h h' to total (target, group, feature, feature).

    weights (window, target); the cheaper of two orders.
    """
    if weights.shape[1] == 1:
        own = h[:, chosen].swapaxes(0, 1)  # (group, window, feature)
        total[0] += (own * weights).swapaxes(1, 2) @ own
        return
    each = [h.take(feature, axis=1) for feature in chosen.T]  # (window, group)
    for i, j in combinations_with_replacement(range(len(each)), 2):
        part = weights.T @ (each[i] * each[j])
        total[..., i, j] += part
        if i != j:
            total[..., j, i] += part


def wald_p_values(design: Array, targets: Array, groups: int, size: int) -> Array:
    """HC3 tests of `groups` groups of `size` columns each, from the first column on.

    design (window, column), targets (window, target) -> (target, group).
    """
    scaled = design / np.maximum(np.sqrt((design**2).mean(0)), 1e-300)
    coefficients, h, errors = hc3_fit(scaled, targets)
    covariance = np.zeros((targets.shape[1], groups, size, size))
    chosen = np.arange(groups * size).reshape(groups, size)
    _add_weighted_products(covariance, h, chosen, np.square(errors))
    trace = np.trace(covariance, axis1=2, axis2=3)[..., None, None]
    covariance += (1e-10 * trace + 1e-300) * np.eye(size)
    beta = coefficients[: groups * size].T.reshape(-1, groups, size)
    freedom = max(len(design) - design.shape[1], 1)
    return f_p_values(wald(covariance, beta) / size, size, freedom)


def f_p_values(statistic: Array, size: int, freedom: int) -> Array:
    """Chance that an F statistic of `size` and `freedom` degrees is larger than these."""
    return np.asarray(fdtrc(size, freedom, np.maximum(statistic, 0.0)))


def f_statistic(p_values: Array, size: int, freedom: int) -> Array:
    """The F statistics that have these p-values; no statistic has the p-value 0."""
    share = betaincinv(freedom / 2, size / 2, p_values)
    with np.errstate(divide="ignore"):
        return np.asarray(freedom / size * (1 / share - 1))

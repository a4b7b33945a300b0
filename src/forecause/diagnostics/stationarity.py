"""Does the system stay the same? Tests of level, noise and effects over time, per variable."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import fdtrc, stdtr

from forecause.data.streams import batches_of, moments_of
from forecause.data.windows import Windows
from forecause.regression.least_squares import pseudo_inverse
from forecause.regression.moments import BATCH, Batch, Moments, unexplained
from forecause.regression.residuals import Array, Residuals

BLOCKS = 10  # per half; their spread says how much a half's mean varies by chance
ROWS_PER_BLOCK = 10
ROWS_PER_INPUT = 10  # in the whole data, before effects are compared between parts of it
MOST_INPUTS = 1000  # of a linear model of its own
UNIT_ROOT_T = -2.86  # Dickey-Fuller's 5 % point for a regression with a constant


@dataclass(frozen=True)
class Change:
    """How much something changed, and the p-value of no change; both (variable,)."""

    size: Array
    p_value: Array


def persistence(windows: Windows) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The sum of each variable's autoregressive coefficients, and whether 1 fits as well.

    An augmented Dickey-Fuller regression whose lags are those of the window:
    x_t = c + rho x_{t-1} + sum over k of d_k (x_{t-k} - x_{t-k-1}).
    """
    steps, variables = windows.shape
    rho, t = np.zeros(variables), np.full(variables, -np.inf)
    if len(windows) <= steps + 2:
        return rho, t > UNIT_ROOT_T
    gram, cross, square = _autoregression(windows)
    inverse = pseudo_inverse(gram)
    coefficients = np.einsum("vij,vj->vi", inverse, cross)
    fitted = np.einsum("vi,vij,vj->v", coefficients, gram, coefficients)
    left = square - 2 * (coefficients * cross).sum(1) + fitted
    variance = np.maximum(left, 0) / (len(windows) - steps - 1)
    rho = coefficients[:, 1]
    t = (rho - 1) / np.sqrt(np.maximum(variance * inverse[:, 1, 1], 1e-300))
    return rho, t > UNIT_ROOT_T


def _autoregression(windows: Windows) -> tuple[Array, Array, Array]:
    """Sums of products of each variable's own past (1, x_{t-1}, differences) and x_t.

    (variable, term, term), (variable, term) and (variable,). They follow from the moments of the
    past itself: x_{t-1} and the differences are linear in it.
    """
    steps, _ = windows.shape
    terms = np.zeros((steps + 1, steps + 1))  # (term, intercept and own step, oldest first)
    terms[0, 0] = terms[1, steps] = 1.0
    terms[2:, 1:] = np.diff(np.eye(steps), axis=0)
    own = (  # a regression for every variable, (variable, window, step)
        (window.past.double().permute(2, 0, 1), window.target.double().T[..., None])
        for window in windows.batches(BATCH)
    )
    found = Moments.summed(own)
    gram, cross, square = (part.numpy() for part in (found.gram, found.cross, found.square))
    return terms @ gram @ terms.T, cross[..., 0] @ terms.T, square[:, 0]


def level_change(windows: Windows) -> Change:
    """Difference of the means of the later and the earlier half, in standard deviations."""
    halves = [half.targets() for half in windows.split(0.5)]
    early, late = (_block_means(half) for half in halves)
    return Change(halves[1].mean(0) - halves[0].mean(0), _p_values(early, late))


def noise_change(windows: Windows, residuals: Residuals) -> Change:
    """Ratio of the later half's to the earlier half's variance around one linear model, or around
    the forecaster, whose residuals these are, where inputs are too many for another fit."""
    if windows.inputs > MOST_INPUTS:
        halves = [residuals.at(half.rows) ** 2 for half in windows.split(0.5)]
    else:
        coefficients = moments_of(windows).solve()
        halves = [_left(half, coefficients) ** 2 for half in windows.split(0.5)]
    early, late = (np.log(np.maximum(_block_means(half), 1e-12)) for half in halves)
    ratio = halves[1].mean(0) / np.maximum(halves[0].mean(0), 1e-12)
    return Change(ratio, _p_values(early, late))


def effect_change(windows: Windows, residuals: Residuals) -> Change:
    """Share of the unexplained variance that goes if each part of the data has its own linear
    model of the residuals (Chow's test): quarters where there are rows for it, otherwise halves.

    Of the residuals: a curved system that visits other places looks changed to a line alone.
    """
    steps, variables = windows.shape
    inputs, count = steps * variables + 1, len(windows)
    none = Change(np.zeros(variables), np.ones(variables))
    if count < ROWS_PER_INPUT * inputs:
        return none
    halves = windows.split(0.5)
    quarters = [part for half in halves for part in half.split(0.5)]
    parts = quarters if count >= 4 * ROWS_PER_INPUT * inputs else list(halves)
    moments = [_residual_moments(part, residuals) for part in parts]
    if min(int(m.count) for m in moments) <= inputs:  # many short series may be split unevenly
        return none
    apart = sum(m.loss(m.solve()).numpy() * int(m.count) for m in moments)
    together = Moments.added(moments)
    joint = together.loss(together.solve()).numpy() * count
    more, freedom = (len(parts) - 1) * inputs, count - len(parts) * inputs
    apart = np.maximum(apart, 1e-12 * count)
    f = np.maximum(joint - apart, 0) / more / (apart / freedom)
    share = 1 - (apart / freedom) / (joint / (count - inputs))
    return Change(share, fdtrc(more, freedom, f))


def _residual_moments(windows: Windows, residuals: Residuals) -> Moments:
    """Moments of the linear regression of a forecaster's residuals on the past."""
    left = torch.from_numpy(residuals.at(windows.rows))

    def batches() -> Iterator[Batch]:
        done = 0
        for past, _ in batches_of(windows):
            yield past, left[done : done + len(past)]
            done += len(past)

    return Moments.summed(batches())


def _left(windows: Windows, coefficients: torch.Tensor) -> Array:
    """What a linear model leaves unexplained, (window, variable)."""
    return np.asarray(unexplained(batches_of(windows), coefficients).numpy())


def _block_means(values: Array) -> Array:
    """Means of consecutive blocks, (block, variable)."""
    return np.stack([block.mean(0) for block in np.array_split(values, BLOCKS)])


def _p_values(early: Array, late: Array) -> Array:
    """Welch's test between the blocks of two halves; blocks stand for independent looks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # blocks of a label that never change
        shares = [part.var(0, ddof=1) / len(part) for part in (early, late)]
        total = shares[0] + shares[1]
        squares = sum(s**2 / (len(p) - 1) for s, p in zip(shares, (early, late), strict=True))
        t = (early.mean(0) - late.mean(0)) / np.sqrt(total)
        p_values = 2 * stdtr(total**2 / squares, -np.abs(t))
    return np.asarray(np.nan_to_num(p_values, nan=1.0))


def enough_rows(windows: Windows) -> bool:
    """Whether the halves can be cut into blocks worth averaging."""
    return len(windows) >= 2 * BLOCKS * ROWS_PER_BLOCK

"""Does the system stay the same? Tests of level, noise and effects over time, per variable."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats

from forecause.data.windows import Windows
from forecause.forecast.forecaster import Forecaster
from forecause.regression.moments import Moments
from forecause.regression.residuals import Array, target_values

BLOCKS = 10  # per half; their spread says how much a half's mean varies by chance
ROWS_PER_BLOCK = 10
ROWS_PER_INPUT = 10  # in the whole data, before effects are compared between parts of it
NUMBERS = 2_000_000  # of windows held at once
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
    inverse = np.linalg.pinv(gram)
    coefficients = np.einsum("vij,vj->vi", inverse, cross)
    fitted = np.einsum("vi,vij,vj->v", coefficients, gram, coefficients)
    left = square - 2 * (coefficients * cross).sum(1) + fitted
    variance = np.maximum(left, 0) / (len(windows) - steps - 1)
    rho = coefficients[:, 1]
    t = (rho - 1) / np.sqrt(np.maximum(variance * inverse[:, 1, 1], 1e-300))
    return rho, t > UNIT_ROOT_T


def _autoregression(windows: Windows) -> tuple[Array, Array, Array]:
    """Sums of products of each variable's own past (1, x_{t-1}, differences) and x_t.

    (variable, term, term), (variable, term) and (variable,).
    """
    steps, variables = windows.shape
    gram = np.zeros((variables, steps + 1, steps + 1))
    cross, square = np.zeros((variables, steps + 1)), np.zeros(variables)
    for batch in windows.batches(max(64, NUMBERS // (steps * variables))):
        values = batch[..., :variables].double().numpy().transpose(2, 0, 1)  # (variable, window, .)
        past, following = values[:, :, :-1], values[:, :, -1]
        design = np.concatenate(
            [np.ones_like(past[:, :, :1]), past[:, :, -1:], np.diff(past, axis=2)], axis=2
        )
        gram += design.transpose(0, 2, 1) @ design
        cross += np.einsum("vnk,vn->vk", design, following)
        square += (following**2).sum(1)
    return gram, cross, square


def level_change(windows: Windows) -> Change:
    """Difference of the means of the later and the earlier half, in standard deviations."""
    halves = [target_values(half) for half in windows.split(0.5)]
    early, late = (_block_means(half) for half in halves)
    return Change(halves[1].mean(0) - halves[0].mean(0), _p_values(early, late))


def noise_change(windows: Windows) -> Change:
    """Ratio of the later half's to the earlier half's variance around one linear model."""
    coefficients = Moments.of(windows, _flat).solve()
    halves = [_linear_residuals(half, coefficients) ** 2 for half in windows.split(0.5)]
    early, late = (np.log(np.maximum(_block_means(half), 1e-12)) for half in halves)
    ratio = halves[1].mean(0) / np.maximum(halves[0].mean(0), 1e-12)
    return Change(ratio, _p_values(early, late))


def effect_change(windows: Windows, forecaster: Forecaster) -> Change:
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
    moments = [_residual_moments(part, forecaster) for part in parts]
    if min(m.count for m in moments) <= inputs:  # many short series may be split unevenly
        return none
    apart = sum(m.loss(m.solve()).numpy() * m.count for m in moments)
    together = Moments.added(moments)
    joint = together.loss(together.solve()).numpy() * count
    more, freedom = (len(parts) - 1) * inputs, count - len(parts) * inputs
    apart = np.maximum(apart, 1e-12 * count)
    f = np.maximum(joint - apart, 0) / more / (apart / freedom)
    share = 1 - (apart / freedom) / (joint / (count - inputs))
    return Change(share, stats.f.sf(f, more, freedom))


@torch.no_grad()
def _residual_moments(windows: Windows, forecaster: Forecaster) -> Moments:
    """Moments of the linear regression of the forecaster's residuals on the past."""
    steps, variables = windows.shape
    inputs = 1 + steps * variables
    total = Moments(
        len(windows),
        torch.zeros(inputs, inputs, dtype=torch.float64),
        torch.zeros(inputs, variables, dtype=torch.float64),
        torch.zeros(variables, dtype=torch.float64),
    )
    device = next(iter(forecaster.state_dict().values())).device
    for batch in forecaster.seen(windows).batches(2048):
        window = batch.to(device)
        left = (forecaster.following(window) - forecaster(window[:, :-1])).cpu().double()
        past = batch[:, :-1, :variables].double().flatten(1)
        rows = torch.cat([torch.ones(len(past), 1, dtype=past.dtype), past], dim=1)
        total.gram.addmm_(rows.T, rows)
        total.cross.addmm_(rows.T, left)
        total.square.add_(left.square().sum(0))
    return total


def _flat(past: torch.Tensor) -> torch.Tensor:
    return past.flatten(1)


def _linear_residuals(windows: Windows, coefficients: torch.Tensor) -> Array:
    parts = [
        batch[:, -1].double() - batch[:, :-1].double().flatten(1) @ coefficients[1:]
        for batch in windows.batches(4096)
    ]
    return np.asarray((torch.cat(parts) - coefficients[0]).numpy())


def _block_means(values: Array) -> Array:
    """Means of consecutive blocks, (block, variable)."""
    return np.stack([block.mean(0) for block in np.array_split(values, BLOCKS)])


def _p_values(early: Array, late: Array) -> Array:
    """Welch's test between the blocks of two halves; blocks stand for independent looks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # blocks of a label that never change
        p_values = stats.ttest_ind(early, late, equal_var=False).pvalue
    return np.asarray(np.nan_to_num(p_values, nan=1.0))


def enough_rows(windows: Windows) -> bool:
    """Whether the halves can be cut into blocks worth averaging."""
    return len(windows) >= 2 * BLOCKS * ROWS_PER_BLOCK

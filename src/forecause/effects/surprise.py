"""How unlike calm rows the rows of an event are, variable by variable, given what came before.

Each variable is forecast from its causes and its own past by lines that were fitted to calm rows.
Its innovation is what the forecast leaves, over the size that this has in calm blocks of time that
the fit did not see. What follows from another variable leaves no innovation: only where something
new enters does one appear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, log_ndtr, stdtr

from forecause.common.arrays import Array, Mask
from forecause.config.thresholds import thresholds
from forecause.regression.least_squares import ridge
from forecause.regression.sample import stretches

# Numerics:
SMALL_RIDGE = 1e-4  # per row
LARGEST = 300.0  # -log10 of the smallest p-value


@dataclass(frozen=True, eq=False)
class Normal:
    """What calm rows are like: the forecast of every column, and the size of its error."""

    causes: Mask  # (column, step * column), own lags among them
    intercept: Array  # (column,)
    weight: Array  # (column, step * column)
    sd: Array  # (column,) of errors in blocks that the fit did not see
    errors: Array  # (window, column), in these sds; NaN where the value was not observed

    @classmethod
    def of(
        cls,
        past: Array,
        targets: Array,
        causes: Mask,
        observed: Mask | None = None,
        least_sd: Array | None = None,
    ) -> Normal:
        """From calm windows, in time order: past (window, step * column), targets (window, column).

        `observed` (window, column) is False where a target was filled. `least_sd` (column,) is the
        spread that a column has at least, in sds of the column: its errors grow in proportion.
        """
        columns = targets.shape[1]
        intercept, weight = np.zeros(columns), np.zeros((columns, past.shape[1]))
        errors = np.full(targets.shape, np.nan)
        for column in range(columns):
            kept = np.ones(len(past), bool) if observed is None else observed[:, column]
            design = np.column_stack([np.ones(len(past)), past[:, causes[column]]])
            values = targets[:, column]
            rows = np.flatnonzero(kept)
            penalty = np.full(design.shape[1], SMALL_RIDGE * len(rows))
            penalty[0] = 0.0
            whole = ridge(design[rows], values[rows], penalty + 1e-9)
            intercept[column], weight[column, causes[column]] = whole[0], whole[1:]
            for block in stretches(len(rows), thresholds().events.calm_parts):
                others = np.delete(rows, block)
                fitted = ridge(design[others], values[others], penalty + 1e-9)
                left_out = rows[block]
                errors[left_out, column] = values[left_out] - design[left_out] @ fitted
        sd = np.sqrt(np.maximum(np.nanmean(errors**2, axis=0), 1e-12))
        if least_sd is not None:
            sd = sd * np.maximum(least_sd, 1.0)
        return cls(causes, intercept, weight, sd, errors / sd)

    def innovations(self, past: Array, rows: Array) -> tuple[Array, Array]:
        """Of rows (row, column) after past (step, column): e (row, column), NaN where nothing was
        observed; and the rows with what was missing replaced by its forecast."""
        steps = len(past)
        whole = np.concatenate([past, rows])
        found = np.full(rows.shape, np.nan)
        for row in range(len(rows)):
            before = whole[row : row + steps].ravel()
            told = self.intercept + self.weight @ np.nan_to_num(before)
            now = whole[row + steps]
            absent = np.isnan(now)
            found[row] = (now - told) / self.sd
            now[absent] = told[absent]
        return found, whole

    @property
    def kurtosis(self) -> Array:
        """Of the calm errors, (column,), at least 1.5; 3 for a normal one."""
        fourth, second = (np.nanmean(self.errors**power, axis=0) for power in (4, 2))
        return np.maximum(fourth / np.maximum(second**2, 1e-12), 1.5)


def evidence(normal: Normal, innovations: Array, whole: Array, steps: int) -> Array:
    """The largest -log10 p of four tests per column: of the mean, of the variance, of a lost
    dependence on a cause, and of a new one on any lagged column."""
    rows, columns = innovations.shape
    lagged = np.concatenate([whole[step : step + rows] for step in range(steps)], axis=1)
    found = np.zeros(columns)
    kurtosis = normal.kurtosis
    for column in range(columns):
        known = np.isfinite(innovations[:, column])
        left = innovations[known, column]
        if len(left) < 2:
            continue
        tests = [_of_mean(left), _of_variance(left, kurtosis[column])]
        inputs = lagged[known]
        others = np.flatnonzero(normal.causes[column])
        others = others[others % columns != column]
        told = inputs[:, others] * (normal.weight[column, others] / normal.sd[column])
        tests.append(_of_lost(left, told))
        tests.append(_of_any(left, inputs))
        found[column] = max(tests)
    return np.minimum(found, LARGEST)


def evidence_alone(off: Array) -> Array:
    """The same of columns (row, column) that never move in calm rows: of mean and variance."""
    found = np.zeros(off.shape[1])
    for column, values in enumerate(off.T):
        left = values[np.isfinite(values)]
        if len(left) > 1:
            found[column] = max(_of_mean(left), _of_variance(left, 3.0))
    return np.minimum(found, LARGEST)


def _of_mean(left: Array) -> float:
    return float(-(log_ndtr(-np.sqrt(len(left)) * abs(left.mean())) + np.log(2)) / np.log(10))


def _of_variance(left: Array, kurtosis: float) -> float:
    freedom = 2 * len(left) / (kurtosis - 1)
    return _minus_log(chdtrc(freedom, freedom * np.mean(left**2)))


def _of_lost(left: Array, told: Array) -> float:
    """Whether innovations take back what a cause told (row, cause): its link would be lost."""
    size = np.sqrt((told**2).sum(0) * max(float(np.mean(left**2)), 1e-12))
    z = -(left @ told) / np.maximum(size, 1e-12)
    if not len(z):
        return 0.0
    return max(float(-log_ndtr(-z.max()) / np.log(10) - np.log10(len(z))), 0.0)


def _of_any(left: Array, inputs: Array) -> float:
    """The largest t of the innovations on one lagged column, times the number of columns."""
    freedom = len(left) - 2
    spread = inputs.std(0)
    if freedom < 5 or not (spread > 1e-9).any() or left.std() == 0:
        return 0.0
    some = inputs[:, spread > 1e-9]
    r = np.abs((some - some.mean(0)).T @ (left - left.mean()))
    r /= len(left) * some.std(0) * left.std()
    t = float(np.max(r / np.sqrt(np.maximum(1 - r**2, 1e-12) / freedom)))
    return max(_minus_log(2 * stdtr(freedom, -t)) - float(np.log10(some.shape[1])), 0.0)


def _minus_log(p: float) -> float:
    return float(-np.log10(max(float(p), 10.0**-LARGEST)))


def joint_rank(size: Array, proof: Array, rows: int) -> Array:
    """The mean of the ranks by size and by evidence, from 0 to 1 (first); by size alone where there
    are few rows. Ties of the evidence go by size."""
    count = len(size)
    by_size = _ranks(size)
    if rows < thresholds().events.least_rows_to_test:
        return np.asarray(by_size / count)
    return np.asarray((by_size + _ranks(proof) + 1e-3 * by_size) / (count * 2.001))


def _ranks(values: Array) -> Array:
    """From 1 for the smallest; equal values share their mean rank."""
    order = np.sort(values)
    below, up_to = (np.searchsorted(order, values, side) for side in ("left", "right"))
    return np.asarray((below + 1 + up_to) / 2)


def conformal_p_value(calm: Array, event: Array) -> tuple[float | None, int]:
    """The share of calm blocks as long as the event that are at least as unlike the rest.

    calm (window, column) and event (row, column) are innovations. The event counts as one of the
    blocks, also for the scales, so that it is one of equals if it is calm. None where there are
    fewer than 19 calm blocks, so that no p-value could reach 5 %; and the number of blocks.
    """
    length = len(event)
    count = len(calm) // max(length, 1)
    if count < thresholds().events.least_calm_blocks:
        return None, count
    last = calm[len(calm) - count * length :]
    blocks = np.concatenate([last.reshape(count, length, -1), event[None]])
    known = np.maximum(np.isfinite(blocks).sum(1), 1)
    means = np.nansum(blocks, axis=1) / known
    squares = np.nansum(blocks**2, axis=1) / known
    statistics = []
    for values in (means, squares):
        centre = np.zeros(values.shape[1]) if values is means else values.mean(0)
        scale = np.sqrt(np.mean((values - centre) ** 2, axis=0))
        statistics.append(np.abs(values - centre) / np.maximum(scale, 1e-12))
    loudest = np.maximum(*statistics).max(axis=1)  # (block,), the event last
    return float(np.mean(loudest >= loudest[-1])), count

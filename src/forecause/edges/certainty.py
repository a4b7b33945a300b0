"""How sure an edge is: its own evidence, and how it survives other reasonable analyses.

An edge that one test chose is tested again in closed form: in each half of time, beside older lags
and slow averages of all variables, and with lines as well as with curves. The certainty is a number
in [0, 1], roughly the chance that the edge is true; its grade is firm, likely or tentative. An edge
is firm only if it holds beside the slow averages, which stand for a driver that was not recorded,
and in calm windows alone, where no event reaches all variables at once, if neither of its variables
moves together with others within a row, and if it looks like nothing else; see `lookalikes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from forecause.common.work_sharing import shared
from forecause.config.thresholds import thresholds
from forecause.data.variables import Variables
from forecause.data.windows import Windows
from forecause.edges.lookalikes import echoes, only_surprises
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause.regression.least_squares import KnownFeatures
from forecause.regression.residuals import Residuals
from forecause.regression.robust import wald_p_values
from forecause.regression.splines import curve_features

# Time and memory:
MOST_AVERAGED_ROWS = 50_000  # of a table; averages of a longer one take too long
MOST_RETESTED_WINDOWS = 10_000  # looked at
MOST_INPUTS = 400  # with more, an edge's own q-value decides alone
MOST_CURVES = 120  # inputs that curves are tried of

# Shape of the model:
LONGER_BY = 3  # lags that the longer window has more
DECAYS = (0.8, 0.95)  # of the slow averages
KNOT_QUANTILES = (0.05, 0.35, 0.65, 0.95)
CURVE_FEATURES = len(KNOT_QUANTILES) - 1  # numbers of a curve

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Grade = Literal["firm", "likely", "tentative"]


def certainty(windows: Windows, q_values: xr.DataArray) -> xr.DataArray:
    """A number in [0, 1] for every candidate (target, source, lag); NaN where it is untested."""
    own = _evidence(q_values.values)
    half = longer = model = calm = own
    if windows.inputs <= MOST_INPUTS and len(windows) > 2 * windows.inputs:
        looked = windows.thin(MOST_RETESTED_WINDOWS)
        early, late = looked.split(0.5)
        tests: tuple[Callable[[], Any], ...] = (
            partial(_p_values, looked, False),
            partial(_p_values, looked, True),
            partial(_longer, looked),
            partial(_either, early),
            partial(_either, late),
            partial(_either, looked.calm),
        )
        work = 2.0 * len(looked) * (CURVE_FEATURES * looked.inputs) ** 2
        line, curve, beside, *parts = shared(lambda test: test(), tests, work)
        model = np.minimum(_evidence(line), _evidence(curve))
        longer = _evidence(_smaller(line, curve) if beside is None else beside)
        early_half, late_half, calm = map(_evidence, parts)
        half = np.minimum(early_half, late_half)
    bounds = thresholds().grades
    total = bounds.intercept + bounds.own_weight * own + bounds.half_weight * half
    total += bounds.longer_weight * longer + bounds.model_weight * model
    sure = 1 / (1 + np.exp(-total))
    held = longer >= float(_evidence(np.array(bounds.firm_beside_slow)))
    held &= calm >= float(_evidence(np.array(bounds.firm_in_calm)))
    held &= ~_move_together(windows) & ~_look_like_something_else(windows, q_values.values)
    sure = np.where(held, sure, np.minimum(sure, bounds.firm - 0.01))
    return q_values.copy(data=np.where(np.isfinite(q_values.values), sure, np.nan))


def gone_in_calm(windows: Windows, among: Mask) -> Mask:
    """Those of some inputs (target, source, lag) that all windows show clearly, and calm ones not
    at all."""
    if windows.inputs > MOST_INPUTS or len(windows) <= 2 * windows.inputs:
        return np.zeros_like(among)
    looked, bounds = windows.thin(MOST_RETESTED_WINDOWS), thresholds().diagnosis
    gone = among & (_either(looked.calm) > bounds.gone_in_calm)
    return gone & (_either(looked) < bounds.clear_with_events) if gone.any() else gone


def grade(sure: float) -> Grade:
    """The word for a certainty."""
    if sure >= thresholds().grades.firm:
        return "firm"
    return "likely" if sure >= thresholds().grades.likely else "tentative"


def with_grades(
    graph: LaggedGraph, doubted: Callable[[LaggedGraph], pd.Series[bool]]
) -> LaggedGraph:
    """The graph with a grade for every edge, tentative where it is `doubted` (edge,)."""

    def graded(part: LaggedGraph) -> pd.DataFrame:
        edges = part.edges
        if "certainty" not in edges:
            return edges
        doubts = doubted(part)
        words = [
            "tentative" if doubt else grade(sure)
            for sure, doubt in zip(edges["certainty"], doubts, strict=True)
        ]
        return edges.assign(grade=pd.Series(words, index=edges.index, dtype=object))

    parts = {name: replace(part, edges=graded(part)) for name, part in graph.domains.items()}
    return replace(graph, edges=graded(graph), domains=parts)


def _evidence(p_values: Array) -> Array:
    """Square root of the powers of ten, about proportional to a t-value."""
    least = 10 ** -thresholds().grades.most_powers
    powers = -np.log10(np.clip(np.nan_to_num(p_values, nan=1.0), least, 1.0))
    return np.asarray(np.sqrt(powers))


def _either(windows: Windows) -> Array:
    """The smaller p-value of lines and curves, times two."""
    return _smaller(_p_values(windows, False), _p_values(windows, True))


def _smaller(line: Array, curve: Array) -> Array:
    return line if curve is line else np.minimum(2 * np.minimum(line, curve), 1.0)


def _longer(looked: Windows) -> Array | None:
    """p-values beside lags before the window and slow averages; None where there are too few such
    rows."""
    try:
        every = Windows.of(looked.panel, looked.max_lag + LONGER_BY)
    except InputError:
        return None
    kept = every.at(np.flatnonzero(np.isin(every.rows, looked.rows)))
    slow = slow_averages(kept)
    if len(kept) <= 2 * (kept.inputs + slow.shape[1]):
        return None
    lines, curves = (_p_values(kept, curved, looked.max_lag, slow) for curved in (False, True))
    return _smaller(lines, curves)


def slow_averages(windows: Windows) -> Array:
    """Exponential means of every column over the rows before each window, (window, decay * column).

    Means of the window itself would repeat the lags that are tested. None of very long tables. A
    missing cell leaves its mean as it is.
    """
    panel = windows.panel
    if panel.rows > MOST_AVERAGED_ROWS:
        return np.zeros((len(windows), 0))
    values = np.asarray(panel.values, dtype=np.float64)
    centre = np.nanmean(values, axis=0)
    starts, decays = set(panel.starts.tolist()), np.array(DECAYS)[:, None]
    means = np.empty((panel.rows, len(DECAYS), values.shape[1]))
    mean = np.zeros(means.shape[1:])
    for row, now in enumerate(values - centre):
        mean = np.zeros_like(mean) if row in starts else mean
        means[row] = mean
        mean = np.where(np.isfinite(now), decays * mean + (1 - decays) * now, mean)
    return np.asarray(means[windows.rows - windows.max_lag].reshape(len(windows), -1))


def _look_like_something_else(windows: Windows, q_values: Array) -> Mask:
    """Edges (target, source, lag) that a shock from elsewhere or lingering noise may imitate."""
    bounds = thresholds().grades
    plausible = np.nan_to_num(q_values, nan=1.0) < bounds.plausible_q
    surprises = only_surprises(windows, plausible, bounds.firm_surprise, bounds.firm_value)
    return surprises | echoes(windows, plausible, bounds.firm_echo)


def _move_together(windows: Windows) -> Mask:
    """Edges (target, source, lag) between two variables of which one has residuals that move
    together with another's; all of them, where all other pairs taken as one do so."""
    coding, bounds = windows.panel.coding, thresholds().diagnosis
    count = len(coding.variables)
    shape = (count, count, windows.max_lag)
    if windows.inputs > MOST_INPUTS or len(windows) <= 2 * windows.inputs:
        return np.zeros(shape, dtype=bool)
    batch = windows.thin(MOST_RETESTED_WINDOWS).whole()
    past = batch.past.reshape(len(batch.past), -1).astype(np.float64)
    design = np.column_stack([past, np.ones(len(past))])
    left = KnownFeatures.of(design).taken_off(batch.target.astype(np.float64))
    residuals = Residuals.of(left, np.arange(len(left)), np.zeros(1, dtype=np.int64))
    correlation, p_values = residuals.correlation(0, bounds.least_correlation)
    level = bounds.level / max(count * (count - 1) // 2, 1)
    pairs = (np.abs(correlation) > bounds.least_correlation) & (p_values < level)
    of_column = coding.of_column
    pairs &= of_column[:, None] != of_column
    moves = np.isin(np.arange(count), of_column[pairs.any(0)])
    together = (moves[:, None] | moves) & ~np.eye(count, dtype=bool)
    if len(coding.numeric_columns) > 2:
        as_one = residuals.together(coding.numeric_columns, windows.inputs, pairs)
        if as_one.p_value < thresholds().grades.firm_together:
            together = ~np.eye(count, dtype=bool)
    return np.broadcast_to(together[:, :, None], shape)


def _p_values(
    windows: Windows, curved: bool, max_lag: int | None = None, slow: Array | None = None
) -> Array:
    """HC3 tests of every input given all others, (target, source, lag) of variables.

    Lags beyond `max_lag` and `slow` (window, feature) stand beside the inputs and are not tested.
    Curves fall back to lines where there are too few windows for them.
    """
    lag, columns = max_lag or windows.max_lag, windows.shape[1]
    inputs = lag * columns
    curved = curved and inputs <= MOST_CURVES
    enough = thresholds().grades.windows_per_feature * CURVE_FEATURES * inputs
    curved = curved and len(windows) >= enough
    batch = windows.whole()
    past = batch.past[:, ::-1].astype(np.float64)  # (window, lag, column), the latest first
    features = curve_features(past[:, :lag], KNOT_QUANTILES) if curved else past[:, :lag, :, None]
    tested = features.reshape(len(past), -1)
    beside = [past[:, lag:].reshape(len(past), -1), *([] if slow is None else [slow])]
    design = np.hstack([tested, np.ones((len(past), 1)), *beside])
    found = wald_p_values(design, batch.target.astype(np.float64), inputs, features.shape[-1])
    by_column = found.reshape(columns, lag, columns).transpose(0, 2, 1)
    return _of_variables(by_column, windows.panel.coding)


def _of_variables(p_values: Array, coding: Variables) -> Array:
    """p-values of columns as those of variables: of labels the smallest, times their number."""
    if not coding.labels:
        return p_values
    count = len(coding.variables)
    found = np.ones((count, count, p_values.shape[2]))
    for target, source in np.ndindex(count, count):
        block = p_values[np.ix_(coding.columns(target), coding.columns(source))]
        tests = block.shape[0] * block.shape[1]
        found[target, source] = np.minimum(block.min((0, 1)) * tests, 1.0)
    return found

"""How sure an edge is: its own evidence, and how it survives other reasonable analyses.

An edge that one test chose is tested again in closed form: in each half of time, with a longer
window, and with lines as well as with curves. The certainty is a number in [0, 1], roughly the
chance that the edge is true; its grade is firm, likely or tentative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from forecause.config.thresholds import thresholds
from forecause.data.variables import Variables
from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause.regression.robust import wald_p_values
from forecause.regression.splines import curve_features

LONGER_BY = 3  # lags that the longer window has more
WINDOWS_PER_FEATURE = 4  # with fewer, curves are not tried in a re-test
MOST_RETESTED_WINDOWS = 10_000  # looked at
MOST_INPUTS = 400  # with more, an edge's own q-value decides alone
MOST_CURVES = 120  # inputs that curves are tried of
KNOT_QUANTILES = (0.05, 0.35, 0.65, 0.95)
CURVE_FEATURES = len(KNOT_QUANTILES) - 1  # numbers of a curve
# Weights of the evidence of each analysis, square roots of powers of ten, by logistic regression
# over chosen edges of simulated, seasonal and unlinked systems.

Array = npt.NDArray[np.float64]
Grade = Literal["firm", "likely", "tentative"]


def certainty(windows: Windows, q_values: xr.DataArray) -> xr.DataArray:
    """A number in [0, 1] for every candidate (target, source, lag); NaN where it is untested."""
    own = _evidence(q_values.values)
    half = longer = model = own
    if windows.inputs <= MOST_INPUTS and len(windows) > 2 * windows.inputs:
        looked = windows.thin(MOST_RETESTED_WINDOWS)
        early, late = looked.split(0.5)
        line, curve = _p_values(looked, False), _p_values(looked, True)
        model = np.minimum(_evidence(line), _evidence(curve))
        half = np.minimum(_evidence(_either(early)), _evidence(_either(late)))
        longer = _evidence(_longer(looked, _smaller(line, curve)))
    bounds = thresholds().grades
    total = bounds.intercept + bounds.own_weight * own + bounds.half_weight * half
    total += bounds.longer_weight * longer + bounds.model_weight * model
    sure = 1 / (1 + np.exp(-total))
    return q_values.copy(data=np.where(np.isfinite(q_values.values), sure, np.nan))


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


def _longer(looked: Windows, usual: Array) -> Array:
    """p-values beside lags before the window, as they are where there are too few such rows."""
    try:
        every = Windows.of(looked.panel, looked.max_lag + LONGER_BY)
    except InputError:
        return usual
    kept = every.at(np.flatnonzero(np.isin(every.rows, looked.rows)))
    if len(kept) <= 2 * kept.inputs:
        return usual
    lines, curves = (_p_values(kept, curved, looked.max_lag) for curved in (False, True))
    return _smaller(lines, curves)


def _p_values(windows: Windows, curved: bool, max_lag: int | None = None) -> Array:
    """HC3 tests of every input given all others, (target, source, lag) of variables.

    Lags beyond `max_lag` stand beside the inputs and are not tested. Curves fall back to lines
    where there are too few windows for them.
    """
    lag, columns = max_lag or windows.max_lag, windows.shape[1]
    inputs = lag * columns
    curved = curved and inputs <= MOST_CURVES
    curved = curved and len(windows) >= WINDOWS_PER_FEATURE * CURVE_FEATURES * inputs
    batch = windows.whole()
    past = batch.past[:, ::-1].astype(np.float64)  # (window, lag, column), the latest first
    features = curve_features(past[:, :lag], KNOT_QUANTILES) if curved else past[:, :lag, :, None]
    tested = features.reshape(len(past), -1)
    beside = past[:, lag:].reshape(len(past), -1)
    design = np.hstack([tested, np.ones((len(past), 1)), beside])
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

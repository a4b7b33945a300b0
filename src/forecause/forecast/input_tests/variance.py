"""Does an input change the spread of a target? Closed-form tests of every (target, source, lag)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forecause.arrays import Array, Index
from forecause.config.thresholds import thresholds
from forecause.data.streams import inputs_of, moments_of, place_knots
from forecause.data.variables import Inputs, groups_of
from forecause.data.windows import Windows
from forecause.forecast.input_tests.designs import KNOTS
from forecause.regression.moments import Moments, with_intercept
from forecause.regression.splines import spline_terms

SMALLEST = 1e-4  # squared error, relative to its mean, below which its logarithm is not trusted


def variance_p_values(windows: Windows) -> Array:
    """P-value that an input leaves a target's variance alone given all others.

    Splines of all inputs take out the mean; the log squared errors that remain are regressed on
    the same basis, one F-test over all terms of an input. The result is (target, source, lag).
    A label has no variance besides its mean: 1 for such a target.
    """
    inputs = inputs_of(windows)
    design, groups = _basis(windows, inputs)
    mean = moments_of(windows, design)
    log_squares = moments_of(windows, design, _LogSquares(mean, design))
    p_values = log_squares.group_p_values(groups)[inputs.coding.first]
    for label in inputs.coding.labels:
        p_values[inputs.coding.variables.index(label.name)] = 1.0
    return inputs.by_lag(p_values)


def _basis(windows: Windows, inputs: Inputs) -> tuple[Callable[[Array], Array], list[Index]]:
    """Splines of all inputs, or lines where windows are few, and the features of each input."""
    terms, count = KNOTS - 1, inputs.steps * inputs.variables
    places, owner = inputs.places(np.arange(count))
    if len(windows) < thresholds().tests.windows_per_term * windows.inputs * terms:
        return lambda past: past.reshape(len(past), -1)[:, places], groups_of(owner, count)
    knots = place_knots(windows, KNOTS).astype(np.float64)
    kept = (places[:, None] * terms + np.arange(terms)).ravel()

    def curves(past: Array) -> Array:
        return spline_terms(past, knots).reshape(len(past), -1)[:, kept]

    return curves, groups_of(owner.repeat(terms), count)


class _LogSquares:
    """Past and target of a batch of windows -> log squared errors (batch, variable)."""

    def __init__(self, mean: Moments, design: Callable[[Array], Array]) -> None:
        self.design = design
        self.coefficients = mean.solve()
        self.inverse = mean.inverse()
        self.floor = SMALLEST * mean.loss(self.coefficients)

    def __call__(self, past: Array, target: Array) -> Array:
        rows = with_intercept(self.design(past))
        squares = (target - rows @ self.coefficients) ** 2
        # A fitted error has variance 1 - leverage, so an unusual past would look calm.
        leverage = (rows @ self.inverse * rows).sum(1, keepdims=True)
        return np.asarray(np.log(squares / np.maximum(1 - leverage, 1e-3) + self.floor))

"""Which forecaster a target keeps, and the tests of that one.

Asked for by name, a forecaster is kept by every target and answers for itself. With `auto` a target
keeps, on evidence from blocks of time, lines, splines or products; dictionary and trees where
these forecast rows that they did not learn from clearly better; a network where it does so on the
held-out rows. What a target keeps decides its row of the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from forecause.common.arrays import Array, Index
from forecause.config.thresholds import thresholds
from forecause.data.variables import Inputs, groups_of
from forecause.data.windows import Windows, inputs_of, moments_of, place_knots
from forecause.errors import InputError
from forecause.forecast.forecaster import ENOUGH_WINDOWS
from forecause.forecast.input_tests.closed_form import closed_form_tests
from forecause.forecast.input_tests.designs import KNOTS
from forecause.forecast.input_tests.learned_evidence import combined_p_values
from forecause.forecast.input_tests.learner_tests import with_learners
from forecause.forecast.input_tests.protocol import InputTests, TestRequest
from forecause.forecast.input_tests.refits import LEAST_SQUARE, Refits
from forecause.forecast.means import JOINED
from forecause.forecast.selection import Fitted, affords_learners
from forecause.regression.moments import with_intercept
from forecause.regression.splines import spline_terms


def kept_tests(fitted: Fitted, request: TestRequest) -> InputTests:
    """The tests of what each target keeps."""
    if not fitted.is_auto:
        return fitted.forecaster.input_tests(request)
    tests = closed_form_tests(request)
    if request.head != "mse":
        return tests.with_variance(variance_p_values(request.windows))
    windows = min(len(request.windows), int(ENOUGH_WINDOWS * request.effort))
    if fitted.joint and affords_learners(request.windows.inputs, windows):
        request.progress.step("looking for what closed forms miss", 0.0)
        tests = with_learners(request, tests)
    return _with_networks(fitted, request, tests)


def untested_rule_tests(request: TestRequest) -> InputTests:
    """Tests beside a rule that goes by relevance alone; unknown (NaN) where rows are too few."""
    try:
        return closed_form_tests(request)
    except InputError:
        unknown = np.full(request.allowed.shape, np.nan)
        return InputTests(unknown, unknown, ("",) * len(unknown))


def _with_networks(fitted: Fitted, request: TestRequest, tests: InputTests) -> InputTests:
    """A target that a network forecasts clearly better keeps both, and both tests count.

    The network's are made on the held-out windows, which it did not learn from.
    """
    coding = request.windows.panel.coding
    for network, columns in fitted.networks_ahead().items():
        wins = np.isin(coding.first, sorted(columns))
        if not wins.any():
            continue
        own = Refits((network,), (fitted.early.rows,), (fitted.late.rows,)).tests(request)
        both = combined_p_values(own.p_value, tests.p_value)
        row = wins[:, None, None]
        tests = replace(
            tests,
            p_value=np.where(row, both, tests.p_value),
            stability=np.where(row, np.maximum(own.stability, tests.stability), tests.stability),
            decided_by=tuple(
                f"{label}{JOINED}{network.label}" if won else label
                for label, won in zip(tests.decided_by, wins, strict=True)
            ),
        )
    return tests


def variance_p_values(windows: Windows) -> Array:
    """P-value that an input leaves a target's variance alone given all others.

    Splines of all inputs take out the mean; the log squared errors that remain are regressed on
    the same basis, one F-test over all terms of an input. The result is (target, source, lag).
    A label has no variance besides its mean: 1 for such a target.
    """
    inputs = inputs_of(windows)
    design, groups = _basis(windows, inputs)
    mean = moments_of(windows, design)
    coefficients, inverse = mean.solve(), mean.inverse()
    floor = LEAST_SQUARE * mean.loss(coefficients)

    def log_squared_errors(past: Array, target: Array) -> Array:
        rows = with_intercept(design(past))
        squares = (target - rows @ coefficients) ** 2
        # A fitted error has variance 1 - leverage, so an unusual past would look calm.
        leverage = (rows @ inverse * rows).sum(1, keepdims=True)
        return np.asarray(np.log(squares / np.maximum(1 - leverage, 1e-3) + floor))

    log_squares = moments_of(windows, design, log_squared_errors)
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

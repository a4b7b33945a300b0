"""Which forecaster a target keeps, and the tests of that one.

Asked for by name, a forecaster is kept by every target and answers for itself. With `auto` a target
keeps, on evidence from blocks of time, lines, splines or products; dictionary and trees where
these forecast rows that they did not learn from clearly better; a network where it does so on the
held-out rows. What a target keeps decides its row of the graph.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forecause.errors import InputError
from forecause.forecast.forecaster import ENOUGH_WINDOWS
from forecause.forecast.input_tests.closed_form import closed_form_tests
from forecause.forecast.input_tests.learned_evidence import combined_p_values
from forecause.forecast.input_tests.learner_tests import with_learners
from forecause.forecast.input_tests.protocol import InputTests, TestRequest
from forecause.forecast.input_tests.refits import Refits
from forecause.forecast.input_tests.variance import variance_p_values
from forecause.forecast.members import JOINED
from forecause.forecast.selection import Fitted, affords_learners


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

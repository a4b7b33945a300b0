"""How far back to look: a lag window proposed from held-out loss and residual autocorrelation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from forecause.arrays import Array
from forecause.config.thresholds import DiagnosisThresholds, thresholds
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.diagnostics.finding import Finding
from forecause.diagnostics.forecast_checks import residuals_correlate_beyond
from forecause.errors import InputError
from forecause.forecast.forecaster import FitData, Forecaster, residuals_of, squared_errors
from forecause.forecast.linear import Linear, LinearModel
from forecause.regression.p_values import clearly_better

TRIED = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)
MOST_COMPARED_WINDOWS = 20_000
WINDOWS_PER_INPUT = 5  # a window that leaves fewer is not tried
ROWS_BEYOND = 5  # and as many as the window has: how far residuals are looked at before it


@dataclass(frozen=True)
class Proposal:
    """A lag window, and a note that gives the reason."""

    max_lag: int
    finding: Finding

    @property
    def sentence(self) -> str:
        return self.finding.sentence


def propose_max_lag(panel: Panel) -> Proposal:
    """The shortest lag window whose held-out loss no longer window beats; lengthened while
    residuals correlate with older rows.

    Linear models of growing windows are compared on the same held-out rows.
    """
    lags, bounds = _affordable(panel), thresholds().diagnosis
    longest = _recent(Windows.of(panel, lags[-1]))
    fits = {lag: _fit(replace(longest, max_lag=lag)) for lag in lags}
    best = lags[0]
    for lag in lags[1:]:
        if clearly_better(fits[best].errors, fits[lag].errors):
            best = lag
    proposed, is_short = best, _is_short(fits[best].model, longest, best, bounds)
    while is_short and proposed != lags[-1]:
        proposed = lags[lags.index(proposed) + 1]
        is_short = _is_short(fits[proposed].model, longest, proposed, bounds)
    own, other = (float(fits[lag].errors.mean()) for lag in (proposed, lags[-1]))
    reason = (
        f"Lag window {proposed}, chosen among {lags[0]} to {lags[-1]}: a linear model's held-out "
        f"loss is {own:.3f} with it and {other:.3f} with {lags[-1]}"
    )
    if proposed != best:
        reason += f"; {best} would do for the loss, but leaves residuals that correlate with older"
    elif is_short:
        reason += "; residuals still correlate with rows before the longest window that was tried"
    evidence = {"max_lag": proposed, "held-out loss": own, f"held-out loss of {lags[-1]}": other}
    return Proposal(proposed, Finding("lag-window", reason, gravity="note", evidence=evidence))


@dataclass(frozen=True)
class _Fit:
    model: Forecaster
    errors: Array  # (window,), mean over targets


def _affordable(panel: Panel) -> list[int]:
    """The windows that leave enough rows to fit them."""
    affordable, least = [], thresholds().reading.least_windows
    for lag in TRIED:
        needed = max(least, WINDOWS_PER_INPUT * lag * len(panel.variables))
        try:
            if len(Windows.of(panel, lag)) < needed:
                break
        except InputError:
            break
        affordable.append(lag)
    return affordable or [1]


def _recent(windows: Windows) -> Windows:
    """The last windows, in a row: enough to compare models by."""
    return windows.at(np.arange(max(0, len(windows) - MOST_COMPARED_WINDOWS), len(windows)))


def _fit(windows: Windows) -> _Fit:
    early, late = windows.split(0.3)
    model = LinearModel(windows.shape, Linear())
    model.fit(FitData(early, late))
    return _Fit(model, squared_errors(model, late).mean(1))


def _is_short(model: Forecaster, windows: Windows, lag: int, bounds: DiagnosisThresholds) -> bool:
    """Whether residuals of a model with this lag window correlate with older ones."""
    residuals = residuals_of(model, replace(windows, max_lag=lag))
    return residuals_correlate_beyond(
        residuals, lag, 2 * lag + ROWS_BEYOND, bounds.least_correlation, bounds.level
    )

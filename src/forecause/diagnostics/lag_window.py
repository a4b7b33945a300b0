"""How far back to look: a lag window proposed from held-out loss and residual autocorrelation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.diagnostics.finding import Finding
from forecause.errors import InputError
from forecause.forecast.forecaster import FitData, Forecaster, residuals_of, squared_errors
from forecause.forecast.linear import Linear, LinearModel
from forecause.regression.p_values import clearly_better
from forecause.regression.residuals import Residuals

# Time and memory:
TRIED = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)
MOST_COMPARED_WINDOWS = 20_000
ROWS_BEYOND = 5  # and as many as the window has: how far residuals are looked at before it


def propose_max_lag(panel: Panel) -> tuple[int, Finding]:
    """The shortest lag window whose held-out loss no longer window beats; lengthened while
    residuals correlate with older rows. With a note that gives the reason.

    Linear models of growing windows are compared on the same held-out rows.
    """
    lags = _affordable(panel)
    longest = Windows.of(panel, lags[-1])
    longest = longest.at(np.arange(max(0, len(longest) - MOST_COMPARED_WINDOWS), len(longest)))
    models, errors = {}, {}
    for lag in lags:
        early, late = replace(longest, max_lag=lag).split(0.3)
        models[lag] = LinearModel(early.shape, Linear())
        models[lag].fit(FitData(early, late))
        errors[lag] = squared_errors(models[lag], late).mean(1)
    best = lags[0]
    for lag in lags[1:]:
        if clearly_better(errors[best], errors[lag]):
            best = lag
    proposed, is_short = best, _is_short(models[best], longest, best)
    while is_short and proposed != lags[-1]:
        proposed = lags[lags.index(proposed) + 1]
        is_short = _is_short(models[proposed], longest, proposed)
    own, other = (float(errors[lag].mean()) for lag in (proposed, lags[-1]))
    reason = (
        f"Lag window {proposed}, chosen among {lags[0]} to {lags[-1]}: a linear model's held-out "
        f"loss is {own:.3f} with it and {other:.3f} with {lags[-1]}"
    )
    if proposed != best:
        reason += f"; {best} would do for the loss, but leaves residuals that correlate with older"
    elif is_short:
        reason += "; residuals still correlate with rows before the longest window that was tried"
    evidence = {"max_lag": proposed, "held-out loss": own, f"held-out loss of {lags[-1]}": other}
    return proposed, Finding("lag-window", reason, gravity="note", evidence=evidence)


def _affordable(panel: Panel) -> list[int]:
    """The windows that leave enough rows to fit them."""
    affordable, bounds = [], thresholds()
    for lag in TRIED:
        inputs = lag * len(panel.variables)
        needed = max(bounds.reading.least_windows, bounds.diagnosis.windows_per_number * inputs)
        try:
            if len(Windows.of(panel, lag)) < needed:
                break
        except InputError:
            break
        affordable.append(lag)
    return affordable or [1]


def _is_short(model: Forecaster, windows: Windows, lag: int) -> bool:
    """Whether residuals of a model with this lag window correlate with older ones."""
    residuals = residuals_of(model, replace(windows, max_lag=lag))
    return residuals_correlate_beyond(residuals, lag, 2 * lag + ROWS_BEYOND)


def residuals_correlate_beyond(residuals: Residuals, max_lag: int, furthest: int) -> bool:
    """Whether residuals are correlated with residuals from before the lag window.

    The level is shared by all correlations that are looked at.
    """
    bounds, lags = thresholds().diagnosis, range(max_lag + 1, furthest + 1)
    for lag in lags:
        correlation, p_values = residuals.correlation(lag, bounds.least_correlation)
        clear = np.abs(correlation) > bounds.least_correlation
        if (clear & (p_values < bounds.level / (len(lags) * correlation.size))).any():
            return True
    return False

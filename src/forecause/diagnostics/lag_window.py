"""How far back to look: a lag window proposed from held-out loss and residual autocorrelation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from forecause.data.panel import Panel
from forecause.data.windows import MIN_WINDOWS, Windows
from forecause.errors import InputError
from forecause.forecast.forecaster import FitData, Forecaster, residuals_of, squared_errors
from forecause.forecast.models.linear import Linear, LinearModel
from forecause.regression.p_values import clearly_better

TRIED = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)
MOST_COMPARED_WINDOWS = 20_000
WINDOWS_PER_INPUT = 5  # a window that leaves fewer is not tried
LEVEL = 0.001  # of the residuals' correlations, shared by all that are looked at
LEAST_CORRELATION = 0.05


@dataclass(frozen=True)
class Proposal:
    """A lag window and the reason for it."""

    max_lag: int
    sentence: str


def propose_max_lag(panel: Panel) -> Proposal:
    """The shortest window that no longer one beats, grown until the residuals forget.

    Linear models of growing windows are compared on the same held-out rows, then the residuals of
    the chosen one are looked at: if they still remember more than it sees, the next longer window
    is taken.
    """
    ladder = _affordable(panel)
    longest = _recent(Windows.of(panel, ladder[-1]))
    fits = {lag: _fit(replace(longest, max_lag=lag)) for lag in ladder}
    chosen = ladder[0]
    for lag in ladder[1:]:
        if clearly_better(fits[chosen].errors, fits[lag].errors):
            chosen = lag
    grown, remembered = chosen, _memory(fits[chosen].model, longest, chosen)
    while remembered and grown != ladder[-1]:
        grown = ladder[ladder.index(grown) + 1]
        remembered = _memory(fits[grown].model, longest, grown)
    losses = [float(fits[lag].errors.mean()) for lag in (grown, ladder[-1])]
    reason = (
        f"Lag window {grown}, chosen among {ladder[0]} to {ladder[-1]}: a linear model's held-out "
        f"loss is {losses[0]:.3f} with it and {losses[1]:.3f} with {ladder[-1]}"
    )
    if grown != chosen:
        reason += f"; {chosen} would do for the loss, but leaves residuals that remember more"
    elif remembered:
        reason += "; the residuals still remember more than the longest window that was tried"
    return Proposal(grown, reason + ".")


@dataclass(frozen=True)
class _Fit:
    model: Forecaster
    errors: torch.Tensor  # (window,), mean over targets


def _affordable(panel: Panel) -> list[int]:
    """The windows that leave enough rows to fit them."""
    found = []
    for lag in TRIED:
        needed = max(MIN_WINDOWS, WINDOWS_PER_INPUT * lag * len(panel.variables))
        try:
            if len(Windows.of(panel, lag)) < needed:
                break
        except InputError:
            break
        found.append(lag)
    return found or [1]


def _recent(windows: Windows) -> Windows:
    """The last windows, in a row: enough to compare models by."""
    return windows.at(np.arange(max(0, len(windows) - MOST_COMPARED_WINDOWS), len(windows)))


def _fit(windows: Windows) -> _Fit:
    early, late = windows.split(0.3)
    model = LinearModel(windows.shape, Linear())
    model.fit(FitData(early, late))
    return _Fit(model, squared_errors(model, late).mean(1))


def _memory(model: Forecaster, windows: Windows, lag: int) -> bool:
    """Whether residuals are correlated with what lies beyond the window."""
    residuals = residuals_of(model, replace(windows, max_lag=lag))
    beyond = range(lag + 1, 2 * lag + 6)
    for far in beyond:
        correlation, p_values = residuals.correlation(far)
        real = np.abs(correlation) > LEAST_CORRELATION
        if (real & (p_values < LEVEL / (len(beyond) * correlation.size))).any():
            return True
    return False

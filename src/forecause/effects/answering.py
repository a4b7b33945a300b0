"""Who answers questions to a run, with what noise, on what assumption, about which column.

The causal forecaster reads the causes of every target alone, so what has no path from a variable
that is set does not move. An answer is causal only as far as the columns hold every common cause of
what is set and what is watched; CAVEAT says so with every result.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forecause.common.arrays import Array, Single
from forecause.common.bounded import is_whole
from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows
from forecause.diagnostics.power import noise_sd
from forecause.errors import InputError
from forecause.forecast.causal import CausalForecaster
from forecause.forecast.forecaster import Forecaster
from forecause.result import Result

CAVEAT = (
    "Holds if every common cause of the variable that is set and of what it drives is among the "
    "columns, and if the forecaster was right about values like these."
)
DENSE = (
    " The run is without a causal forecaster, as of an old version or read anew: its "
    "forecaster reads all inputs, so variables without a path from what is set may move."
)

# Numerics:
FARTHEST = 1e6  # standard deviations: a value that runs away stays a number, so 0 times it is 0


class Models(NamedTuple):
    """Who answers: `causal` says what follows an action, `guarded` what comes without one."""

    causal: Forecaster
    guarded: Forecaster

    @classmethod
    def of(cls, found: Result) -> Models:
        """Those of a run; the dense forecaster where an old run has no other."""
        if found.causal is None:
            return cls(found.forecaster, found.forecaster)
        return cls(found.causal.forecaster, found.causal.guarded)


def caveat_of(found: Result) -> str:
    """On what answers rest."""
    return CAVEAT if found.causal is not None else CAVEAT + DENSE


def noise_of(found: Result, forecaster: Forecaster, domain: int) -> Single:
    """What a forecaster got wrong, (window, column), standardised, about zero.

    All variables of a window together, since their noise may be related. Of the same domain, where
    there are enough windows of it.
    """
    if isinstance(forecaster, CausalForecaster):
        errors, domains = forecaster.residuals.astype(np.float64), forecaster.residual_domain
    else:
        errors, domains = _scaled_errors(found, forecaster), found.data.sampled.domain
    if domains is not None and (domains == domain).sum() >= thresholds().effects.least_noise:
        errors = errors[domains == domain]
    return np.asarray(errors - errors.mean(0), dtype=np.float32)


def _scaled_errors(found: Result, forecaster: Forecaster) -> Array:
    """Errors in the windows kept of an old run, scaled to those on held-out rows, which are
    larger."""
    window = found.data.sampled
    errors = (window.target - forecaster.forecast(window)).astype(np.float64)
    size = noise_sd(found.losses)[found.data.coding.of_column]
    return np.asarray(errors * np.maximum(size / np.maximum(errors.std(0, ddof=1), 1e-12), 1.0))


def windows_of(found: Result, data: Any = None) -> Windows | None:
    """The windows of a run or of `data`, read again where it was loaded; None if the run's data is
    gone."""
    if found.windows is not None and data is None:
        return found.windows
    try:
        return Windows.of(found.deseasonalised_panel(data), found.graph.max_lag)
    except InputError:
        if data is not None:
            raise
        return None


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> None:
    """Refuse what is no whole number, or out of bounds."""
    if not is_whole(value):
        raise InputError(f"The {name} must be a whole number, found {value!r:.80}.")
    if value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"{least} to {most:,}"
        raise InputError(f"The {name} must be {bounds}, found {value!r:.80}.")


def finite_number(name: str, value: Any) -> float:
    """A number, or an InputError."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise InputError(f"The {name} must be a number, found {value!r:.80}.")
    return number


def variable_place(found: Result, name: str) -> int:
    """The variable's index, or an InputError that lists the names."""
    names = found.data.variables
    if name not in names:
        raise InputError(f"Unknown variable {name!r}; choose one of {', '.join(names)}.")
    return names.index(name)


def number_place(found: Result, name: str) -> int:
    """The column of a variable that is a number."""
    place = variable_place(found, name)
    if found.data.coding.label(place):
        raise InputError(
            f"{name!r} holds labels, which cannot be raised by an amount; hold it at one of its "
            "levels."
        )
    return int(found.data.coding.first[place])


def columns_of(found: Result, name: str) -> tuple[str, list[str]]:
    """The variable that is meant, and its columns: the one named, or all levels of a label."""
    columns, coding = found.data.columns, found.data.coding
    if name in columns:
        return found.data.variables[coding.of_column[columns.index(name)]], [name]
    place = variable_place(found, name)
    return name, [columns[column] for column in coding.columns(place)]


def column_place(found: Result, name: str) -> int:
    """The column of a number, or of a level of a label, which is called variable=level."""
    _, named = columns_of(found, name)
    if len(named) > 1:
        raise InputError(f"{name!r} holds labels; name one of its levels: {', '.join(named)}.")
    return found.data.columns.index(named[0])

"""What is done to variables in a future: held at values, or pushed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forecause.common.arrays import Array, Single
from forecause.data.findings import column_ranges
from forecause.effects.answering import (
    FARTHEST,
    check_count,
    finite_number,
    number_place,
    variable_place,
)
from forecause.errors import InputError
from forecause.result import Result

if TYPE_CHECKING:
    from forecause.data.variables import Label


@dataclass(frozen=True)
class Push:
    """A variable raised once by an amount, in its own units, and then left to itself.

    Examples
    --------
    >>> import forecause as fc
    >>> system = fc.simulate(nodes=4, max_lag=2, rows=500, seed=1)
    >>> run = fc.discover(system.frame(), max_lag=2, forecaster="linear")
    >>> run.simulate_do({"X1": fc.Push(1.0)}, steps=2).shape
    (2, 4)
    """

    amount: float
    step: int = 1  # at which step ahead


class Action(NamedTuple):
    """What is done in each step, (step, column), standardised."""

    held: Single  # NaN where nothing is held
    pushed: Single  # 0 where nothing is pushed


def action_of(found: Result, do: Mapping[str, Any], steps: int, series: int) -> Action:
    """What `do` asks for in each step."""
    pushes = {name: one for name, one in do.items() if isinstance(one, Push)}
    pushed = np.zeros((steps, len(found.data.columns)))
    course = found.data.course
    for name, push in pushes.items():
        place = number_place(found, name)
        check_count(f"step at which {name!r} is pushed", push.step, most=steps)
        size = finite_number(f"push of {name!r}", push.amount) / found.data.sd[place]
        _check_near(name, np.array(size))
        pushed[push.step - 1, place] = size
        if course is not None and course.levels is not None and push.step < steps:
            pushed[push.step, place] = -size  # of a difference: up, and down again
    others = {name: values for name, values in do.items() if name not in pushes}
    return Action(_held(found, others, steps, series), pushed.astype(np.float32))


def _held(found: Result, do: Mapping[str, Any], steps: int, series: int) -> Single:
    """Standardised values that variables are held at, (step, column)."""
    held = np.full((steps, len(found.data.columns)), np.nan)
    mean, sd = found.data.mean, found.data.sd
    for name, values in do.items():
        label = found.data.coding.label(variable_place(found, name))
        if label is not None:
            columns = label.columns
            held[:, columns] = (_held_levels(label, values, steps) - mean[columns]) / sd[columns]
            continue
        place = number_place(found, name)
        path = _numbers(name, values, steps)
        if found.data.course is not None:
            path = found.data.course.taken_from(series, place, np.broadcast_to(path, steps))
        held[:, place] = (path - mean[place]) / sd[place]
        _check_near(name, held[:, place])
    return held.astype(np.float32)


def _numbers(name: str, values: Any, steps: int) -> Array:
    """One number, or one per step."""
    try:
        path = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        path = np.array(np.nan)
    if path.ndim > 1 or (path.ndim == 1 and len(path) != steps):
        raise InputError(
            f"{name!r} must be held at one number or at {steps} numbers, one per step; found "
            f"an array of shape {path.shape}."
        )
    if not np.isfinite(path).all():
        raise InputError(f"{name!r} must be held at numbers, found {values!r:.80}.")
    return path


def _check_near(name: str, standardised: Array) -> None:
    """Refuse what is so far away that sums lose their digits."""
    if (np.abs(standardised) > FARTHEST).any():
        raise InputError(f"{name!r} is set more than {FARTHEST:,.0f} standard deviations away.")


def _held_levels(label: Label, values: Any, steps: int) -> Array:
    """One level, or one per step, as (step, level) of 0 and 1."""
    path = [str(level) for level in np.atleast_1d(np.asarray(values, dtype=object))]
    path = path * steps if len(path) == 1 else path
    if len(path) != steps or not set(path) <= set(label.levels):
        raise InputError(
            f"{label.name!r} must be held at one of {', '.join(label.levels)}, or at {steps} of "
            f"them, one per step; found {values!r}."
        )
    return np.array([[float(one == level) for level in label.levels] for one in path])


def outside(found: Result, values: Array, do: Mapping[str, Any]) -> list[str]:
    """What is set or pushed beyond the values of the data, where forecasts are guesses."""
    if not do:
        return []
    if found.panel is None:
        if found.data.course is not None:
            return []  # how high the season was in the rows that are kept is not known
        seen = found.data.sampled.rows.astype(np.float64) * found.data.sd + found.data.mean
        low, high = seen.min((0, 1)), seen.max((0, 1))
    else:
        low, high = column_ranges(found.panel.values)
    names = found.data.columns
    return [
        name
        for place, name in enumerate(names)
        if name in do
        and bool(((values[..., place] < low[place]) | (values[..., place] > high[place])).any())
    ]

"""The rows of an event, and the calm rows that say what is normal.

Without other data the event is a stretch of the run's own rows, which is left out of everything
that is learned. Seasons and trends are carried forward from calm rows, never estimated in the
event.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.tables import plain_rows
from forecause.data.windows import Windows
from forecause.effects.periods import Time, between, ends_of, moment
from forecause.errors import InputError
from forecause.result import Result
from forecause.seasons.course import (
    differenced,
    positions_of,
    time_taken_out,
)

LEAST_ROWS = 10  # of an event of which only one moment is named
LEAST_CALM = 40  # windows
ENOUGH_BEFORE = 200  # calm windows before an event, from which on later ones are not needed
ROWS_PER_INPUT = 3  # the same, per lagged input
TREND_GOES_ON = 0.25  # of the calm rows' number: for how long after them a trend goes on

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stretch:
    """Rows to be explained, standardised, and the calm ones they are compared with."""

    past: Array  # (max_lag, column): the rows before, NaN where there are none
    rows: Array  # (row, column), NaN where missing
    time: Time  # or row numbers
    calm: Windows
    floor: Array  # (column,) least standard deviation, in the data's units
    moved: dict[str, Array] = field(default_factory=dict)  # (row,) of what never moves in calm
    notes: list[str] = field(default_factory=list)


def rows_of_run(found: Result, event: Any, until: Any) -> Stretch:
    """A stretch of the run's own rows; everything is learned without it."""
    if event is None:
        raise InputError("Name the event: a time or a row, or give it as data=.")
    read, lags = found.panel_of(), found.graph.max_lag
    rows = _event_rows(event, until, read.time, read.rows, lags)
    rows = rows[read.series[rows] == read.series[rows[-1]]]  # in one series
    first, end = int(rows[0]), int(rows[-1]) + 1
    hidden = np.array(read.values, dtype=np.float64)
    hidden[first:end] = np.nan
    free = time_taken_out(replace(read, values=hidden), found.config)
    calm = Windows.of(free, lags)
    calm = calm.at(np.flatnonzero((calm.rows < first) | (calm.rows >= end + lags)))
    before = calm.at(np.flatnonzero(calm.rows < first))
    needed = (thresholds().events.least_calm_blocks + 1) * len(rows)
    if len(before) >= max(ENOUGH_BEFORE, ROWS_PER_INPUT * calm.inputs, needed):
        calm = before  # later rows may still be part of what happened
    _check_calm(calm)
    observed = np.array(read.values, dtype=np.float64)
    if read.filled is not None:
        observed[read.filled] = np.nan
    if free.course is not None:
        if free.course.levels is not None:
            observed = differenced(replace(read, values=observed, filled=None)).values
        observed = observed - free.course.of_rows(read)
    scaled = (observed - calm.scale.mean) / calm.scale.sd
    start = int(read.starts[read.starts <= first].max())
    past = scaled[max(first - lags, start) : first]
    time = rows if read.time is None else read.time[first:end]
    return Stretch(_padded(past, lags), scaled[first:end], time, calm, _floor(read))


def rows_of_data(found: Result, event: Any, until: Any, data: Any) -> Stretch:
    """Rows of other data; normal is what the run's own rows taught, carried forward in time."""
    read, lags = found.panel_of(), found.graph.max_lag
    calm = found.windows
    if calm is None:
        calm = Windows.of(found.deseasonalised_panel(panel=read), lags)
    _check_calm(calm)
    values, time, apart = plain_rows(data, found.config.data, read)
    moved = _off_their_value(read, apart)
    rows = np.arange(len(values))
    if event is not None:
        rows = _event_rows(event, until, time, len(values), lags)
    first, end = int(rows[0]), int(rows[-1]) + 1
    moved = {name: off[first:end] for name, off in moved.items()}
    place = _places(read, time, len(values))
    follows = place is not None and int(place[0]) == _last_place(read) + 1
    if follows and place is not None:  # the last calm rows are its past
        values = np.concatenate([np.asarray(read.values[-lags - 1 :], dtype=np.float64), values])
        place = np.concatenate([place[0] - np.arange(lags + 1, 0, -1), place])
        first, end = first + lags + 1, end + lags + 1
    scaled = (_without_time(values, place, calm.panel) - calm.scale.mean) / calm.scale.sd
    past, notes = scaled[max(first - lags, 0) : first], []
    if len(past) and not follows:
        level = known_mean(scaled[:first])
        scaled, past = scaled - level, past - level
        notes.append("Levels are those of the rows before the event in the data given.")
    shown = rows if time is None else time[rows]
    floor = _floor(read)
    return Stretch(_padded(past, lags), scaled[first:end], shown, calm, floor, moved, notes)


def _event_rows(event: Any, until: Any, time: Time | None, rows: int, lags: int) -> Index:
    """The rows of an event: all between two moments, or those about a single one, from as long
    before it as lags reach."""
    if isinstance(event, slice | tuple) or (isinstance(event, str) and ".." in event):
        event, until = ends_of(event)
    if until is not None or event is None:
        return np.flatnonzero(between(event, until, time, rows))
    places = np.arange(rows) if time is None else time
    at = int(np.searchsorted(places, moment(event, time, rows)))
    if at >= rows:
        raise InputError(f"{event} lies after the data, whose last row is {places[-1]}.")
    return np.arange(max(at - lags, 0), min(at + max(lags, LEAST_ROWS), rows))


def _check_calm(calm: Windows) -> None:
    if len(calm) < LEAST_CALM:
        raise InputError(
            f"Too few calm rows to know what is normal: {len(calm)} windows, at least "
            f"{LEAST_CALM} are needed."
        )


def _floor(read: Panel) -> Array:
    """The least sd of every column (column,): a share of the median where nothing is negative."""
    low = np.nanmin(np.asarray(read.values, dtype=np.float64), axis=0)
    middle = np.nanmedian(np.asarray(read.values, dtype=np.float64), axis=0)
    floor = np.where(low >= 0, thresholds().events.scale_floor * np.abs(middle), 0.0)
    labels = np.ones(len(floor), bool)
    labels[read.coding.numeric_columns] = False
    return np.where(labels, 0.0, floor)


def _padded(past: Array, lags: int) -> Array:
    """The rows before (max_lag, column), with NaN where there are fewer."""
    whole = np.full((lags, past.shape[1]), np.nan)
    if len(past):
        whole[-len(past) :] = past
    return whole


def known_mean(values: Array) -> Array:
    """Means of columns without missing cells; 0 where all are missing."""
    known = np.isfinite(values)
    return np.asarray(np.where(known, values, 0.0).sum(0) / np.maximum(known.sum(0), 1))


def _off_their_value(read: Panel, apart: dict[str, Array]) -> dict[str, Array]:
    """Columns that hold one value in all calm rows: how far they are off it, in the least sds."""
    constant = {change.column: change.value for change in read.changes}
    share, found = thresholds().events.scale_floor, {}
    for name, values in apart.items():
        value = constant[name] or 0.0
        size = abs(value) or float(np.nanmax(np.abs(values), initial=0.0))
        found[name] = (values - value) / (share * size) if size else np.zeros(len(values))
    return found


def _last_place(read: Panel) -> int:
    first, end = read.spans[-1]
    return int(positions_of(read, first, end)[-1])


def _places(read: Panel, time: Time | None, rows: int) -> Index | None:
    """Where rows of other data stand in the last series, in steps; None where that is unknown."""
    if time is None or read.time is None or time.dtype.kind != read.time.dtype.kind:
        return None
    first, end = read.spans[-1]
    own = read.time[first:end]
    if own.dtype.kind == "M":
        own, time = (part.astype("datetime64[ns]").astype(np.int64) for part in (own, time))
    step = float(np.median(np.diff(own)))
    since = (time.astype(np.float64) - float(own[-1])) / max(step, 1e-300)
    return np.asarray(np.round(since) + _last_place(read), dtype=np.int64)


def _without_time(values: Array, place: Index | None, calm: Panel) -> Array:
    """What is left of values (row, column) without what time explains, carried forward."""
    course = calm.course
    if course is None:
        return values
    if course.levels is not None:
        numeric = calm.coding.numeric_columns
        values = values.copy()
        values[1:, numeric] = np.diff(values[:, numeric], axis=0)
        values[0, numeric] = np.nan
    last = len(course.terms) - 1
    known = course.ends[last] + np.arange(len(values)) if place is None else place
    terms, weights = course.terms[last], course.weights[last]
    matrix = terms.matrix(known)
    if terms.knots:  # a trend goes on for a while, then it stays where it is
        most = (1 + TREND_GOES_ON) * course.ends[last]
        later = len(terms.shifts) + len(terms.odd_days)
        own = slice(matrix.shape[1] - later - len(terms.knots) + 1, matrix.shape[1] - later)
        matrix[:, own] = terms.matrix(np.clip(known, 0, most))[:, own]
    return np.asarray(values - weights[0] - matrix @ weights[1:])

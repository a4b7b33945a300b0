"""The rows of an event, and the calm rows that say what is normal.

Without other data the event is a stretch of the run's own rows, which is left out of everything
that is learned. Seasons and trends are carried forward from calm rows, never estimated in the
event.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from forecause.common.arrays import Array, Index, Mask
from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.tables import plain_rows
from forecause.data.windows import Windows
from forecause.effects.answering import FARTHEST
from forecause.effects.periods import Time, between, data_of, ends_of, moment
from forecause.errors import InputError
from forecause.result import Result
from forecause.seasons.course import (
    positions_of,
    time_taken_out,
)

TOO_FEW = "Too few calm rows to know what is normal: {}, at least {} are needed beside the event."


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
        raise InputError("Name the event, a time or a row, or give its rows as data.")
    read, lags = data_of(found), found.graph.max_lag
    rows = _event_rows(event, until, read.time, read.rows, lags)
    series = int(read.series[rows[-1]])
    rows = rows[read.series[rows] == series]
    first, end = int(rows[0]), int(rows[-1]) + 1
    calm = _calm_without(found, read, rows)
    begin = max(first - lags - 1, int(read.starts[read.starts <= first].max()))
    own, after = read.spans[series]
    place = positions_of(read, own, after)[begin - own : end - own]
    values = np.array(read.values[begin:end], dtype=np.float64)
    if read.filled is not None:
        values[read.filled[begin:end]] = np.nan
    scaled = _scaled(_without_time(values, place, calm.panel, series), calm)
    time = rows if read.time is None else read.time[first:end]
    before = first - begin
    return Stretch(_padded(scaled[:before], lags), scaled[before:], time, calm, _floor(calm, read))


def _calm_without(found: Result, read: Panel, rows: Index) -> Windows:
    """What is normal without the rows of an event: what was before it, if that is enough, since
    later rows may still be part of what happened, as may as many rows just before it; else all
    other rows."""
    first, lags = int(rows[0]), found.graph.max_lag
    doubtful = max(first - len(rows), int(np.argmax(read.series == read.series[first])))
    inputs = lags * len(read.variables)
    bounds = thresholds().events
    blocks = (bounds.least_calm_blocks + 1) * len(rows)
    if blocks > read.rows - len(rows):
        blocks = 0  # there will be no p-value anyway
    enough = max(bounds.enough_before, bounds.enough_per_input * inputs, blocks)
    later = (read.series == read.series[first]) & (np.arange(read.rows) >= doubtful)
    if read.time is not None:
        later |= read.time >= read.time[doubtful]
    itself = np.isin(np.arange(read.rows), rows)
    own = read.series == read.series[first]
    for dropped, least in ((later, enough), (itself, bounds.least_calm)):
        if (~dropped).sum() < least or (own & ~dropped).sum() < bounds.least_calm:
            continue
        try:
            left = time_taken_out(_without(read, dropped), found.config)
        except InputError:  # a column stands still or has no value in these rows
            if dropped is itself:
                raise
            continue
        calm = Windows.of(left, lags)
        if len(calm) >= least:
            return calm
    raise InputError(TOO_FEW.format(int((own & ~itself).sum()), bounds.least_calm))


def _without(read: Panel, dropped: Mask) -> Panel:
    """A panel whose dropped rows (row,) are missing, or cut off at the end of a series: nothing
    that is found may begin in rows that say nothing."""
    values = np.array(read.values, dtype=np.float64)
    values[dropped] = np.nan
    last = np.zeros(len(read.series_names), dtype=np.int64)
    np.maximum.at(last, read.series[~dropped], np.flatnonzero(~dropped))
    kept = np.arange(read.rows) <= last[read.series]
    return replace(read, values=values).at_rows(np.flatnonzero(kept))


def rows_of_data(found: Result, event: Any, until: Any, data: Any) -> Stretch:
    """Rows of other data; normal is what the run's own rows taught, carried forward in time."""
    read, lags = data_of(found), found.graph.max_lag
    calm = found.windows
    if calm is None:
        calm = Windows.of(found.deseasonalised_panel(panel=read), lags)
    least = thresholds().events.least_calm
    if len(calm) < least:
        raise InputError(TOO_FEW.format(len(calm), least))
    values, time, apart, series = plain_rows(data, found.config.data, read)
    moved = _off_their_value(read, apart)
    rows = np.arange(len(values))
    if event is not None:
        rows = _event_rows(event, until, time, len(values), lags)
    first, end = int(rows[0]), int(rows[-1]) + 1
    moved = {name: off[first:end] for name, off in moved.items()}
    known = Known.of(read, series)
    place, notes = known.places(time), known.notes_on(time)
    follows = place is not None and int(place[0]) == known.last + 1
    if follows and place is not None:  # the last calm rows are its past
        own = known.end - max(known.end - lags - 1, known.first)
        past_rows = np.asarray(read.values[known.end - own : known.end], dtype=np.float64)
        values = np.concatenate([past_rows, values])
        place = np.concatenate([place[0] - np.arange(own, 0, -1), place])
        first, end = first + own, end + own
    scaled = _scaled(_without_time(values, place, calm.panel, series), calm)
    past = scaled[max(first - lags, 0) : first]
    if len(past) and not follows:
        level = known_mean(scaled[:first])
        scaled, past = scaled - level, past - level
        notes.append("Levels are those of the rows before the event in the data given.")
    shown = rows if time is None else time[rows]
    floor = _floor(calm, read)
    return Stretch(_padded(past, lags), scaled[first:end], shown, calm, floor, moved, notes)


def _event_rows(event: Any, until: Any, time: Time | None, rows: int, lags: int) -> Index:
    """The rows of an event: all between two moments, or those about a single one, from as long
    before it as lags reach."""
    if isinstance(event, slice | tuple) or (isinstance(event, str) and ".." in event):
        if until is not None:
            raise InputError(f"The event {event!r:.80} has an end; leave until={until!r:.40} out.")
        event, until = ends_of(event)
    if until is not None or event is None:
        return np.flatnonzero(between(event, until, time, rows))
    places, when = np.arange(rows) if time is None else time, moment(event, time, rows)
    at = int(np.searchsorted(places, when))
    if at >= rows:
        raise InputError(f"{event} lies after the data, whose last row is {places[-1]}.")
    if when < places[0]:
        raise InputError(f"{event} lies before the data, whose first row is {places[0]}.")
    return np.arange(
        max(at - lags, 0), min(at + max(lags, thresholds().events.least_rows_to_test), rows)
    )


def _scaled(values: Array, calm: Windows) -> Array:
    """In calm standard deviations; what is farther than FARTHEST counts as that far."""
    with np.errstate(over="ignore"):
        scaled = (values - calm.scale.mean) / calm.scale.sd
    return np.clip(scaled, -FARTHEST, FARTHEST)


def _floor(calm: Windows, read: Panel) -> Array:
    """The least sd of every column (column,): a share of the median where nothing is negative, of
    the changes where differences are taken."""
    values = np.asarray(read.values, dtype=np.float64)
    low = np.nanmin(values, axis=0)
    course = calm.panel.course
    if course is not None and course.levels is not None:
        values = np.diff(values, axis=0)
    middle = np.nanmedian(np.abs(values), axis=0)
    floor = np.where(low >= 0, thresholds().events.scale_floor * middle, 0.0)
    labels = np.ones(len(floor), bool)
    labels[read.coding.numeric_columns] = False
    return np.where(labels, 0.0, floor)


def _padded(before: Array, lags: int) -> Array:
    """The last rows before (max_lag, column), with NaN where there are fewer."""
    whole = np.full((lags, before.shape[1]), np.nan)
    count = min(len(before), lags)
    whole[lags - count :] = before[len(before) - count :]
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


@dataclass(frozen=True, eq=False)
class Known:
    """A series of the run, in whose steps the rows of other data are placed."""

    time: Time | None  # (row,) of the series, as numbers
    kind: str | None  # of its times
    first: int
    end: int
    last: int  # the place of its last row, in steps

    @classmethod
    def of(cls, read: Panel, series: int) -> Known:
        first, end = read.spans[series]
        time = None if read.time is None else read.time[first:end]
        last = int(positions_of(read, first, end)[-1])
        kind = None if time is None else time.dtype.kind
        return cls(None if time is None else _numbers(time), kind, first, end, last)

    def places(self, time: Time | None) -> Index | None:
        """Where rows stand in the series, in steps; None where that is unknown."""
        if time is None or self.time is None or time.dtype.kind != self.kind:
            return None
        since = (_numbers(time) - self.time[-1]) / max(_step(self.time), 1e-300)
        return np.asarray(np.round(since) + self.last, dtype=np.int64)

    def notes_on(self, time: Time | None) -> list[str]:
        """What is odd about the times of other rows."""
        if time is None or self.time is None or time.dtype.kind != self.kind or len(time) < 3:
            return []
        ratio = _step(_numbers(time)) / max(_step(self.time), 1e-300)
        if 2 / 3 <= ratio <= 3 / 2:
            return []
        return [f"Its rows are {ratio:.3g} times as far apart as those of the run: lags differ."]


def _numbers(time: Time) -> Array:
    """Times as numbers, dates in nanoseconds."""
    if time.dtype.kind == "M":
        time = time.astype("datetime64[ns]").astype(np.int64)
    return np.asarray(time, dtype=np.float64)


def _step(numbers: Array) -> float:
    return float(np.median(np.diff(numbers))) if len(numbers) > 1 else 0.0


def _without_time(values: Array, place: Index | None, calm: Panel, series: int) -> Array:
    """What is left of values (row, column) without what time explains, carried forward."""
    course = calm.course
    if course is None:
        return values
    if course.levels is not None:
        numeric = calm.coding.numeric_columns
        values = values.copy()
        values[1:, numeric] = np.diff(values[:, numeric], axis=0)
        values[0, numeric] = np.nan
        if place is not None:  # no change is known over a gap
            values[np.ix_(np.flatnonzero(np.diff(place) > 1) + 1, numeric)] = np.nan
    known = course.ends[series] + np.arange(len(values)) if place is None else place
    terms, weights = course.terms[series], course.weights[series]
    matrix = terms.matrix(known)
    if terms.knots:  # a trend goes on for a while, then it stays where it is
        most = (1 + thresholds().events.trend_goes_on) * course.ends[series]
        later = len(terms.shifts) + len(terms.odd_days)
        own = slice(matrix.shape[1] - later - len(terms.knots) + 1, matrix.shape[1] - later)
        matrix[:, own] = terms.matrix(np.clip(known, 0, most))[:, own]
    return np.asarray(values - weights[0] - matrix @ weights[1:])

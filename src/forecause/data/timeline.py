"""The time column: which one it is, how it is read, and where it breaks."""

from __future__ import annotations

import re
import warnings
from collections.abc import Container
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.data.sources.rawtable import TIME_NAMES, UNNAMED, RawTable
from forecause.errors import InputError

Array = npt.NDArray[Any]

GAP = 1.5  # a step longer than this many usual steps is a gap
WEAK_NAMES = frozenset({"t", "index", "step"})  # as likely the name of a variable
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")


def recognised_time(table: RawTable, series: Array, taken: Container[str | None]) -> str | None:
    """The name of the column that shows itself as the time, other than those `taken`.

    `series` (row,) says which rows belong together.
    """
    rows = np.argsort(series, kind="stable")
    names = [name for name in table.names if name not in taken]
    named = [name for name in names if _is_time_name(name)]
    dated = [name for name in names if table.head(name).dtype.kind == "M"]
    written = [name for name in names if _looks_like_dates(table.head(name))]
    for name, values in table.beside.items():
        if name not in taken and (values.dtype.kind in "Mm" or _is_time_name(name)):
            return name
    if dated:
        return next((name for name in dated if name in named), dated[0])
    for name in named + written:
        if _shows_time(name, table.column(name)[rows], series[rows]):
            return name
    for name in names[:1]:
        if name in UNNAMED and _counts_up(table.column(name)[rows], series[rows]):
            return name
    return None


def time_values(name: str, values: Array) -> Array:
    """The column as dates (datetime64) or numbers (float64), without a missing one."""
    time = _read(values)
    if time is None:
        row = _first_unreadable(values)
        raise InputError(
            f"The time column {name!r} cannot be read as dates or numbers: found "
            f"{values.astype(object)[row]!r} in row {row + 1}."
        )
    absent = np.flatnonzero(np.isnat(time) if time.dtype.kind in "Mm" else ~np.isfinite(time))
    if len(absent):
        raise InputError(f"The time column {name!r} has no value in row {absent[0] + 1}.")
    return time


def breaks(name: str, time: Array, series: Array, rows: Array, one_series: bool) -> Array:
    """True (row,) where the time leaps over a gap; refuses time that does not move forward.

    `series` must be sorted; `rows` are the rows of the user's table, for the message.
    """
    step = _steps(time)
    within = np.diff(series) == 0
    stuck = np.flatnonzero(within & (step <= 0))
    if len(stuck):
        raise InputError(_not_forward(name, time, rows, int(stuck[0]), one_series))
    gaps = np.zeros(len(time), dtype=bool)
    edges = np.flatnonzero(np.diff(series, prepend=-1, append=-1))
    for first, end in pairwise(edges):
        inner = step[first : end - 1]
        if len(inner):
            gaps[first + 1 : end] = inner > GAP * np.median(inner)
    return gaps


def _not_forward(name: str, time: Array, rows: Array, place: int, one_series: bool) -> str:
    """The sentence for the first place where time does not move forward."""
    before, after = time[place], time[place + 1]
    row = int(rows[place + 1]) + 1
    several = "name the column that tells the series apart with --series, or give one table each"
    if after == before:
        hint = f"; if the table holds several series, {several}" if one_series else ""
        return f"The time {_shown(after)} in column {name!r} appears twice (row {row}){hint}."
    if one_series and place > 0 and after <= time[0]:
        return (
            f"The time in column {name!r} starts again in row {row} ({_shown(after)} after "
            f"{_shown(before)}): the table seems to hold several series; {several}."
        )
    return (
        f"The time in column {name!r} goes back in row {row} ({_shown(after)} after "
        f"{_shown(before)}); sort by time first."
    )


def _shown(moment: Any) -> str:
    if isinstance(moment, np.datetime64):
        return str(np.datetime_as_string(moment, unit="auto"))
    return f"{moment:g}" if isinstance(moment, np.floating) else str(moment)


def _steps(time: Array) -> Array:
    """Differences of consecutive times (row - 1,), as numbers."""
    return np.diff(time.view(np.int64) if time.dtype.kind in "Mm" else time)


def _is_time_name(name: str) -> bool:
    return name.strip().lower() in TIME_NAMES


def _shows_time(name: str, values: Array, series: Array) -> bool:
    """Dates, or numbers that move forward, now and then from the beginning again.

    Numbers under a name like `time` that do neither are an error to report, not a variable.
    """
    time = _read(values)
    if time is None:
        return False
    if time.dtype.kind == "M" or name.strip().lower() not in WEAK_NAMES:
        return True
    step, same = _steps(time), np.diff(series) == 0
    back, stuck = same & (step < 0), same & (step == 0)
    starts_again = bool((time[1:][back] == time[0]).all()) and 5 * back.sum() <= len(time)
    return bool(np.isfinite(time).all() and not stuck.any() and starts_again)


def _counts_up(values: Array, series: Array) -> bool:
    """Whole numbers that grow: the row numbers that a program wrote."""
    if values.dtype.kind not in "iu":
        return False
    return bool(((np.diff(values.astype(np.int64)) > 0) | (np.diff(series) != 0)).all())


def _looks_like_dates(values: Array) -> bool:
    if values.dtype.kind not in "OU" or not len(values):
        return False
    return isinstance(values[0], str) and DATE.match(values[0]) is not None


def _read(values: Array) -> Array | None:
    """Dates or numbers, with NaT or NaN where missing; None if the values are neither."""
    import pandas as pd

    if values.dtype.kind in "Mm":
        return values
    if values.dtype.kind in "iuf":
        return _compact_dates(values)
    if values.dtype.kind not in "OU":
        return None
    cells = pd.Series(values.astype(object), dtype=object)
    as_numbers = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64)
    if (np.isnan(as_numbers) == cells.isna().to_numpy()).all():
        return _compact_dates(as_numbers)
    cells = cells.map(lambda cell: cell.to_timestamp() if isinstance(cell, pd.Period) else cell)
    attempts: list[dict[str, Any]] = [{"format": "ISO8601"}, {}, {"dayfirst": True}]
    for attempt in attempts:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                dates = pd.to_datetime(cells, utc=True, **attempt)
            except (ValueError, TypeError, OverflowError):
                continue
        if not any("infer format" in str(warning.message) for warning in caught):  # no guessing
            return np.asarray(dates.dt.tz_localize(None).to_numpy())
    return None


def _compact_dates(values: Array) -> Array:
    """Whole numbers such as 20240131 are dates; others stay numbers."""
    import pandas as pd

    values = values.astype(np.float64)
    likely = (values > 19_000_000) & (values < 22_000_000) & (values == np.floor(values))
    if len(values) < 2 or not likely.all():
        return values
    text = pd.Series(values.astype(np.int64).astype(str))
    dates = pd.to_datetime(text, format="%Y%m%d", errors="coerce").to_numpy()
    return values if np.isnat(dates).any() else np.asarray(dates)


def _first_unreadable(values: Array) -> int:
    import pandas as pd

    if values.dtype.kind not in "OU":
        return 0
    dates = pd.to_datetime(
        pd.Series(values.astype(object), dtype=object), errors="coerce", utc=True, format="ISO8601"
    )
    odd = np.flatnonzero(dates.isna().to_numpy() & ~pd.isna(values.astype(object)))
    return int(odd[0]) if len(odd) else 0

"""The time column: which one it is, how it is read, and where it breaks."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config.advice import Advice
from forecause.config.thresholds import thresholds
from forecause.data.dates import are_dates, dates_or_numbers, first_unreadable, looks_like_dates
from forecause.data.findings import Change, counted
from forecause.data.sources.rawtable import TIME_NAMES, UNNAMED, RawTable
from forecause.errors import InputError

Array = npt.NDArray[Any]

CALENDAR = ("year", "month", "day", "hour", "minute")
DATED = "date"  # what the column that they make is called
WEAK_NAMES = frozenset({"t", "index", "step"})  # as likely a variable's name
ZONE = re.compile(r"\d:\d\d.*(Z|[-+]\d\d:?\d\d)\s*$")


def recognised_time(table: RawTable, series: Array, taken: Container[str | None]) -> str | None:
    """The name of the column that shows itself as the time, other than those `taken`.

    `series` (row,) says which rows belong together.
    """
    rows = np.argsort(series, kind="stable")
    names = [name for name in table.names if name not in taken]
    named = [name for name in names if name.strip().lower() in TIME_NAMES]
    dated = [name for name in names if table.head(name).dtype.kind == "M"]
    written = [name for name in names if looks_like_dates(table.head(name))]
    for name, values in table.beside.items():
        if name in taken:
            continue
        unnamed = name == "index" and values.dtype.kind in "OU"
        called_time = name.strip().lower() in TIME_NAMES and not unnamed
        if values.dtype.kind in "Mm" or called_time or are_dates(values):
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


def with_calendar_time(table: RawTable, taken: Container[str | None]) -> RawTable:
    """Year and month, and day, hour and minute if there are such, as one column of dates.

    The table as it is where they are not columns of whole numbers, are `taken`, or go back.
    """
    known = {name.strip().lower(): name for name in table.names if name not in taken}
    parts = list(takewhile(known.__contains__, CALENDAR))
    read_later = len(table.columns) < len(table.names)
    if len(parts) < 2 or DATED in table.names or read_later:  # the year may be a variable
        return table
    columns = {part: table.column(known[part]) for part in parts}
    if any(values.dtype.kind not in "iu" for values in columns.values()):
        return table
    dates = pd.to_datetime(pd.DataFrame({"day": 1} | columns), errors="coerce").to_numpy()
    if len(dates) < 2 or np.isnat(dates).any() or not (np.diff(dates).view(np.int64) > 0).all():
        return table
    gone = {known[part] for part in parts}
    kept = [place for place, name in enumerate(table.names) if name not in gone]
    shown = ", ".join(repr(known[part]) for part in parts)
    return replace(
        table,
        names=(DATED, *(table.names[place] for place in kept)),
        columns=[dates, *(table.columns[place] for place in kept)],
        matrix=None,
        notes=(*table.notes, f"The columns {shown} were joined to one of dates, {DATED!r}."),
    )


def time_values(name: str, values: Array) -> Array:
    """The column as dates (datetime64) or numbers (float64), without a missing one."""
    time = dates_or_numbers(values)
    _check_zones(name, values)
    if time is None:
        row = first_unreadable(values)
        raise InputError(
            f"The time column {name!r} cannot be read as dates or numbers: found "
            f"{_cut(values.astype(object)[row])} in row {row + 1}."
        )
    absent = np.flatnonzero(np.isnat(time) if time.dtype.kind in "Mm" else ~np.isfinite(time))
    if len(absent):
        raise InputError(f"The time column {name!r} has no value in row {absent[0] + 1}.")
    return time


def _check_zones(name: str, values: Array) -> None:
    """Refuse times of which some name their zone: the others could mean any."""
    if values.dtype.kind not in "OU":
        return
    told = [bool(ZONE.search(cell)) for cell in values if isinstance(cell, str)]
    if any(told) and not all(told):
        row = told.index(False)
        raise InputError(
            f"Some times in column {name!r} name their time zone and others do not (such as "
            f"{_cut(values[row])} in row {row + 1}); write all in one way."
        )


def in_time_order(
    name: str, time: Array, series: Array, one_series: bool
) -> tuple[Array, list[Change]]:
    """The rows (row,) sorted by series and time, and what had to be done for it.

    Series that stand below each other without a column that tells them apart are refused.
    """
    rows = np.argsort(series, kind="stable")
    within = np.diff(series[rows]) == 0
    back = within & (_steps(time[rows]) < 0)
    if not back.any():
        return rows, []
    if one_series:
        _check_one_series(name, time, np.flatnonzero(back) + 1)
    if (back | ~within).all():
        said = f"The rows ran backwards in time (column {name!r}) and were turned round."
        return np.lexsort((time, series)), [Change("sorted", said, len(time), name)]
    count = int(back.sum())
    said = f"The rows were sorted by {name!r}: the time went back in {counted(count, 'place')}."
    return np.lexsort((time, series)), [Change("sorted", said, count, name)]


def same_times(
    name: str, time: Array, series: Array, rows: Array, one_series: bool
) -> tuple[Array, list[Change]]:
    """Groups (row,) of sorted rows with the same time and series, and what that changes.

    `rows` are the rows of the user's table, for the message. A time that repeats now and then is a
    slip, and its rows are averaged; one that repeats often means several series.
    """
    repeated = (np.diff(series) == 0) & (_steps(time) == 0)
    count = int(repeated.sum())
    groups = np.cumsum(np.concatenate([[0], ~repeated]))
    if not count:
        return groups, []
    place = int(np.flatnonzero(repeated)[0]) + 1
    if count > thresholds().reading.most_repeated * len(time):
        hint = f"; if the table holds several series, {_apart()}" if one_series else ""
        raise InputError(
            f"The time {_shown(time[place])} in column {name!r} appears twice "
            f"(row {int(rows[place]) + 1}){hint}."
        )
    said = (
        f"{counted(count, 'row')} with a time that was there already (column {name!r}, such as "
        f"{_shown(time[place])}) {'was' if count == 1 else 'were'} averaged with the other row of "
        "that time."
    )
    return groups, [Change("averaged", said, count, name)]


def breaks(time: Array, series: Array) -> Array:
    """True (row,) where the time of sorted rows leaps over a gap."""
    step, longest = _steps(time), thresholds().reading.gap_in_time
    gaps = np.zeros(len(time), dtype=bool)
    edges = np.flatnonzero(np.diff(series, prepend=-1, append=-1))
    for first, end in pairwise(edges):
        inner = step[first : end - 1]
        if len(inner):
            gaps[first + 1 : end] = inner > longest * np.median(inner)
    return gaps


def _check_one_series(name: str, time: Array, restarts: Array) -> None:
    """Refuse long runs of rows that lie side by side in time: they are several series.

    Rows that were merely shuffled make many short runs; files joined in the wrong order make long
    ones that do not overlap. Both can be sorted.
    """
    if 5 * len(restarts) > len(time):
        return
    run = np.searchsorted(restarts, np.argsort(time, kind="stable"), side="right")
    if 3 * int((np.diff(run) != 0).sum()) > len(time):
        row = int(restarts[0])
        raise InputError(
            f"The time in column {name!r} starts again in row {row + 1} ({_shown(time[row])} "
            f"after {_shown(time[row - 1])}): the table seems to hold several series; {_apart()}."
        )


def _apart() -> str:
    name = f"name the column that tells the series apart with {Advice('series')}"
    return f"{name}, or give one table each"


def _shown(moment: Any) -> str:
    if isinstance(moment, np.datetime64):
        return str(np.datetime_as_string(moment, unit="auto"))
    return f"{moment:g}" if isinstance(moment, np.floating) else str(moment)


def _cut(cell: Any) -> str:
    """A cell as it is shown in a message."""
    try:
        text = repr(cell)
    except ValueError:  # a whole number of thousands of digits
        text = "a number of too many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _steps(time: Array) -> Array:
    """Differences of consecutive times (row - 1,), as numbers."""
    return np.diff(time.view(np.int64) if time.dtype.kind in "Mm" else time)


def _shows_time(name: str, values: Array, series: Array) -> bool:
    """Dates, or numbers that move forward, now and then from the beginning again.

    Numbers under a name like `time` that do neither are an error to report, not a variable.
    """
    time = dates_or_numbers(values)
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

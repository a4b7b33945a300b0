"""Stretches of time as users name them: moments, row numbers, ranges; dates are compared in UTC."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from forecause.common.arrays import Floats, Mask
from forecause.data.panel import Panel
from forecause.errors import InputError
from forecause.result import Result

Time = Floats


def data_of(found: Result) -> Panel:
    """The data of a run, of which rows are named."""
    if found.panel is None and not (found.data.source or {}).get("paths"):
        raise InputError(
            "The run was saved without its data, which is no file that could be read again; ask "
            "the run before it is saved, or one that was made of a file."
        )
    return found.panel_of()


def moment(value: Any, time: Time | None, rows: int) -> Any:
    """A moment as the time column has them; without one, or for a whole number beside dates, a row
    number from 0 (negative: from the end)."""
    is_dated = time is not None and time.dtype.kind == "M"
    if time is None or (is_dated and _is_row(value, time)):
        try:
            row = int(value)
        except (TypeError, ValueError):
            raise InputError(
                f"The data has no times: name rows by their number, found {value!r}."
            ) from None
        row += rows if row < 0 else 0
        if not 0 <= row < rows:
            raise InputError(f"There is no row {value}: the data has {rows:,} rows, from 0 on.")
        return row if time is None else time[row]
    if not is_dated:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(f"The times of the data are numbers, found {value!r}.") from None
    try:
        stamp = pd.Timestamp(value)
    except (ValueError, TypeError):
        raise InputError(f"{value!r} is no date that can be read, such as 2026-03-01.") from None
    if pd.isna(stamp):
        raise InputError(f"{value!r} is no date.")
    return (stamp.tz_convert("UTC").tz_localize(None) if stamp.tzinfo else stamp).to_datetime64()


def zone_of(period: Any, data: Any = None) -> Any:
    """The time zone in which a user names a moment or has the index of a table; None if in none."""
    ends: tuple[Any, ...] = (period,)
    with suppress(InputError):
        ends = ends_of(period)
    for end in ends:
        try:
            stamp = pd.Timestamp(end)
        except (ValueError, TypeError):
            continue
        if not pd.isna(stamp) and stamp.tzinfo is not None:
            return stamp.tzinfo
    return getattr(getattr(data, "index", None), "tz", None)


def _is_row(value: Any, time: Time) -> bool:
    """Whether a value beside dates is a row: a whole number, or the text of one that is no date
    within the data, as years are."""
    if not isinstance(value, str):
        return isinstance(value, int | np.integer)
    if not value.removeprefix("-").isdecimal():
        return False
    try:
        stamp = pd.Timestamp(value).to_datetime64()
    except ValueError:
        return True
    return not time[0].astype("datetime64[Y]") <= stamp <= time[-1]


def between(start: Any, end: Any, time: Time | None, rows: int) -> Mask:
    """The rows (row,) from start to end, both included; None leaves an end open."""
    places = np.arange(rows) if time is None else time
    chosen = np.ones(rows, dtype=bool)
    if start is not None:
        chosen &= places >= moment(start, time, rows)
    if end is not None:
        chosen &= places <= moment(end, time, rows)
    if not chosen.any():
        raise InputError(
            f"No row lies between {_said(start)} and {_said(end)}; the data runs from "
            f"{places[0]} to {places[-1]}."
        )
    return chosen


def ends_of(period: Any) -> tuple[Any, Any]:
    """Start and end of a slice, a pair or a text like `2026-01-01..2026-02-01`."""
    if isinstance(period, slice):
        return period.start, period.stop
    if isinstance(period, str) and ".." in period:
        start, _, end = period.partition("..")
        return start.strip() or None, end.strip() or None
    if isinstance(period, tuple) and len(period) == 2:
        return period[0], period[1]
    raise InputError(
        f"Expected a period: a pair (start, end), a slice or 'START..END', found {period!r:.80}."
    )


def _said(moment: Any) -> str:
    return "the end of the data" if moment is None else str(moment)

"""When the rows of a panel were taken, in words: a lag as a time, and the rows still to come."""

from __future__ import annotations

import re
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd

from forecause.data.panel import Panel

UNITS = (  # seconds, one, several
    (604_800.0, "week", "weeks"),
    (86_400.0, "day", "days"),
    (3_600.0, "hour", "hours"),
    (60.0, "minute", "minutes"),
    (1.0, "second", "seconds"),
    (1e-3, "millisecond", "milliseconds"),
    (1e-6, "microsecond", "microseconds"),
)
CALENDAR = ((12, "year", "years"), (3, "quarter", "quarters"), (1, "month", "months"))
MONTHS = {"M": 1, "Q": 3, "Y": 12}  # of pandas' codes, such as MS or QE-DEC
CODE = re.compile(r"(\d*)([MQY])(?:S|E)?(?:-[A-Z]{3})?$")
# Time and memory:
RECENT = 200  # stamps at a series' end from which its calendar is read

Timing = dict[str, Any]


def timing(panel: Panel) -> Timing:
    """How the data was sampled; `step` is in seconds for dates, in the column's units else.

    Dates also have the calendar's code where one fits (`freq`, `months`), and the last stamp of
    every series.
    """
    if panel.time is None:
        return {"kind": "rows", "step": None}
    inner = np.diff(panel.series) == 0
    if panel.time.dtype.kind in "Mm":
        nanoseconds = panel.time.astype(f"{panel.time.dtype.kind}8[ns]").astype(np.int64)
        steps = np.diff(nanoseconds)[inner] / 1e9
        kind = "dates"
    else:
        steps = np.diff(panel.time.astype(np.float64))[inner]
        kind = "numbers"
    step = float(f"{np.median(steps):.9g}") if len(steps) else None
    freq = _calendar(panel) if panel.time.dtype.kind == "M" else None
    code = CODE.match(freq) if freq is not None else None
    months = MONTHS[code[2]] * int(code[1] or 1) if code else None
    ends = [_plain(panel.time[end - 1]) if end else None for _, end in panel.spans]
    return {"kind": kind, "step": step, "freq": freq, "months": months, "ends": ends}


def sampling_text(time: Timing) -> str:
    """One row every what?"""
    if time.get("kind") == "dates" and time.get("step"):
        return "every " + _span(1, time)
    if time.get("kind") == "numbers" and time.get("step"):
        step = f"{time['step']:g}"
        return f"every {'unit' if step == '1' else step + ' units'} of the time column"
    return "in the order of the rows"


def duration(seconds: float) -> str:
    """A number of seconds in the largest unit that divides it evenly enough."""
    for size, one, several in UNITS:
        count = seconds / size
        parts = 1 if size == UNITS[0][0] else 4  # whole weeks, quarters of a day
        if count >= 1 and abs(count * parts - round(count * parts)) < 1e-6:
            return one if count == 1 else f"{count:g} {several}"
    return f"{seconds:g} seconds"


def lag_text(lag: int, time: Timing) -> str:
    """A lag in rows, and in time where that is known."""
    rows = "the same row" if lag == 0 else f"{lag} row{'s' if lag > 1 else ''}"
    if lag and time.get("kind") == "dates" and time.get("step"):
        return f"{rows} ({delay_text(lag, time)})"
    return rows


def delay_text(lag: int, time: Timing) -> str:
    """A lag in the data's own time, in rows where that is unknown."""
    if not (time.get("kind") == "dates" and time.get("step")):
        return lag_text(lag, time)
    span = _span(lag, time)
    return span if span[0].isdigit() else f"1 {span}"


def rows_to_come(time: Timing, series: int, steps: int) -> pd.Index | None:
    """The times of the next rows of a series; None where the data has no times."""
    ends, step = time.get("ends"), time.get("step")
    if not ends or step is None or ends[series] is None:
        return None
    if time["kind"] == "numbers":
        return pd.Index(ends[series] + step * np.arange(1, steps + 1), name="time")
    try:
        end = pd.Timestamp(ends[series])
        freq = time.get("freq") or pd.Timedelta(seconds=step)
        return pd.date_range(end, periods=steps + 1, freq=freq, name="time")[-steps:]
    except (ValueError, OverflowError):
        return None  # a duration, or beyond the last year that pandas knows


def _span(rows: int, time: Timing) -> str:
    """Some rows' time without a leading 1."""
    months = time.get("months")
    if not months:
        return duration(rows * float(time["step"]))
    for size, one, several in CALENDAR:
        if rows * months % size == 0:
            count = rows * months // size
            return one if count == 1 else f"{count} {several}"
    raise AssertionError("every number is a multiple of 1")


def _calendar(panel: Panel) -> str | None:
    """pandas' code for the calendar of the last series' last stamps."""
    assert panel.time is not None
    stamps = pd.DatetimeIndex(panel.time[panel.series == panel.series[-1]][-RECENT:])
    with catch_warnings():
        simplefilter("ignore")  # pandas announces that it will answer with an object
        try:
            code: Any = pd.infer_freq(stamps)
        except (TypeError, ValueError):  # too few, or not in order
            return None
    return getattr(code, "freqstr", code)


def _plain(moment: Any) -> str | float | None:
    if isinstance(moment, np.datetime64):
        return None if np.isnat(moment) else pd.Timestamp(moment).isoformat()
    if isinstance(moment, np.timedelta64):
        return str(moment)
    return float(moment) if np.isfinite(float(moment)) else None

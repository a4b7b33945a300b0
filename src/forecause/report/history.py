"""What the page shows of the data itself: the whole course of each variable, and a close look."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.data.panel import Panel
from forecause.data.scratch import is_large
from forecause.data.windows import Windows

COURSE_POINTS = 400  # of a whole series, as drawn
STRETCH_ROWS = 150  # of the close look
TICKS = 5
UNITS = (  # seconds, one, several
    (86_400.0, "day", "days"),
    (3_600.0, "hour", "hours"),
    (60.0, "minute", "minutes"),
    (1.0, "second", "seconds"),
    (1e-3, "millisecond", "milliseconds"),
    (1e-6, "microsecond", "microseconds"),
)


def timing(panel: Panel) -> dict[str, Any]:
    """How the data was sampled; `step` is in seconds for dates, in the column's units else."""
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
    return {"kind": kind, "step": short(np.median(steps)) if len(steps) else None}


def sampling_text(time: dict[str, Any]) -> str:
    """One row every what?"""
    if time.get("kind") == "dates" and time.get("step"):
        return "every " + duration(float(time["step"]))
    if time.get("kind") == "numbers" and time.get("step"):
        return f"every {time['step']:g} units of the time column"
    return "in the order of the rows"


def duration(seconds: float) -> str:
    """A number of seconds in the largest unit that divides it evenly enough."""
    for size, one, several in UNITS:
        count = seconds / size
        if count >= 1 and abs(count * 4 - round(count * 4)) < 1e-6:
            return one if count == 1 else f"{count:g} {several}"
    return f"{seconds:g} seconds"


def lag_text(lag: int, time: dict[str, Any]) -> str:
    """A lag in rows, and in time where that is known."""
    rows = "the same row" if lag == 0 else f"{lag} row{'s' if lag > 1 else ''}"
    if lag and time.get("kind") == "dates" and time.get("step"):
        span = duration(lag * float(time["step"]))
        return f"{rows} ({span if span[0].isdigit() else '1 ' + span})"
    return rows


def course(panel: Panel, values: npt.NDArray[Any] | None = None) -> dict[str, Any]:
    """All rows of every variable, or of other `values`, in at most COURSE_POINTS points.

    Peaks are kept: long series become pairs (lowest, highest) of consecutive bins, in the order
    they occur.
    """
    rows, values = panel.rows, panel.values if values is None else values
    if rows <= COURSE_POINTS:
        points = np.asarray(values, dtype=np.float64)
    else:
        edges = np.linspace(0, rows, COURSE_POINTS // 2 + 1).astype(int)
        points = np.concatenate([_extremes(values[a:b]) for a, b in pairwise(edges.tolist())])
    return {
        "rows": rows,
        "values": short(points.T),
        "ticks": ticks(panel, 0, rows),
        "breaks": short(panel.starts[1:][:200] / rows),
    }


def time_parts(panel: Panel) -> dict[str, Any]:
    """The course of the data, of what time explains of it, and of what is left, where it does."""
    if panel.course is None or is_large(panel.values.shape, np.float64):
        return {}
    explained = panel.course.of_rows(panel)
    return {
        "values": course(panel, panel.values + explained)["values"],
        "explained": course(panel, explained)["values"],
        "left": course(panel)["values"],
    }


def stretch(windows: Windows, held_out: Windows) -> npt.NDArray[np.int64]:
    """Indices into `held_out`: the last unbroken run of STRETCH_ROWS windows, or the longest."""
    cuts = np.flatnonzero(np.diff(held_out.rows) != 1) + 1
    runs = np.split(np.arange(len(held_out)), cuts)
    enough = [run for run in runs if len(run) >= STRETCH_ROWS]
    chosen = enough[-1] if enough else max(runs, key=len)
    return chosen[-STRETCH_ROWS:].astype(np.int64)


def ticks(panel: Panel, start: int, end: int) -> list[list[Any]]:
    """[place within the rows start..end as a share, label] of a few rows."""
    places = np.unique(np.linspace(start, end - 1, TICKS).astype(int))
    span = max(end - 1 - start, 1)
    return [[round((int(row) - start) / span, 4), _label(panel, int(row))] for row in places]


def _label(panel: Panel, row: int) -> str:
    if panel.time is None:
        return f"{row + 1:,}"
    moment = panel.time[row]
    if panel.time.dtype.kind == "M":
        text = str(np.datetime_as_string(moment, unit="m")).replace("T", " ")
        return text.removesuffix(" 00:00")
    if panel.time.dtype.kind == "m":
        return f"{moment / np.timedelta64(1, 's'):g} s"
    return f"{float(moment):g}"


def _extremes(part: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Lowest and highest value of each column (2, variable), in the order they occur."""
    known = np.isfinite(part)
    low = np.where(known, part, np.inf).argmin(0)
    high = np.where(known, part, -np.inf).argmax(0)
    first, second = np.minimum(low, high), np.maximum(low, high)
    columns = np.arange(part.shape[1])
    return np.stack([part[first, columns], part[second, columns]]).astype(np.float64)


def short(values: npt.ArrayLike) -> Any:
    """Nested lists of numbers with 5 significant digits; what is not finite is None."""
    return _short(np.asarray(values, dtype=np.float64).tolist())


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(part) for part in value]
    return float(f"{value:.5g}") if math.isfinite(value) else None

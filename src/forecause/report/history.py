"""What the page shows of the data itself: the whole course of each variable, and a close look."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.common.arrays import Array, Floats, Index
from forecause.data.panel import Panel
from forecause.data.scratch import is_large
from forecause.data.windows import Windows

COURSE_POINTS = 400  # of a whole series, as drawn
STRETCH_ROWS = 150  # of the close look
FEWEST_POINTS, FEWEST_ROWS = 40, 30  # of the same, where variables are very many
MOST_DRAWN, MOST_CLOSE = 80_000, 30_000  # points of all variables together, as far as that goes
TICKS = 5


def course(panel: Panel, values: Floats | None = None) -> dict[str, Any]:
    """All rows of every variable, or of other `values`, in at most COURSE_POINTS points each.

    Peaks are kept: long series become pairs (lowest, highest) of consecutive bins, in the order
    they occur.
    """
    rows, values = panel.rows, panel.values if values is None else values
    most = int(np.clip(MOST_DRAWN // values.shape[1], FEWEST_POINTS, COURSE_POINTS))
    if rows <= most:
        points = np.asarray(values, dtype=np.float64)
    else:
        edges = np.linspace(0, rows, most // 2 + 1).astype(int)
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


def stretch(windows: Windows, held_out: Windows) -> Index:
    """Indices into `held_out`: the last unbroken run of STRETCH_ROWS windows, or the longest."""
    cuts = np.flatnonzero(np.diff(held_out.rows) != 1) + 1
    runs = np.split(np.arange(len(held_out)), cuts)
    most = int(np.clip(MOST_CLOSE // windows.shape[1], FEWEST_ROWS, STRETCH_ROWS))
    enough = [run for run in runs if len(run) >= most]
    chosen = enough[-1] if enough else max(runs, key=len)
    return chosen[-most:].astype(np.int64)


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


def _extremes(part: Floats) -> Array:
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

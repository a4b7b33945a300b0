"""What a table's columns need before they can be variables.

Columns of text, dates or one value are left out, cells that the user names become missing, and
values that look like errors are named; nothing is changed in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.advice import Advice
from forecause.data.cells import MOST_LEVELS, Missing, NotNumbers, absent_cells, numbers
from forecause.data.findings import Change, Problems, counted
from forecause.data.panel import SMALLEST, column_ranges
from forecause.data.scratch import copied, new_array, pieces
from forecause.data.sources.rawtable import RawTable
from forecause.errors import InputError

Array = npt.NDArray[Any]

# Numbers that measuring devices and archives write for "no value".
SENTINELS = (-99, -999, -9999, -99999, -999999, -32768, 999, 9999, 99999, 999999, 1e20, 1e30, 1e36)
MOST_LOOKED_AT = 1_000_000  # values of a column in which odd ones are looked for
FAR = 20.0  # robust standard deviations from the median at which a value is wild
APART = 3.0  # and this many times as far as the farthest ordinary value
MOST_NO_DATES = 0.1  # of the cells of a column of dates
MOST_WILD = 3  # cells of a column; more are the column's own nature


def left_out_columns(
    origins: Sequence[str],
    tables: Sequence[RawTable],
    names: Sequence[str],
    missing: Missing,
    problems: Problems,
) -> tuple[dict[str, Change], set[str]]:
    """The columns of text or dates, by name, and those that are a problem, which is remembered."""
    left_out: dict[str, Change] = {}
    refused: set[str] = set()
    for origin, table in zip(origins, tables, strict=True):
        for name in names:
            if name in left_out or table.head(name).dtype.kind in "fiub":
                continue
            try:
                numbers(name, table.column(name), missing)
            except NotNumbers as error:
                left_out[name] = _left_out(name, table.column(name), str(error))
            except InputError as error:
                problems.add(f"In {origin}: {error}" if origin else str(error))
                refused.add(name)
    return left_out, refused


def _left_out(name: str, values: Array, reason: str) -> Change:
    if values.dtype.kind in "Mm":
        said = f"Column {name!r} holds dates and was left out"
        advice = Advice("time", name, "if it is the time, say {}")
        return Change("left out", said, column=name, advice=(advice,))
    known = [str(cell) for cell in values[~absent_cells(values)]]
    odd = _no_date(known)
    if odd is not None:
        said = f"Column {name!r} holds dates, but also {odd!r}, and was left out"
        advice = Advice("time", name, "if it is the time, mend that cell and say {}")
        return Change("left out", said, column=name, advice=(advice,))
    levels = len(set(known))
    said = f"{reason[:-1]} and was left out."
    if not 2 <= levels <= min(MOST_LEVELS, len(known) / 2):
        return Change("left out", said, column=name)
    words = f"with its {levels} different values, {{}} makes it a variable"
    return Change("left out", said, column=name, advice=(Advice("labels", (name,), words),))


def _no_date(cells: Sequence[str]) -> str | None:
    """The first cell that is no date, where nearly all others are."""
    parsed = pd.to_datetime(pd.Series(cells), errors="coerce", format="ISO8601", utc=True)
    strange = parsed.isna().to_numpy()
    if not len(cells) or not 0 < strange.mean() <= MOST_NO_DATES:
        return None
    return cells[int(strange.argmax())]


def with_missing(
    values: Array, names: Sequence[str], missing: Missing
) -> tuple[Array, list[Change]]:
    """Values (row, column) with NaN where they equal a number in `missing`; copied if any do."""
    wanted = np.array([_number(one) for one in missing], dtype=np.float64)
    wanted = wanted[~np.isnan(wanted)].astype(values.dtype)
    if not len(wanted):
        return values, []
    made, counts = values, np.zeros(len(names), dtype=np.int64)
    for rows in pieces(values.shape, values.dtype):
        hit = np.isin(values[rows], wanted)
        if hit.any():
            made = copied(values) if made is values else made
            made[rows][hit] = np.nan
            counts += hit.sum(0)
    shown = ", ".join(f"{one:g}" for one in wanted)
    return made, [
        Change(
            "missing",
            f"{counted(int(count), 'cell')} of {name!r} with the value {shown} "
            f"{'is' if count == 1 else 'are'} missing, as asked.",
            int(count),
            name,
        )
        for name, count in zip(names, counts, strict=True)
        if count
    ]


def _number(cell: str | float) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def without_constants(
    values: Array, names: Sequence[str]
) -> tuple[Array, tuple[str, ...], list[Change]]:
    """Values (row, column) and names without the columns that hold one value or none."""
    low, high = column_ranges(values)
    with np.errstate(invalid="ignore"):
        varying = ~(high - low <= SMALLEST) & (low <= high)
    if varying.all() or not varying.any():  # a table of nothing else is refused as it is
        return values, tuple(names), []
    changes = []
    for column in np.flatnonzero(~varying).tolist():
        empty = not low[column] <= high[column]
        what = "holds no value at all" if empty else f"is constant ({low[column]:g})"
        said = f"Column {names[column]!r} {what} and was left out."
        value = None if empty else float(low[column])
        changes.append(Change("left out", said, column=names[column], value=value))
    kept = np.flatnonzero(varying).tolist()
    made = new_array((len(values), len(kept)), values.dtype)
    for rows in pieces(values.shape, values.dtype):
        made[rows] = values[rows][:, kept]
    return made, tuple(names[column] for column in kept), changes


def doubtful_values(values: Array, names: Sequence[str]) -> list[Change]:
    """Sentences about values that look like a code for missing, or like single wild errors."""
    changes = []
    step = max(1, len(values) // MOST_LOOKED_AT)
    for column, name in enumerate(names):
        cells = np.asarray(values[::step, column], dtype=np.float64)
        change = _doubtful(name, cells[np.isfinite(cells)])
        if change is not None:
            changes.append(change)
    return changes


def _doubtful(name: str, cells: npt.NDArray[np.float64]) -> Change | None:
    """Codes such as -9999, or any extreme that repeats; else a few cells far from all others."""
    if len(cells) < 20:
        return None
    ends = (cells.min(), cells.max())
    codes = [end for end in ends if end in SENTINELS or (cells == end).sum() > 1]
    codes = [code for code in codes if _far_from_rest(code, cells[cells != code])]
    if codes:
        count = int(np.isin(cells, codes).sum())
        shown = " and ".join(f"{code:g}" for code in codes)
        said = (
            f"Column {name!r} holds {shown} in {counted(count, 'row')}, far from its other values"
        )
        words = "if that stands for a missing value, say {}"
        advice = Advice("missing", tuple(map(float, codes)), words)
        return Change("doubtful", said, count, name, (advice,))
    distance = np.abs(cells - np.median(cells))
    order = np.argsort(distance)
    for count in range(1, MOST_WILD + 1):
        wild = cells[order[-count:]]
        ordinary = distance[order[:-count]]
        spread = 1.4826 * float(np.median(ordinary))
        nearest = float(distance[order[-count]])
        if spread > 0 and nearest > FAR * spread and nearest > APART * float(ordinary.max()):
            wild_ones = sorted(set(wild.tolist()))
            said = (
                f"Column {name!r} holds {counted(count, 'value')} far from all others "
                f"({', '.join(f'{cell:g}' for cell in wild_ones)}). Nothing was removed"
            )
            advice = Advice("missing", tuple(wild_ones), "if it is an error, say {}")
            return Change("doubtful", said, count, name, (advice,))
    return None


def _far_from_rest(code: float, rest: npt.NDArray[np.float64]) -> bool:
    if len(rest) < 10:
        return False
    width = float(rest.max() - rest.min())
    distance = float(np.abs(rest - code).min())
    return width > 0 and distance > width

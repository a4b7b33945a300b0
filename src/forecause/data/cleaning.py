"""What a table's columns need before they can be variables.

Columns of text, dates or one value are left out, cells that the user names become missing, and
values that look like errors are named; nothing is changed in silence. Of columns that only grow,
counters become rates; clocks and running numbers are left out. A counter's level says how long it
has run; what may cause something is how much it grew since the row before. After a reset it has
grown by what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config.advice import Advice
from forecause.config.thresholds import thresholds
from forecause.data.cells import Missing, NotNumbers, absent_cells, numbers
from forecause.data.findings import SMALLEST, Change, Problems, column_ranges, counted
from forecause.data.scratch import copied, new_array, pieces
from forecause.data.sources.rawtable import RawTable
from forecause.errors import InputError

Array = npt.NDArray[Any]

# Formats:
# Numbers that measuring devices and archives write for "no value".
SENTINELS = (-99, -999, -9999, -99999, -999999, -32768, 999, 9999, 99999, 999999, 1e20, 1e30, 1e36)

# Time and memory:
MOST_LOOKED_AT = 1_000_000  # values of a column in which odd ones are looked for
FIRST_LOOK = 5_000  # rows that show most columns to be no counters

Kind = Literal["counter", "clock", "number"]

LEAVE = "none"  # asks that all columns stay as they are
NAMED = re.compile(r"(^|[_\W])(total|count|counter|cumulative|cum|uptime)($|[_\W])", re.IGNORECASE)
SAID = {
    "counter": "only grows, as a counter does, and was taken as its increase from row to row",
    "clock": "grows by the same step from row to row, as a clock does, and was left out",
    "number": "is a number that only grows, and seldom, and was left out",
}


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
    if not 2 <= levels <= min(thresholds().reading.most_labels, len(known) / 2):
        return Change("left out", said, column=name)
    words = f"with its {levels} different values, {{}} makes it a variable"
    return Change("left out", said, column=name, advice=(Advice("labels", (name,), words),))


def _no_date(cells: Sequence[str]) -> str | None:
    """The first cell that is no date, where nearly all others are."""
    parsed = pd.to_datetime(pd.Series(cells), errors="coerce", format="ISO8601", utc=True)
    strange = parsed.isna().to_numpy()
    if not len(cells) or not 0 < strange.mean() <= thresholds().reading.most_no_dates:
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
    bounds = thresholds().reading
    distance = np.abs(cells - np.median(cells))
    order = np.argsort(distance)
    for count in range(1, bounds.most_wild + 1):
        wild = cells[order[-count:]]
        ordinary = distance[order[:-count]]
        spread = 1.4826 * float(np.median(ordinary))
        nearest = float(distance[order[-count]])
        farthest = max(bounds.wild * spread, bounds.apart * float(ordinary.max()))
        if spread > 0 and nearest > farthest:
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


def without_counters(
    values: Array,
    names: Sequence[str],
    starts: Array,
    asked: Sequence[str] = (),
    has_time: bool = False,
) -> tuple[Array, tuple[str, ...], list[Change]]:
    """Values (row, column) with rates for counters, without clocks; their names, and changes.

    `starts` (row,) is true where a stretch begins: its first row has no rate. `asked` names
    counters, whatever they look like, or is LEAVE. Unless `has_time`, a clock may be the time.
    """
    if tuple(asked) == (LEAVE,):
        return values, tuple(names), []
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise InputError(
            f"There is no column of numbers {unknown[0]!r} that could be a counter: the columns "
            f"are {', '.join(map(repr, names[:20]))}."
        )
    kinds = {
        column: "counter" if name in asked else _kind(name, values[:, column], starts)
        for column, name in enumerate(names[: values.shape[1]])  # others were refused
    }
    found = {column: kind for column, kind in kinds.items() if kind is not None}
    gone = [column for column, kind in found.items() if kind != "counter"]
    if not found or len(gone) == len(names):
        return values, tuple(names), []
    kept = [column for column in range(len(names)) if column not in gone]
    made = np.array(values[:, kept], dtype=np.result_type(values.dtype, np.float64))
    for place, column in enumerate(kept):
        if column in found:
            made[:, place] = rate(made[:, place], starts)
    advice = Advice("counter", (LEAVE,), "{} leaves such columns as they are")

    def may_be_time(kind: Kind, name: str) -> tuple[Advice, ...]:
        if has_time or kind != "clock":
            return ()
        return (Advice("time", name, "if it is the time, say {}"),)

    changes = [
        Change(
            "counter" if kind == "counter" else "left out",
            f"Column {names[column]!r} {SAID[kind]}",
            column=names[column],
            advice=() if names[column] in asked else (*may_be_time(kind, names[column]), advice),
        )
        for column, kind in found.items()
    ]
    return made, tuple(names[column] for column in kept), changes


def rate(cells: Array, starts: Array) -> npt.NDArray[np.float64]:
    """The increase from row to row (row,); after a reset, the value itself."""
    step = np.diff(cells, prepend=np.nan)
    grown = np.where(step < 0, cells, step)
    grown[starts] = np.nan
    return np.asarray(grown, dtype=np.float64)


def _kind(name: str, cells: Array, starts: Array) -> Kind | None:
    """What a column is that never goes back but for resets; None of all others."""
    bounds, head = thresholds().reading, slice(0, FIRST_LOOK)
    if len(cells) < bounds.counted_rows or not _only_grows(cells[head], starts[head]):
        return None
    cells = np.asarray(cells, dtype=np.float64)
    if len(cells) > FIRST_LOOK and not _only_grows(cells, starts):
        return None
    step = np.diff(cells)[~starts[1:]]
    grown = step[step > 0]
    known = cells[np.isfinite(cells)]
    if len(grown) < bounds.least_changes:
        levels = len(np.unique(known))
        return "number" if levels > 2 and _whole(known) else None
    usual = np.median(step[np.isfinite(step)])
    if usual > 0 and np.isclose(step, usual, rtol=1e-9).mean() >= bounds.same_steps:
        return "clock"
    often = len(grown) >= bounds.often * len(step)  # a month or a level grows seldom
    return "counter" if NAMED.search(name) or (often and _whole(known)) else None


def _whole(cells: Array) -> bool:
    return bool((cells == np.floor(cells)).all())


def _only_grows(cells: Array, starts: Array) -> bool:
    """Never negative, never down but for a few resets."""
    bounds = thresholds().reading
    before, after = cells[:-1], cells[1:]
    back = (after < before) & ~starts[1:]
    resets = back & (after < bounds.reset_below * before)
    few = resets.sum() <= bounds.most_resets * len(cells)
    with np.errstate(invalid="ignore"):
        return bool((resets == back).all() and few and not (cells < 0).any())

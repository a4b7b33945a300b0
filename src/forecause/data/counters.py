"""Columns that only grow: counters become rates, clocks and running numbers are left out.

A counter's level says how long it has run; what may cause something is how much it grew since the
row before. After a reset it has grown by what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from forecause.advice import Advice
from forecause.data.findings import Change
from forecause.errors import InputError

Array = npt.NDArray[Any]
Kind = Literal["counter", "clock", "number"]

LEAVE = "none"  # asks that all columns stay as they are
FEWEST_ROWS = 100  # in which never going back is no accident
LOOKED_AT = 5_000  # rows that show most columns to be none of these
MOST_RESETS = 0.01  # of the rows
RESET = 0.5  # of the value before, which a reset falls below
OFTEN = 0.5  # of the rows in which a counter grows that no name tells
SAME_STEPS = 0.99  # of the steps of a clock
FEWEST_CHANGES = 10  # fewer are those of a running number, such as a build's
NAMED = re.compile(r"(^|[_\W])(total|count|counter|cumulative|cum|uptime)($|[_\W])", re.IGNORECASE)
SAID = {
    "counter": "only grows, as a counter does, and was taken as its increase from row to row",
    "clock": "grows by the same step from row to row, as a clock does, and was left out",
    "number": "is a number that only grows, and seldom, and was left out",
}


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
    head = slice(0, LOOKED_AT)
    if len(cells) < FEWEST_ROWS or not _only_grows(cells[head], starts[head]):
        return None
    cells = np.asarray(cells, dtype=np.float64)
    if len(cells) > LOOKED_AT and not _only_grows(cells, starts):
        return None
    step = np.diff(cells)[~starts[1:]]
    grown = step[step > 0]
    known = cells[np.isfinite(cells)]
    if len(grown) < FEWEST_CHANGES:
        levels = len(np.unique(known))
        return "number" if levels > 2 and _whole(known) else None
    usual = np.median(step[np.isfinite(step)])
    if usual > 0 and np.isclose(step, usual, rtol=1e-9).mean() >= SAME_STEPS:
        return "clock"
    often = len(grown) >= OFTEN * len(step)  # a month or a level grows seldom
    return "counter" if NAMED.search(name) or (often and _whole(known)) else None


def _whole(cells: Array) -> bool:
    return bool((cells == np.floor(cells)).all())


def _only_grows(cells: Array, starts: Array) -> bool:
    """Never negative, never down but for a few resets."""
    before, after = cells[:-1], cells[1:]
    back = (after < before) & ~starts[1:]
    resets = back & (after < RESET * before)
    few = resets.sum() <= MOST_RESETS * len(cells)
    with np.errstate(invalid="ignore"):
        return bool((resets == back).all() and few and not (cells < 0).any())

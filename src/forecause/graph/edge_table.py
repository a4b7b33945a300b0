"""The cells of an edge table: text, numbers, true/false or nothing, so that any format fits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from forecause.errors import InputError

EDGE_COLUMNS = ("source", "target", "lag", "score")

Cell = str | bool | int | float | None


def plain_cells(name: str, values: Sequence[Any]) -> list[Cell]:
    """The values as Python's own str, bool, int, float or None (NaN stays NaN)."""
    return [_plain(name, value) for value in values]


def plain_column(name: str, values: Sequence[Any]) -> pd.Series[Any]:
    """A column of one settled type: the same content gives the same column however it came.

    bool, int64 or float64 where every cell allows it (missing numbers are NaN), object otherwise
    (missing cells are None). Empty text counts as missing, since most formats cannot tell.
    """
    cells = [None if cell == "" else cell for cell in plain_cells(name, values)]
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {bool} and None not in cells:
        return pd.Series(cells, dtype=bool)
    if kinds == {int} and None not in cells:
        return pd.Series(cells, dtype="int64")
    if kinds <= {int, float}:
        return pd.Series([math.nan if cell is None else cell for cell in cells], dtype="float64")
    absent = [cell is None or cell != cell for cell in cells]
    settled = [None if gone else cell for gone, cell in zip(absent, cells, strict=True)]
    return pd.Series(settled, dtype=object)


def _plain(name: str, value: Any) -> Cell:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, int) and abs(value) >= 2**63:
        raise InputError(f"The edge column {name!r} holds a whole number beyond 64 bits.")
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise InputError(
        f"The edge column {name!r} holds a value of type {type(value).__name__}; expected text, "
        "numbers or true/false."
    )


def edge_records(edges: pd.DataFrame) -> list[dict[str, Cell]]:
    """One dictionary per edge; cells that are missing are None."""
    columns = {str(n): plain_cells(str(n), edges[n].to_list()) for n in edges.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def edge_keys(edges: pd.DataFrame) -> list[tuple[str, str, int]]:
    """(source, target, lag) of every edge."""
    columns = (edges[name].tolist() for name in ("source", "target", "lag"))
    return [
        (str(source), str(target), int(lag)) for source, target, lag in zip(*columns, strict=True)
    ]


def between_variables(edges: pd.DataFrame) -> pd.Series[bool]:
    """Which edges, (edge,), link two variables; the others link one to its own past."""
    return edges["source"] != edges["target"]


def edge_table(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The way back: a table with a column for every key that any edge has."""
    columns = dict.fromkeys([*EDGE_COLUMNS, *(key for record in records for key in record)])
    table = {name: [record.get(name) for record in records] for name in columns}
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in table.items()})


CAUSE = "-->"  # the source drives the target
POSSIBLE_CAUSE = "o->"  # it does, or a hidden variable drives both
CONFOUNDED = "<->"  # a hidden variable drives both
UNDIRECTED = "o-o"  # one drives the other within the same row, either way
CONFLICTING = "x-x"  # the same, with evidence for both ways

CAUSAL = (CAUSE, POSSIBLE_CAUSE)
WITHOUT_DIRECTION = (UNDIRECTED, CONFLICTING)


def marks_of(edges: pd.DataFrame) -> pd.Series[str]:
    """The mark of every edge, in the order of the table."""
    if "mark" not in edges:
        return pd.Series(CAUSE, index=edges.index, dtype=object)
    return edges["mark"].where(edges["mark"].notna(), CAUSE).astype(object)


def mirrored(mark: str) -> str:
    """The same link seen from its other end."""
    return mark[::-1].translate(str.maketrans("<>", "><"))

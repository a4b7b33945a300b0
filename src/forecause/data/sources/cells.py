"""From the cells of a column to numbers or labels, or a sentence that names the odd cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.errors import InputError

# Text that stands for a missing value, with or without spaces around it.
MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "Null", "NULL"),
    *("-", "--", ".", "?"),
)
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")

Missing = Sequence[str | float]  # cells that a user names as missing: text, or numbers


class NotNumbers(InputError):
    """A column of text or dates: no variable, but no fault of the table either."""


def numbers(name: str, values: npt.NDArray[Any], missing: Missing = ()) -> npt.NDArray[Any]:
    """The column as float32 if it is that, else as float64, with NaN for missing cells (row,).

    Text that is named in `missing` counts as missing too; see `with_missing` for numbers.
    """
    if values.dtype in (np.float32, np.float64):
        return values
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind in "Mm":
        raise NotNumbers(
            f"Column {name!r} holds dates ({values[0]} in row 1); remove it or name it with --time."
        )
    if values.dtype.kind == "c":
        raise InputError(f"Column {name!r} holds complex numbers; use their parts or their size.")
    return _numbers_from_objects(name, values, missing)


def label_codes(name: str, values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Codes (row,) of text or whole-number labels, and the labels by first appearance."""
    import pandas as pd

    absent = np.flatnonzero(pd.isna(values))
    if len(absent):
        raise InputError(f"Column {name!r} has no label in row {absent[0] + 1}.")
    if values.dtype.kind == "f":
        broken = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)))
        if len(broken):
            raise InputError(
                f"Column {name!r} holds {values[broken[0]]:g} in row {broken[0] + 1}; labels must "
                "be text or whole numbers."
            )
        values = values.astype(np.int64)
    codes, found = pd.factorize(values.astype(object))
    labels = [str(label) for label in found]
    if len(set(labels)) < len(labels):
        raise InputError(f"Column {name!r} holds labels that differ in type but not in text.")
    return codes.astype(np.int64), labels


def absent_cells(values: npt.NDArray[Any], missing: Missing = ()) -> npt.NDArray[np.bool_]:
    """Where a column of objects (row,) holds nothing, or what stands for nothing."""
    import pandas as pd

    cells = pd.Series(values.astype(object), dtype=object)
    trimmed = cells.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    return np.asarray((cells.isna() | trimmed.isin([*MISSING, *missing])).to_numpy())


def _numbers_from_objects(
    name: str, values: npt.NDArray[Any], missing: Missing
) -> npt.NDArray[np.float64]:
    import pandas as pd

    cells = pd.Series(values.astype(object), dtype=object)
    present = ~absent_cells(values, missing)
    read = pd.to_numeric(cells.where(present, None), errors="coerce").to_numpy(np.float64)
    odd = np.flatnonzero(present & np.isnan(read))
    if not len(odd):
        return np.asarray(read)
    cell, row = cells.iloc[odd[0]], odd[0] + 1
    shown = repr(cell if len(str(cell)) <= 40 else str(cell)[:37] + "...")
    if DECIMAL_COMMA.fullmatch(str(cell)):
        raise InputError(
            f"Column {name!r} holds {shown} in row {row}, a number with a decimal comma; write "
            "decimal points."
        )
    if 2 * len(odd) <= present.sum():
        others = f" and {len(odd) - 1} more such cells" if len(odd) > 1 else ""
        raise InputError(
            f"Column {name!r} holds numbers, but {shown} in row {row}{others}; leave the cell "
            f"empty if the value is missing, or say --missing {cell}."
        )
    raise NotNumbers(f"Column {name!r} holds text ({shown} in row {row}).")

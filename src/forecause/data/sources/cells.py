"""From the cells of a column to numbers or labels, or a sentence that names the odd cell."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.errors import InputError

MISSING = ("", "NA", "NaN", "nan", "null", "NULL")  # text that stands for a missing value
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")


def numbers(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The column as float32 if it is that, else as float64, with NaN for missing cells (row,)."""
    if values.dtype in (np.float32, np.float64):
        return values
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind in "Mm":
        raise InputError(
            f"Column {name!r} holds dates ({values[0]} in row 1); remove it or name it with --time."
        )
    if values.dtype.kind == "c":
        raise InputError(f"Column {name!r} holds complex numbers; use their parts or their size.")
    return _numbers_from_objects(name, values)


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


def _numbers_from_objects(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    import pandas as pd

    cells = pd.Series(values.astype(object), dtype=object)
    present = ~(cells.isna() | cells.isin(MISSING)).to_numpy()
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
        raise InputError(
            f"Column {name!r} holds numbers, but {shown} in row {row}; leave the cell empty if "
            "the value is missing."
        )
    raise InputError(
        f"Column {name!r} holds text ({shown} in row {row}); remove it or name it: with --labels "
        f"{name} if it is a variable of labels, else with --time, --series or --domain."
    )

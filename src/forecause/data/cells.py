"""From the cells of a column to numbers or labels.

A variable of labels has one indicator column per level.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.common.arrays import Array
from forecause.config.advice import Advice
from forecause.config.thresholds import thresholds
from forecause.data.variables import Label
from forecause.errors import InputError

# Text that stands for a missing value, with or without spaces around it.
MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "Null", "NULL"),
    *("-", "--", ".", "?"),
)
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
# Numbers with marks between their thousands, by their decimal mark: 1.849,81 and 1,849.81, of which
# two are enough; 1 849,81 and 1'849.81, whose spaces and apostrophes can mean nothing else.
APART = " '\u2019\u00a0\u2009\u202f"
WITH_THOUSANDS = {
    ",": re.compile(
        rf"[-+]?\d{{1,3}}((\.\d{{3}})+,\d+|(\.\d{{3}}){{2,}}|([{APART}]\d{{3}})+(,\d+)?)"
    ),
    ".": re.compile(
        rf"[-+]?\d{{1,3}}((,\d{{3}})+\.\d+|(,\d{{3}}){{2,}}|([{APART}]\d{{3}})+(\.\d+)?)"
    ),
}
PERHAPS_THOUSANDS = {
    ",": re.compile(rf"[-+]?(\d+|\d{{1,3}}([.{APART}]\d{{3}})+)(,\d+)?"),
    ".": re.compile(rf"[-+]?(\d+|\d{{1,3}}([,{APART}]\d{{3}})+)(\.\d+)?"),
}

OTHER = "other"  # the level that rare ones are pooled in

Column = npt.NDArray[Any]  # (row,)
Codes = npt.NDArray[np.int64]
Missing = Sequence[str | float]  # cells that a user names as missing: text, or numbers


class NotNumbers(InputError):
    """A column of text or dates: no variable, but no fault of the table either."""


def numbers(name: str, values: Column, missing: Missing = ()) -> Column:
    """The column as float32 if it is that, else as float64, with NaN for missing cells (row,).

    Text that is named in `missing` counts as missing too; see `with_missing` for numbers.
    """
    if values.dtype in (np.float32, np.float64):
        return values
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind in "Mm":
        raise NotNumbers(
            f"Column {name!r} holds dates ({values[0]} in row 1); remove it or name it with "
            f"{Advice('time')}."
        )
    if values.dtype.kind == "c":
        raise InputError(f"Column {name!r} holds complex numbers; use their parts or their size.")
    return _numbers_from_objects(name, values, missing)


def numbers_with_thousands(values: Column, decimal: str, missing: Missing = ()) -> Array | None:
    """Text such as 1.849,81 as numbers (row,); None where a cell is no such number."""
    absent = absent_cells(values, missing)
    texts = [str(cell).strip() for cell in values[~absent]]
    if not texts or not all(map(PERHAPS_THOUSANDS[decimal].fullmatch, texts)):
        return None
    plain = str.maketrans({**dict.fromkeys(f".,{APART}"), decimal: "."})
    found = np.full(len(values), np.nan)
    found[~absent] = [float(text.translate(plain)) for text in texts]
    return found


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """A column of labels as it was read: codes (row,) into its levels, -1 where missing."""

    codes: Codes
    levels: list[Any]  # numbers or text

    def at(self, rows: npt.NDArray[Any]) -> LabelColumn:
        """These rows in this order."""
        return LabelColumn(self.codes[rows], self.levels)

    def coded_by(self, levels: Sequence[Any]) -> Codes:
        """Its codes (row,) into other levels, which hold all of its own."""
        place = {level: i for i, level in enumerate(levels)}
        table = np.array([*(place[level] for level in self.levels), -1], dtype=np.int64)
        return np.asarray(table[self.codes])  # -1, missing, takes the last


def known_labels(name: str, values: Column) -> LabelColumn:
    """Text or whole numbers as labels, in order of appearance; none may be missing."""
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
    try:
        codes, levels = pd.factorize(values.astype(object))
    except TypeError:
        raise InputError(
            f"Column {name!r} holds lists or other objects; labels must be text or whole numbers."
        ) from None
    return LabelColumn(codes.astype(np.int64), _texts(name, map(str, levels)))


def _texts(name: str, labels: Iterable[str]) -> list[str]:
    """The labels, which must differ and be such that a file can hold them."""
    texts = list(labels)
    for label in texts:
        if any("\ud800" <= letter <= "\udfff" for letter in label):
            raise InputError(
                f"Column {name!r} holds the label {label!r}, half of a character pair, which no "
                "file can hold; rename it."
            )
    if len(set(texts)) < len(texts):
        raise InputError(f"Column {name!r} holds labels that differ in type but not in text.")
    return texts


def absent_cells(values: Column, missing: Missing = ()) -> npt.NDArray[np.bool_]:
    """Where a column of objects (row,) holds nothing, or what stands for nothing."""
    cells = as_objects(values)
    trimmed = cells.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    return np.asarray((cells.isna() | trimmed.isin([*MISSING, *missing])).to_numpy())


def as_objects(values: Column) -> pd.Series[Any]:
    """A column of cells of any type."""
    return pd.Series(values.astype(object), dtype=object)


def _numbers_from_objects(name: str, values: Column, missing: Missing) -> Array:
    cells = as_objects(values)
    present = ~absent_cells(values, missing)
    try:
        read = pd.to_numeric(cells.where(present, None), errors="coerce").to_numpy(np.float64)
    except OverflowError:
        raise InputError(
            f"Column {name!r} holds a whole number that is too large; rescale it."
        ) from None
    odd = np.flatnonzero(present & np.isnan(read))
    if not len(odd):
        return np.asarray(read)
    texts = [str(one).strip() for one in cells[present]]
    for decimal, pattern in WITH_THOUSANDS.items():
        if any(map(pattern.fullmatch, texts)):
            found = numbers_with_thousands(values, decimal, missing)
            if found is not None:
                return found
    cell, row = cells.iloc[odd[0]], odd[0] + 1
    shown = repr(cell if len(str(cell)) <= 40 else str(cell)[:37] + "...")
    if DECIMAL_COMMA.fullmatch(str(cell)):
        raise InputError(
            f"Column {name!r} holds {shown} in row {row}, a number with a decimal comma; write "
            "decimal points."
        )
    if 2 * len(odd) <= present.sum():
        others = f" and {len(odd) - 1} more such cells" if len(odd) > 1 else ""
        option = Advice("missing", (str(cell),))
        raise InputError(
            f"Column {name!r} holds numbers, but {shown} in row {row}{others}; leave the cell "
            f"empty if the value is missing, or say {option}."
        )
    raise NotNumbers(f"Column {name!r} holds text ({shown} in row {row}).")


def read_labels(name: str, values: Column, missing: Missing = ()) -> LabelColumn:
    """Text, numbers or booleans as labels; empty cells and those named in `missing` are missing."""
    cells, absent = as_objects(values), absent_cells(values, missing)
    if values.dtype.kind in "Mm":
        raise InputError(
            f"Column {name!r} holds dates, which are no labels; name it with {Advice('time')}."
        )
    odd = [cell for cell in cells[~absent] if not isinstance(cell, str | Number | np.generic)]
    if odd:
        raise InputError(
            f"Column {name!r} holds {odd[0]!r}; labels must be text, numbers or booleans."
        )
    codes, levels = pd.factorize(cells.where(~absent, None).to_numpy())
    return LabelColumn(codes.astype(np.int64), list(levels))


def coded(name: str, first: int, parts: Sequence[LabelColumn]) -> tuple[Label, Array, list[str]]:
    """The label that the parts of a table make together, its columns (row, level), and notes.

    Numbers keep their order, text that of its first appearance, so that other names for the same
    levels change nothing. Rare levels become one, named OTHER; where even together they are
    rare, they count as missing.
    """
    levels = list(dict.fromkeys(level for part in parts for level in part.levels))
    if all(isinstance(level, Number | np.generic) for level in levels):
        levels.sort()
    texts = _texts(name, map(level_text, levels))
    codes = np.concatenate([part.coded_by(levels) for part in parts])
    codes, texts, notes = _without_rare(name, codes, texts)
    _check_count(name, texts)
    indicators = (codes[:, None] == np.arange(len(texts))).astype(np.float64)
    indicators[codes < 0] = np.nan
    return Label(name, tuple(texts), first), indicators, notes


def _without_rare(name: str, codes: Codes, texts: list[str]) -> tuple[Codes, list[str], list[str]]:
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    least = thresholds().reading.least_of_label
    rare = [place for place, count in enumerate(counts) if count < least]
    if not rare:
        return codes, texts, []
    kept = [text for place, text in enumerate(texts) if place not in rare]
    pooled = int(counts[rare].sum())
    shown = ", ".join(repr(texts[place]) for place in rare[:5]) + (", ..." if len(rare) > 5 else "")
    what = f"Levels of {name!r} in fewer than {least} rows ({shown})"
    if OTHER in kept or pooled >= least:
        kept = kept if OTHER in kept else [*kept, OTHER]
        new, note = kept.index(OTHER), f"{what} were pooled as {OTHER!r}."
    else:
        new, note = -1, f"{what} count as missing."
    table = [new if place in rare else kept.index(texts[place]) for place in range(len(texts))]
    return np.array([*table, -1], dtype=np.int64)[codes], kept, [note]


def _check_count(name: str, texts: list[str]) -> None:
    bounds = thresholds().reading
    if len(texts) < 2:
        shown = f"only {texts[0]!r}" if texts else "no label"
        raise InputError(
            f"Column {name!r} holds {shown} in {bounds.least_of_label} rows or more, expected at "
            "least 2 different labels; remove it."
        )
    if len(texts) > bounds.most_labels:
        raise InputError(
            f"Column {name!r} holds {len(texts)} different labels, expected at most "
            f"{bounds.most_labels}; group them first, or do not name it as labels if it holds "
            "numbers."
        )


def level_text(level: Any) -> str:
    """A level as it is shown."""
    if isinstance(level, float | np.floating) and float(level).is_integer():
        return str(int(level))
    return str(level)

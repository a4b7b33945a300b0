"""Variables that are labels: read from a column, coded as one indicator column per level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.data.sources.cells import Missing, absent_cells
from forecause.data.variables import RARE, Label
from forecause.errors import InputError

MOST_LEVELS = 12
OTHER = "other"  # the level that rare ones are pooled in

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """A column of labels as it was read: codes (row,) into its levels, -1 where missing."""

    codes: Codes
    levels: list[Any]  # numbers or text


def read_labels(name: str, values: npt.NDArray[Any], missing: Missing = ()) -> LabelColumn:
    """Text, numbers or booleans as labels; empty cells and those named in `missing` are missing."""
    import pandas as pd

    cells = pd.Series(values.astype(object), dtype=object)
    absent = absent_cells(values, missing)
    if values.dtype.kind in "Mm":
        raise InputError(f"Column {name!r} holds dates, which are no labels; name it with --time.")
    odd = [cell for cell in cells[~absent] if not isinstance(cell, str | Number | np.generic)]
    if odd:
        raise InputError(
            f"Column {name!r} holds {odd[0]!r}; labels must be text, numbers or booleans."
        )
    codes, found = pd.factorize(cells.where(~absent, None).to_numpy())
    return LabelColumn(codes.astype(np.int64), list(found))


def coded(
    name: str, first: int, parts: Sequence[LabelColumn]
) -> tuple[Label, npt.NDArray[np.float64], list[str]]:
    """The label that the parts of a table make together, its columns (row, level), and notes.

    Numbers keep their order, text that of its first appearance, so that other names for the same
    levels change nothing. Levels in fewer than RARE rows become one, named OTHER; where even
    together they are rare, they count as missing.
    """
    levels = list(dict.fromkeys(level for part in parts for level in part.levels))
    if all(isinstance(level, Number | np.generic) for level in levels):
        levels.sort()
    texts = [_text(level) for level in levels]
    if len(set(texts)) < len(texts):
        raise InputError(f"Column {name!r} holds labels that differ in type but not in text.")
    codes = np.concatenate([_recoded(part, levels) for part in parts])
    codes, texts, notes = _without_rare(name, codes, texts)
    _check_count(name, texts)
    indicators = (codes[:, None] == np.arange(len(texts))).astype(np.float64)
    indicators[codes < 0] = np.nan
    return Label(name, tuple(texts), first), indicators, notes


def _recoded(part: LabelColumn, levels: list[Any]) -> Codes:
    place = {level: i for i, level in enumerate(levels)}
    table = np.array([*(place[level] for level in part.levels), -1], dtype=np.int64)
    return np.asarray(table[part.codes])  # -1, missing, takes the last


def _without_rare(name: str, codes: Codes, texts: list[str]) -> tuple[Codes, list[str], list[str]]:
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    rare = [place for place, count in enumerate(counts) if count < RARE]
    if not rare:
        return codes, texts, []
    kept = [text for place, text in enumerate(texts) if place not in rare]
    pooled = int(counts[rare].sum())
    shown = ", ".join(repr(texts[place]) for place in rare[:5]) + (", ..." if len(rare) > 5 else "")
    what = f"Levels of {name!r} in fewer than {RARE} rows ({shown})"
    if OTHER in kept or pooled >= RARE:
        kept = kept if OTHER in kept else [*kept, OTHER]
        new, note = kept.index(OTHER), f"{what} were pooled as {OTHER!r}."
    else:
        new, note = -1, f"{what} count as missing."
    table = [new if place in rare else kept.index(texts[place]) for place in range(len(texts))]
    return np.array([*table, -1], dtype=np.int64)[codes], kept, [note]


def _check_count(name: str, texts: list[str]) -> None:
    if len(texts) < 2:
        found = f"only {texts[0]!r}" if texts else "no label"
        raise InputError(
            f"Column {name!r} holds {found} in {RARE} rows or more, expected at least 2 different "
            "labels; remove it."
        )
    if len(texts) > MOST_LEVELS:
        raise InputError(
            f"Column {name!r} holds {len(texts)} different labels, expected at most {MOST_LEVELS}; "
            "group them first, or do not name it as labels if it holds numbers."
        )


def _text(level: Any) -> str:
    if isinstance(level, float | np.floating) and float(level).is_integer():
        return str(int(level))
    return str(level)

"""Reading a sheet of an Excel file: the first row names the columns."""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pandas as pd

from forecause.advice import Advice
from forecause.data.sources.rawtable import RawTable, raw_table
from forecause.errors import InputError, MissingExtra


def read_excel(path: Path, sheet: str | None = None) -> RawTable:
    """The sheet of this name, or the first one with a column of numbers, or with anything."""
    try:
        import_module("openpyxl")
    except ImportError as error:
        raise MissingExtra("openpyxl", "files") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and extensions that are no data
        with pd.ExcelFile(path, engine="openpyxl") as book:
            names = [str(name) for name in book.sheet_names]
            if sheet is not None and sheet not in names:
                shown = ", ".join(map(repr, names[:20]))
                raise InputError(f"there is no sheet {sheet!r}; the sheets are {shown}.")
            chosen, cells = _first_table(book, [sheet] if sheet is not None else names)
    if len(cells) < 2:
        raise InputError("there is a header but no rows." if len(cells) else "it holds no cells.")
    header = ["" if pd.isna(cell) else str(cell).strip() for cell in cells.iloc[0]]
    table = cells.iloc[1:].reset_index(drop=True).infer_objects()
    notes: tuple[str, ...] = ()
    if sheet is None and len(names) > 1:
        other = Advice("sheet", next(name for name in names if name != chosen))
        notes = (f"{path.name}: the sheet {chosen!r} of {len(names)} was read; another: {other}.",)
    return replace(raw_table(table.set_axis(header, axis=1)), notes=notes)


def _first_table(book: pd.ExcelFile, sheets: list[str]) -> tuple[str, pd.DataFrame]:
    """The first of these sheets that holds numbers under its header, else any cells."""
    filled = []
    for name in sheets:
        cells = _cells(book, name)
        if len(cells) > 1 and cells.iloc[1:].map(_is_number).mean().max() > 0.5:
            return name, cells
        if len(cells):
            filled.append((name, cells))
    return filled[0] if filled else (sheets[0], pd.DataFrame())


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and cell == cell


def _cells(book: pd.ExcelFile, sheet: str) -> pd.DataFrame:
    """All cells of a sheet, without rows and columns that are empty."""
    found = book.parse(sheet, header=None, dtype=object)
    return found.dropna(how="all").dropna(how="all", axis=1).reset_index(drop=True)

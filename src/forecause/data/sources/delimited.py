"""CSV and TSV: a header that is checked, and no row that is lost or shifted in silence."""

from __future__ import annotations

import csv
import re
import warnings
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pandas as pd

from forecause.data.sources.cells import DECIMAL_COMMA, MISSING
from forecause.data.sources.rawtable import RawTable, check_names, raw_table
from forecause.errors import InputError

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
COMMA_NUMBER = re.compile(r"\s*[-+]?\d+(,\d+)?\s*")
POINT_NUMBER = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")
LOOKED_AT = 100  # lines that show how a file is written


@dataclass(frozen=True)
class _Style:
    """How a file is written: between its cells, and within its numbers."""

    separator: str
    decimal: str = "."

    def note(self, path: Path, expected: str) -> list[str]:
        """The sentence that says what is unusual about it, if something is."""
        comma = " and numbers have decimal commas" if self.decimal == "," else ""
        if self.separator == expected and not comma:
            return []
        return [f"{path.name}: cells are separated by {SEPARATORS[self.separator]}{comma}."]


def read_delimited(path: Path, separator: str) -> RawTable:
    """Read a file whose ending promises `separator` between its cells.

    Another separator and decimal commas are recognised; a first row of numbers is no header.
    """
    style, header, first_row = _first_rows(path, separator)
    has_header = not _is_data(header, style)
    if has_header and not first_row:
        raise InputError("there is a header but no rows.")
    if has_header and len(first_row) > len(header):
        raise InputError(f"row 1 has {len(first_row)} cells but the header {len(header)}.")
    names = header if has_header else [f"x{i}" for i in range(len(header))]
    check_names(names)  # pandas would rename repeated ones
    frame = _frame(path, style, has_header)
    if len(frame.columns) != len(names):
        raise InputError(f"rows have {len(frame.columns)} cells but the header {len(names)}.")
    frame.columns = pd.Index(names, dtype=object)
    notes = style.note(path, separator)
    if not has_header:
        notes.append(f"{path.name} has no header; its columns are called x0, x1, ...")
    return replace(raw_table(frame), notes=tuple(notes))


def _first_rows(path: Path, separator: str) -> tuple[_Style, list[str], list[str]]:
    """How the file is written, and its first two rows that are not blank."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in islice(file, LOOKED_AT) if line.strip()]
        chosen = _separator(lines, separator)
        rows = csv.reader(lines, delimiter=chosen, skipinitialspace=True, strict=True)
        found = [*islice(rows, 2)]
    except UnicodeDecodeError as error:
        raise InputError("the text is not in UTF-8; save it as UTF-8.") from error
    except csv.Error as error:
        raise InputError(f"this is not a table: {error}.") from error
    style = _Style(chosen, _decimal(lines, chosen))
    return style, found[0], found[1] if len(found) > 1 else []


def _separator(lines: list[str], expected: str) -> str:
    """The expected separator, unless another one splits a first line that it leaves whole.

    A line like 1,5;2,5 is whole too: its commas stand within numbers.
    """
    first = lines[0].rstrip("\r\n")
    for other in SEPARATORS:
        cells = first.split(other)
        whole = expected not in first or all(COMMA_NUMBER.fullmatch(cell) for cell in cells)
        if other != expected and len(cells) > 1 and whole:
            return other
    return expected


def _decimal(lines: list[str], separator: str) -> str:
    """A comma where commas are free for it and some number, but none with a point, has one."""
    if separator == ",":
        return "."
    cells = [cell for line in lines for cell in line.rstrip("\r\n").split(separator)]
    if any(POINT_NUMBER.fullmatch(cell) for cell in cells):
        return "."
    return "," if any(DECIMAL_COMMA.fullmatch(cell) for cell in cells) else "."


def _is_data(header: list[str], style: _Style) -> bool:
    """Numbers only, and not the 0, 1, 2, ... that some programs write as names."""
    cells = [cell.strip().replace(style.decimal, ".") for cell in header]
    cells = [cell for cell in cells if cell not in MISSING]
    counted = [str(i) for i in range(len(cells))]
    return bool(cells) and all(map(_is_number, cells)) and cells != counted


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _frame(path: Path, style: _Style, has_header: bool) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                path,
                sep=style.separator,
                decimal=style.decimal,
                header=0 if has_header else None,
                index_col=False,
                encoding="utf-8-sig",
                keep_default_na=False,
                na_values=list(MISSING),
                skipinitialspace=True,
                low_memory=False,
            )
        except UnicodeDecodeError as error:
            raise InputError("the text is not in UTF-8; save it as UTF-8.") from error
        except pd.errors.ParserError as error:
            reason = str(error).split("C error: ")[-1].strip().rstrip(".")
            raise InputError(f"the rows differ in their number of cells: {reason}.") from error
        except pd.errors.ParserWarning as error:
            raise InputError("rows have more cells than the header.") from error

"""Reading text: cells between separators, in whatever encoding and with whatever decimal mark."""

from __future__ import annotations

import csv
import re
import warnings
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from forecause.advice import Advice
from forecause.data.cells import DECIMAL_COMMA, MISSING, WITH_THOUSANDS, numbers_with_thousands
from forecause.data.sources.rawtable import RawTable, check_names, raw_table
from forecause.errors import InputError

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
COMMA_NUMBER = re.compile(r"\s*[-+]?\d+(,\d+)?\s*")
POINT_NUMBER = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")
QUOTED = re.compile(r'"([^"]*)"')
# Time and memory:
MOST_COLUMNS = 100_000  # a graph of 3,000 variables is the largest that can be held
LOOKED_AT = 100  # lines that show how a file is written
USUAL, WESTERN = "utf-8-sig", "cp1252"  # cp1252 has all letters of Latin-1
WEB_PAGE = re.compile(r"\s*<(!doctype )?html", re.IGNORECASE)
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # no text holds such


@dataclass(frozen=True)
class _Style:
    """How a file is written: between its cells, and within its numbers."""

    separator: str
    decimal: str = "."
    thousands: bool = False  # whether numbers have marks between their thousands
    encoding: str = USUAL

    def note(self, path: Path, expected: str) -> list[str]:
        """The sentence that says what is unusual about it, if something is."""
        comma = " and numbers have decimal commas" if self.decimal == "," else ""
        notes = []
        if self.separator != expected or comma:
            notes.append(
                f"{path.name}: cells are separated by {SEPARATORS[self.separator]}{comma}."
            )
        if self.thousands:
            notes.append(f"{path.name}: numbers have marks between their thousands.")
        if self.encoding == WESTERN:
            other = Advice("encoding", "cp1250")
            notes.append(
                f"{path.name}: the text is not in UTF-8 and was read as Western European (cp1252); "
                f"if letters look wrong, name another encoding, such as {other}."
            )
        return notes


def read_delimited(path: Path, separator: str = ",", encoding: str | None = None) -> RawTable:
    """Read a file whose ending promises `separator` between its cells.

    Another separator, decimal commas, marks between thousands and other encodings than UTF-8 are
    recognised; a first row of numbers is no header.
    """
    with path.open("rb") as file:
        wide = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
    for tried in (encoding,) if encoding else ("utf-16",) if wide else (USUAL, WESTERN):
        try:
            return _read_as(path, separator, tried)
        except UnicodeError:
            continue
        except LookupError:
            raise InputError(f"there is no encoding {encoding!r}; utf-8 and cp1252 are.") from None
    raise InputError(
        f"the text is not in {encoding or 'UTF-8'}; name its encoding with {Advice('encoding')}, "
        "or save it as UTF-8."
    )


def _read_as(path: Path, separator: str, encoding: str) -> RawTable:
    style, header, first_row = _first_rows(path, separator, encoding)
    if header and WEB_PAGE.match(header[0]):
        raise InputError("it is a web page, not a table; save the table itself.")
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


def _first_rows(path: Path, separator: str, encoding: str) -> tuple[_Style, list[str], list[str]]:
    """How the file is written, and its first two rows that are not blank."""
    try:
        with path.open(encoding=encoding, newline="") as file:
            lines = [line for line in islice(file, LOOKED_AT) if line.strip()]
        if encoding == WESTERN and any(map(CONTROL.search, lines)):
            raise UnicodeError("no text of any encoding")
        chosen = _separator(lines, separator)
        rows = csv.reader(lines, delimiter=chosen, skipinitialspace=True, strict=True)
        if lines[0].count(chosen) >= MOST_COLUMNS:
            raise InputError(f"its first line has more than {MOST_COLUMNS:,} cells.")
        found = [*islice(rows, 2)]
    except csv.Error as error:
        raise InputError(f"this is not a table: {error}.") from error
    cells = [cell for line in lines for cell in (*line.split(chosen), *QUOTED.findall(line))]
    marked = [mark for cell in cells if (mark := _decimal_after_thousands(cell))]
    decimal = marked[0] if marked else _decimal(lines, chosen)
    style = _Style(chosen, decimal, bool(marked), encoding)
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


def _decimal_after_thousands(cell: str) -> str:
    """The decimal mark of a number that has another mark between its thousands; else nothing."""
    return next((d for d, pattern in WITH_THOUSANDS.items() if pattern.fullmatch(cell.strip())), "")


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
            frame = pd.read_csv(
                path,
                sep=style.separator,
                decimal="." if style.thousands else style.decimal,
                dtype=object if style.thousands else None,
                header=0 if has_header else None,
                index_col=False,
                encoding=style.encoding,
                keep_default_na=False,
                na_values=list(MISSING),
                skipinitialspace=True,
                low_memory=False,
            )
        except pd.errors.ParserError as error:
            reason = str(error).split("C error: ")[-1].strip().rstrip(".")
            raise InputError(
                f"the rows differ in their number of cells: {reason}. If there are lines of "
                "comment before the header, remove them."
            ) from error
        except pd.errors.ParserWarning as error:
            raise InputError("rows have more cells than the header.") from error
    if not style.thousands:
        return frame
    return frame.apply(lambda column: _with_thousands(column, style.decimal))


def _with_thousands(column: pd.Series[str], decimal: str) -> pd.Series[float] | pd.Series[str]:
    """A column of text as numbers, if all its cells are such; dates stay text."""
    found = numbers_with_thousands(column.to_numpy(object), decimal)
    return column if found is None else pd.Series(np.asarray(found), column.index)

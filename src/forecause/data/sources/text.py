"""Reading text: cells between separators, in whatever encoding and with whatever decimal mark."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from pathlib import Path

import numpy as np
import pandas as pd

from forecause.config.advice import Advice
from forecause.data.cells import (
    DECIMAL_COMMA,
    MISSING,
    PERHAPS_THOUSANDS,
    WITH_THOUSANDS,
    numbers_with_thousands,
)
from forecause.data.sources.rawtable import RawTable, check_names, raw_table
from forecause.errors import InputError

SPACES = " "
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", SPACES: "spaces"}
COMMA_NUMBER = re.compile(r"\s*[-+]?\d+(,\d+)?\s*")
POINT_NUMBER = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")
THOUSANDS_ALONE = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
# Time and memory:
MOST_COLUMNS = 100_000  # a graph of 3,000 variables is the largest that can be held
SHOWN_UNITS = 4
LOOKED_AT = 100  # lines that show how a file is written
USUAL, WESTERN = "utf-8-sig", "cp1252"  # cp1252 has all letters of Latin-1
WEB_PAGE = re.compile(r"\s*<(!doctype )?html", re.IGNORECASE)
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?")
FEWEST_BELOW = 3  # rows that show what the first one under the header is
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # no text holds such


@dataclass(frozen=True)
class _Style:
    """How a file is written: between its cells, and within its numbers."""

    separator: str
    decimal: str = "."
    thousands: bool = False  # whether numbers have marks between their thousands
    encoding: str = USUAL
    comments: int = 0  # lines before the header
    units: tuple[str, ...] = ()  # of the line under the header, where it holds such
    skipped: tuple[int, ...] = ()  # lines, from 0, that are these

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
        if self.comments:
            lines = "line" if self.comments == 1 else "lines"
            notes.append(f"{path.name}: without {self.comments} {lines} of comment on top.")
        if self.units:
            shown = ", ".join(map(repr, self.units[:SHOWN_UNITS]))
            notes.append(f"{path.name}: the line under the header ({shown}) was taken as units.")
        if self.encoding == WESTERN:
            other = Advice("encoding", "cp1250")
            notes.append(
                f"{path.name}: the text is not in UTF-8 and was read as Western European (cp1252); "
                f"if letters look wrong, name another encoding, such as {other}."
            )
        return notes


def read_delimited(path: Path, separator: str = ",", encoding: str | None = None) -> RawTable:
    """Read a file whose ending promises `separator` between its cells.

    Another separator, decimal commas, marks between thousands, other encodings than UTF-8, comments
    on top (#) and units under the header are recognised; a first row of numbers is no header.
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
    style, rows = _first_rows(path, separator, encoding)
    header, first_row = rows[0], rows[1] if len(rows) > 1 else []
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


def _first_rows(path: Path, separator: str, encoding: str) -> tuple[_Style, list[list[str]]]:
    """How the file is written, and its first rows from the header on, those of units left out."""
    try:
        with path.open(encoding=encoding, newline="") as file:
            numbered = _written_lines(islice(file, LOOKED_AT))
        lines = [line for _, line in numbered]
        if encoding == WESTERN and any(map(CONTROL.search, lines)):
            raise UnicodeError("no text of any encoding")
        comments = _comments(lines)
        lines = lines[comments:]
        if lines and WEB_PAGE.match(lines[0]):
            raise InputError("it is a web page, not a table; save the table itself.")
        if not lines:
            raise InputError(f"its first {comments} lines are comments.")
        chosen = _separator(lines, separator)
        if lines[0].count(chosen) >= MOST_COLUMNS:
            raise InputError(f"its first line has more than {MOST_COLUMNS:,} cells.")
        rows = _split(lines, chosen)
    except csv.Error as error:
        raise InputError(f"this is not a table: {error}.") from error
    style = _style(lines, rows, chosen, encoding)
    if comments and _is_data(rows[0], style):
        names = _split([numbered[comments - 1][1].lstrip("# \t")], chosen)[0]
        if len(names) == len(rows[0]):  # the header stands in the last comment
            comments -= 1
            rows = [names, *rows]
    skipped = [number for number, _ in numbered[:comments]]
    units = _units(rows, style)
    if units:
        skipped.append(numbered[comments + 1][0])
        del rows[1]
    return replace(style, comments=comments, units=units, skipped=tuple(skipped)), rows


def _written_lines(lines: Iterable[str]) -> list[tuple[int, str]]:
    """Lines and their numbers from 0, without empty ones that stand in no quoted cell."""
    written, quoted = [], False
    for number, line in enumerate(lines):
        if quoted or line.strip():
            written.append((number, line))
        quoted ^= line.count('"') % 2 == 1
    return written


def _comments(lines: list[str]) -> int:
    """How many lines on top begin with #."""
    return len([*takewhile(lambda line: line.lstrip().startswith("#"), lines)])


def _split(lines: list[str], separator: str) -> list[list[str]]:
    """The cells of lines; the last ones may end within a quoted cell."""
    if separator == SPACES:
        return [line.split() for line in lines]
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    found = [*islice(rows, 2)]
    with suppress(csv.Error):
        found += rows
    return found


def _style(lines: list[str], rows: list[list[str]], separator: str, encoding: str) -> _Style:
    """The marks within numbers: those of a decimal, and whether there are some of thousands."""
    cells = [cell.strip() for row in rows for cell in row]
    marked = [marks for cell in cells if (marks := _decimals_after_thousands(cell))]
    if not marked and separator == ",":  # no other comma can stand in a cell
        marked = ["." for cell in cells if THOUSANDS_ALONE.fullmatch(cell)]
    told = next((marks for marks in marked if len(marks) == 1), None)
    return _Style(separator, told or _decimal(lines, separator), bool(marked), encoding)


def _units(rows: list[list[str]], style: _Style) -> tuple[str, ...]:
    """The cells under the header, if they are words above columns of numbers; else nothing."""
    if len(rows) < 2 + FEWEST_BELOW or _is_data(rows[0], style):
        return ()
    first, *below = rows[1:]
    if any(_is_value(cell, style) for cell in first):
        return ()
    units = []
    for place, cell in enumerate(first):
        column = [row[place].strip() for row in below if place < len(row)]
        known = [one for one in column if one not in MISSING]
        if cell.strip() not in MISSING and known and all(_is_value(one, style) for one in known):
            units.append(cell.strip())
    return tuple(units)


def _separator(lines: list[str], expected: str) -> str:
    """The expected separator, unless another one splits a first line that it leaves whole.

    A line like 1,5;2,5 is whole too: its commas stand within numbers. Spaces must split the second
    line into as many cells.
    """
    first = lines[0].rstrip("\r\n")
    for other in SEPARATORS:
        cells = first.split() if other == SPACES else first.split(other)
        whole = expected not in first or all(COMMA_NUMBER.fullmatch(cell) for cell in cells)
        if other == SPACES and len(lines) > 1:
            whole = expected not in first and len(lines[1].split()) == len(cells)
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


def _decimals_after_thousands(cell: str) -> str:
    """What may be the decimal mark of a number with marks between its thousands; else nothing."""
    return "".join(d for d, pattern in WITH_THOUSANDS.items() if pattern.fullmatch(cell))


def _is_data(header: list[str], style: _Style) -> bool:
    """Numbers and dates only, and not the 0, 1, 2, ... that some programs write as names."""
    cells = [cell.strip() for cell in header if cell.strip() not in MISSING]
    counted = [str(i) for i in range(len(cells))]
    some = any(not DATE.fullmatch(cell) for cell in cells)
    return some and all(_is_value(cell, style) for cell in cells) and cells != counted


def _is_value(cell: str, style: _Style) -> bool:
    """Whether it is a number or a date."""
    cell = cell.strip()
    if style.thousands and PERHAPS_THOUSANDS[style.decimal].fullmatch(cell):
        return True
    return bool(DATE.fullmatch(cell)) or _is_number(cell.replace(style.decimal, "."))


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
                sep=r"\s+" if style.separator == SPACES else style.separator,
                decimal="." if style.thousands else style.decimal,
                dtype=object if style.thousands else None,
                header=0 if has_header else None,
                skiprows=list(style.skipped) or None,
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

"""CSV and TSV: a header that is checked, and no row that is lost or shifted in silence."""

from __future__ import annotations

import csv
import re
import warnings
from itertools import islice
from pathlib import Path

import pandas as pd

from forecause.data.sources.cells import MISSING
from forecause.data.sources.rawtable import RawTable, check_names, raw_table
from forecause.errors import InputError

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
COMMA_NUMBER = re.compile(r"\s*[-+]?\d+(,\d+)?\s*")


def read_delimited(path: Path, separator: str) -> RawTable:
    """Read the file with `separator` between its cells; a first row of numbers is no header."""
    header, first_row = _first_rows(path, separator)
    has_header = not _is_data(header)
    if has_header and not first_row:
        raise InputError("there is a header but no rows.")
    if has_header and len(first_row) > len(header):
        raise InputError(f"row 1 has {len(first_row)} cells but the header {len(header)}.")
    names = header if has_header else [f"x{i}" for i in range(len(header))]
    check_names(names)  # pandas would rename repeated ones
    frame = _frame(path, separator, has_header)
    if len(frame.columns) != len(names):
        raise InputError(f"rows have {len(frame.columns)} cells but the header {len(names)}.")
    frame.columns = pd.Index(names, dtype=object)
    table = raw_table(frame)
    if has_header:
        return table
    note = f"{path.name} has no header; its columns are called x0, x1, ..."
    return RawTable(table.names, table.columns, table.matrix, notes=(note,))


def _first_rows(path: Path, separator: str) -> tuple[list[str], list[str]]:
    """The first two rows that are not blank, checked to be separated as expected."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in islice(file, 100) if line.strip()]
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
        found = [*islice(rows, 2)]
    except UnicodeDecodeError as error:
        raise InputError("the text is not in UTF-8; save it as UTF-8.") from error
    except csv.Error as error:
        raise InputError(f"this is not a table: {error}.") from error
    _check_separator([line.rstrip("\r\n") for line in lines[:2]], len(found[0]), separator)
    return found[0], found[1] if len(found) > 1 else []


def _check_separator(lines: list[str], cells: int, separator: str) -> None:
    """Refuse a first line of a single cell, or of numbers with decimal commas, if another
    separator would split it."""
    for other, name in SEPARATORS.items():
        split = [line.split(other) for line in lines]
        numbers = all(COMMA_NUMBER.fullmatch(cell) for cell in split[0])
        if other == separator or len(split[0]) == 1 or (cells > 1 and not numbers):
            continue
        if other == "\t":
            advice = "rename the file to end with .tsv"
        elif other == ",":
            advice = "rename the file to end with .csv"
        else:
            decimal = any("," in cell for cell in split[-1])
            options = f"sep={other!r}" + (", decimal=','" if decimal else "")
            advice = (
                f"save it with {SEPARATORS[separator]} and decimal points, or read it with "
                f"pandas.read_csv(..., {options}) and pass on the table"
            )
        raise InputError(
            f"the cells are separated by {name}, expected {SEPARATORS[separator]}; {advice}."
        )


def _is_data(header: list[str]) -> bool:
    """Numbers only, and not the 0, 1, 2, ... that some programs write as names."""
    cells = [cell.strip() for cell in header if cell.strip() not in MISSING]
    counted = [str(i) for i in range(len(cells))]
    return bool(cells) and all(map(_is_number, cells)) and cells != counted


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _frame(path: Path, separator: str, has_header: bool) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                path,
                sep=separator,
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

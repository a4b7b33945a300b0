"""Reading a table from a file: CSV and TSV here, Parquet beside; nothing in a file is ever run."""

from __future__ import annotations

import csv
import re
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from forecause.bounded import check_file
from forecause.data.cells import DECIMAL_COMMA, MISSING
from forecause.data.scratch import copied, is_large
from forecause.data.sources.parquet import parquet_files, read_parquet
from forecause.data.sources.rawtable import RawTable, check_names, from_array, raw_table, reading
from forecause.errors import InputError, MissingExtra

# The first bytes of the formats that can be told by them.
SIGNATURES = {
    b"PAR1": "Parquet",
    b"ARROW1": "Feather",
    b"\x93NUMPY": "NPY",
    b"PK": "NPZ",
    b"\x89HDF": "NetCDF",
    b"CDF\x01": "NetCDF",
    b"CDF\x02": "NetCDF",
    b"\x1f\x8b": "gzip",
    b"%PDF": "PDF",
}
TEXT = ("CSV", "TSV")
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
COMMA_NUMBER = re.compile(r"\s*[-+]?\d+(,\d+)?\s*")
POINT_NUMBER = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")
LARGEST_ARCHIVE = 4 * 2**30  # bytes of its content, all of which must fit into the memory
SUSPECT, MOST_PACKED = 64 * 2**20, 100  # beyond so many bytes, no data packs a hundredfold
LOOKED_AT = 100  # lines that show how a file is written


def read_table(path: str | Path) -> RawTable:
    """Read a CSV, TSV, Parquet, Feather, NPY, NPZ or NetCDF file, told by its ending.

    A folder of Parquet files is one table, its files in the order of their names.
    """
    path = Path(path)
    head = _first_bytes(path)
    if head is None:
        with reading(path, "Parquet"):
            return read_parquet(path)
    ending = path.suffix.lower()
    if ending not in READERS:
        found = f"ends with {ending!r}" if ending else "has no ending"
        raise InputError(f"{str(path)!r} {found}; expected one of {', '.join(READERS)}.")
    kind, read = READERS[ending]
    _check_kind(path, kind, head)
    with reading(path, kind):
        try:
            return read(path)
        except MissingExtra:
            raise
        except InputError as error:
            raise InputError(f"{str(path)!r}: {error}") from error


def _first_bytes(path: Path) -> bytes | None:
    """Of a file; None of a folder of Parquet files."""
    try:
        if path.is_dir():
            if parquet_files(path):
                return None
            raise InputError(
                f"{str(path)!r} is a directory without Parquet files; name the files in it."
            )
        check_file(path)
        with path.open("rb") as file:
            return file.read(4096)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"Cannot read {str(path)[:200]!r}: {reason}.") from error


def _check_kind(path: Path, kind: str, head: bytes) -> None:
    """The file holds something, and begins as its ending says."""
    if not head.strip():
        raise InputError(f"{str(path)!r} is empty.")
    found = _kind_of(head)
    if found != ("text" if kind in TEXT else kind):
        found = "a zip archive, such as NPZ or xlsx" if found == "NPZ" else found
        raise InputError(
            f"{str(path)!r} is not {kind}, though its name says so: it looks like {found}."
        )


def _kind_of(head: bytes) -> str:
    for signature, kind in SIGNATURES.items():
        if head.startswith(signature):
            return kind
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 text (save it as UTF-8)"
    return "binary data" if b"\0" in head else "text"


def _read_csv(path: Path) -> RawTable:
    return read_delimited(path, ",")


def _read_tsv(path: Path) -> RawTable:
    return read_delimited(path, "\t")


def _read_feather(path: Path) -> RawTable:
    try:
        from pyarrow import feather
    except ImportError as error:
        raise MissingExtra("pyarrow", "files") from error
    return raw_table(feather.read_table(path))


def _read_npy(path: Path) -> RawTable:
    """The file is mapped, not loaded: a table larger than the memory can be used.

    A large one that is not stored as rows of floats is rewritten as such, piece by piece.
    """
    array = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    floats = array.dtype in (np.float32, np.float64)
    width = array.dtype if floats else np.dtype(np.float64)
    numeric = array.ndim in (2, 3) and array.dtype.kind in "fiub"
    as_stored = floats and array.flags.c_contiguous
    if numeric and not as_stored and is_large(array.shape, width):
        array = copied(array, width)
    return from_array(array)


def _check_unpacked_size(path: Path) -> None:
    """An archive says how large its content is: it is refused before it fills the memory."""
    with zipfile.ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    packed = max(path.stat().st_size, 1)
    if size > LARGEST_ARCHIVE or (size > SUSPECT and size > MOST_PACKED * packed):
        raise InputError(
            f"the archive of {packed / 2**20:.1f} MB would take {size / 2**30:.1f} GB of memory; "
            "save the array as NPY, which is read piece by piece."
        )


def _read_npz(path: Path) -> RawTable:
    _check_unpacked_size(path)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if len(arrays) == 1:
        return raw_table(next(iter(arrays.values())))
    if arrays and all(np.ndim(array) == 1 for array in arrays.values()):
        return raw_table(arrays)
    shapes = ", ".join(f"{name!r} {np.shape(array)}" for name, array in list(arrays.items())[:5])
    raise InputError(
        "expected one array of (time, variable), or one array per variable; found "
        f"{shapes or 'none'}."
    )


def _read_netcdf(path: Path) -> RawTable:
    import xarray as xr

    with path.open("rb") as file:
        classic = file.read(3) == b"CDF"
    if not classic:
        try:
            import_module("h5netcdf")
            import_module("h5py")  # h5netcdf reads with it but does not require it
        except ImportError as error:
            raise MissingExtra(error.name or "h5netcdf", "files") from error
    with xr.open_dataset(path, engine="scipy" if classic else "h5netcdf") as dataset:
        return raw_table(dataset.load())


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
            raise InputError(
                f"the rows differ in their number of cells: {reason}. If there are lines of "
                "comment before the header, remove them."
            ) from error
        except pd.errors.ParserWarning as error:
            raise InputError("rows have more cells than the header.") from error


READERS: dict[str, tuple[str, Callable[[Path], RawTable]]] = {
    ".csv": ("CSV", _read_csv),
    ".tsv": ("TSV", _read_tsv),
    ".parquet": ("Parquet", read_parquet),
    ".feather": ("Feather", _read_feather),
    ".npy": ("NPY", _read_npy),
    ".npz": ("NPZ", _read_npz),
    ".nc": ("NetCDF", _read_netcdf),
}

"""Reading a table from a file, told by its ending; text and Parquet stand beside."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from forecause.common.bounded import check_file
from forecause.config.advice import Advice
from forecause.data.scratch import copied, is_large
from forecause.data.sources.parquet import parquet_files, read_parquet
from forecause.data.sources.rawtable import RawTable, from_array, raw_table, reading
from forecause.data.sources.text import read_delimited
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
TEXT = {"CSV": ",", "TSV": "\t"}  # what stands between the cells

# Time and memory:
LARGEST_ARCHIVE = 4 * 2**30  # bytes of its content, all of which must fit into the memory
SUSPECT, MOST_PACKED = 64 * 2**20, 100  # beyond so many bytes, no data packs a hundredfold


def read_table(path: str | Path, encoding: str | None = None, sheet: str | None = None) -> RawTable:
    """Read a CSV, TSV, Excel, Parquet, Feather, NPY, NPZ or NetCDF file, told by its ending.

    A folder of Parquet files is one table, its files in the order of their names. `encoding` is
    that of a text, `sheet` one of an Excel file.
    """
    path = Path(path)
    head = _first_bytes(path)
    if head is None:
        with reading(path, "Parquet"):
            return read_parquet(path)
    ending = path.suffix.lower()
    if ending not in READERS:
        found = f"ends with {ending!r}" if ending else "has no ending"
        if ending == ".xls":
            raise InputError(f"{str(path)!r} is of an old Excel; save it as .xlsx or CSV.")
        raise InputError(f"{str(path)!r} {found}; expected one of {', '.join(READERS)}.")
    kind, read = READERS[ending]
    for name, given, of in (("encoding", encoding, TEXT), ("sheet", sheet, ("Excel",))):
        if given is not None and kind not in of:
            raise InputError(f"{str(path)!r} is {kind}, which has no {name}.")
    if not (kind in TEXT and encoding):
        _check_kind(path, kind, head)
    with reading(path, kind):
        try:
            if kind == "Excel":
                check_unpacked_size(path, "CSV")
                return _read_excel(path, sheet)
            return read_delimited(path, TEXT[kind], encoding) if kind in TEXT else read(path)
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
    expected = "text" if kind in TEXT else "NPZ" if kind == "Excel" else kind  # both are archives
    if found != expected:
        found = "a zip archive, such as NPZ or xlsx" if found == "NPZ" else found
        raise InputError(
            f"{str(path)!r} is not {kind}, though its name says so: it looks like {found}."
        )


def _kind_of(head: bytes) -> str:
    for signature, kind in SIGNATURES.items():
        if head.startswith(signature):
            return kind
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text"
    return "binary data" if b"\0" in head else "text"


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


def check_unpacked_size(path: Path, instead: str) -> None:
    """An archive says how large its content is: it is refused before it fills the memory."""
    with zipfile.ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    packed = max(path.stat().st_size, 1)
    if size > LARGEST_ARCHIVE or (size > SUSPECT and size > MOST_PACKED * packed):
        raise InputError(
            f"the archive of {packed / 2**20:.1f} MB would take {size / 2**30:.1f} GB of memory; "
            f"save it as {instead}."
        )


def _read_npz(path: Path) -> RawTable:
    check_unpacked_size(path, "NPY, which is read piece by piece")
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


def _read_excel(path: Path, sheet: str | None = None) -> RawTable:
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


# By ending; text and Excel are asked for more than a path.
READERS: dict[str, tuple[str, Callable[[Path], RawTable]]] = {
    ".csv": ("CSV", read_delimited),
    ".tsv": ("TSV", read_delimited),
    ".txt": ("CSV", read_delimited),
    ".dat": ("CSV", read_delimited),
    ".xlsx": ("Excel", _read_excel),
    ".xlsm": ("Excel", _read_excel),
    ".parquet": ("Parquet", read_parquet),
    ".feather": ("Feather", _read_feather),
    ".npy": ("NPY", _read_npy),
    ".npz": ("NPZ", _read_npz),
    ".nc": ("NetCDF", _read_netcdf),
}

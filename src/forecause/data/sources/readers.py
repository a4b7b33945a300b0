"""Reading a table from a file; nothing in a file is ever run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

from forecause.data.sources.delimited import read_delimited
from forecause.data.sources.parquet import read_parquet
from forecause.data.sources.rawtable import RawTable, from_array, raw_table, reading
from forecause.data.sources.scratch import copied, is_large
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


def read_table(path: str | Path) -> RawTable:
    """Read a CSV, TSV, Parquet, Feather, NPY, NPZ or NetCDF file, told by its ending."""
    path = Path(path)
    ending = path.suffix.lower()
    head = _first_bytes(path)
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


def _first_bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise InputError(f"{str(path)!r} is a directory; name the files in it.")
        with path.open("rb") as file:
            return file.read(4096)
    except OSError as error:
        raise InputError(f"Cannot read {str(path)!r}: {error.strerror}.") from error


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


def _read_npz(path: Path) -> RawTable:
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


READERS: dict[str, tuple[str, Callable[[Path], RawTable]]] = {
    ".csv": ("CSV", _read_csv),
    ".tsv": ("TSV", _read_tsv),
    ".parquet": ("Parquet", read_parquet),
    ".feather": ("Feather", _read_feather),
    ".npy": ("NPY", _read_npy),
    ".npz": ("NPZ", _read_npz),
    ".nc": ("NetCDF", _read_netcdf),
}

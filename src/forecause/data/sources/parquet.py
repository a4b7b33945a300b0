"""Parquet: small files are loaded; large ones are read column by column and row by row.

A table that was read from large files need not travel with the work on it. `origin_of` knows of
which files an array holds the rows as they stand there; a helper opens these, at the same path,
and decodes the row groups that its own windows lie in.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.data.cells import Missing, numbers
from forecause.data.scratch import is_large, new_array
from forecause.data.sources.rawtable import Array, RawTable, check_names, raw_table, reading
from forecause.errors import InputError, MissingExtra

# Time and memory:
ROWS, COLUMNS = 1 << 16, 8  # decoded together; a column takes about 10 MB beside its rows
READ_AHEAD = 1 << 18  # bytes of a column fetched together


def read_parquet(path: Path) -> RawTable:
    """The table of a file or of a folder of them, whose values are read later if they are many."""
    with _opened(path) as file:
        names, rows = tuple(file.schema_arrow.names), file.metadata.num_rows
        check_names(names)
        if not is_large((rows, len(names)), _width(file.schema_arrow, names)):
            return raw_table(file.read())
        stored = [name for name in names if name.startswith("__index_level_")]
        apart = {name: _column(file, name) for name in stored}
        names = tuple(name for name in names if name not in stored)
        return ParquetTable(names, (), beside=apart, path=path, stored_rows=rows)


@dataclass(frozen=True)
class ParquetTable(RawTable):
    """A file whose columns are read when they are asked for; see RawTable."""

    path: Path = Path()
    stored_rows: int = 0

    @property
    def rows(self) -> int:
        return self.stored_rows

    def column(self, name: str) -> Array:
        if name not in self.names:
            return self.beside[name]
        with self._open() as file:
            return _column(file, name)

    def head(self, name: str) -> Array:
        return self._first_row.get(name, np.zeros(1))

    def values(self, names: Sequence[str], missing: Missing = ()) -> Array:
        """Plain numbers batch by batch, others a column at a time, into one (row, name) array."""
        with self._open() as file:
            schema = file.schema_arrow
            made = new_array((self.rows, len(names)), _width(schema, names))
            plain = [name for name in names if _is_number(schema.field(name).type)]
            for start in range(0, len(plain), COLUMNS):
                some = plain[start : start + COLUMNS]
                places, filled = [names.index(name) for name in some], 0
                for batch in file.iter_batches(batch_size=ROWS, columns=some):
                    rows = slice(filled, filled + batch.num_rows)
                    for place, name in zip(places, some, strict=True):
                        made[rows, place] = batch.column(name).to_numpy(zero_copy_only=False)
                    filled += batch.num_rows
            for place, name in enumerate(names):
                if name not in plain:
                    made[:, place] = numbers(name, _column(file, name), missing)
        if len(plain) == len(names):
            files = parquet_files(self.path) if self.path.is_dir() else [self.path]
            remember_origin(made, files, names)
        return made

    @cached_property
    def _first_row(self) -> dict[str, Array]:
        """The first value of every column that does not hold plain numbers."""
        import pyarrow as pa

        with self._open() as file:
            odd = [
                name for name in self.names if not _is_number(file.schema_arrow.field(name).type)
            ]
            if not odd:
                return {}
            batch = next(file.iter_batches(batch_size=1, columns=odd))
            table = raw_table(pa.Table.from_batches([batch]))
            return {name: table.column(name) for name in odd}

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with reading(self.path, "Parquet"), _opened(self.path, buffer_size=READ_AHEAD) as file:
            yield file


def parquet_files(folder: Path) -> list[Path]:
    """The files of a folder that make up one table, in the order of their names."""
    return sorted(path for path in folder.glob("*.parquet") if path.is_file())


def _opened(path: Path, **options: Any) -> Any:
    """A file, or a folder of files as if they were one."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "files") from error
    if not path.is_dir():
        return parquet.ParquetFile(path, **options)
    return _Folder([parquet.ParquetFile(file, **options) for file in parquet_files(path)])


class _Folder:
    """Parquet files with the same columns, read one after the other."""

    def __init__(self, files: list[Any]) -> None:
        self.files = files
        self.schema_arrow = files[0].schema_arrow
        for place, file in enumerate(files):
            if file.schema_arrow.names != self.schema_arrow.names:
                raise InputError(
                    "The files of a folder must have the same columns in the same order; file "
                    f"{place + 1} has {file.schema_arrow.names[:5]}, the first "
                    f"{self.schema_arrow.names[:5]}."
                )
        self.metadata = SimpleNamespace(num_rows=sum(f.metadata.num_rows for f in files))

    def __enter__(self) -> _Folder:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files:
            file.close()

    def iter_batches(self, **asked: Any) -> Iterator[Any]:
        """Batches of all files."""
        for file in self.files:
            yield from file.iter_batches(**asked)

    def read(self, **asked: Any) -> Any:
        """All files as one table."""
        import pyarrow as pa

        return pa.concat_tables([file.read(**asked) for file in self.files])


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_floating(kind) or types.is_integer(kind))


def _width(schema: Any, names: Sequence[str]) -> type[np.floating[Any]]:
    """float32 if all of these columns are that, else float64."""
    from pyarrow import types

    single = all(types.is_float32(schema.field(name).type) for name in names)
    return np.float32 if single else np.float64


def _column(file: Any, name: str) -> Array:
    """A column of the whole file as the loaded table would have it."""
    return raw_table(file.read(columns=[name]).select([name])).column(name)


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Columns of a Parquet file or of a folder of them, in the place of an array (row, column).

    It knows its shape and gives rows; the row group that was read last is kept.
    """

    files: tuple[Path, ...]
    names: tuple[str, ...]
    rows: int
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.names)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, wanted: slice | npt.NDArray[np.int64]) -> Array:
        """Rows first to last, or those with these numbers (...,): (..., column)."""
        if isinstance(wanted, slice):
            return self._between(*wanted.indices(self.rows)[:2])
        found = np.empty((*wanted.shape, len(self.names)), self.dtype)
        group = np.searchsorted(self._starts, wanted, side="right") - 1
        for one in np.unique(group):
            own = group == one
            found[own] = self._read(int(one))[wanted[own] - self._starts[one]]
        return found

    def _between(self, first: int, end: int) -> Array:
        found = np.empty((max(end - first, 0), len(self.names)), self.dtype)
        ends = [*self._starts[1:].tolist(), self.rows]
        for group, (start, stop) in enumerate(zip(self._starts.tolist(), ends, strict=True)):
            low, high = max(first, start), min(end, stop)
            if low < high:
                found[low - first : high - first] = self._read(group)[low - start : high - start]
        return found

    @cached_property
    def _groups(self) -> list[tuple[Path, int, int]]:
        """File, number and rows of every row group."""
        from pyarrow.parquet import ParquetFile

        found = []
        for path in self.files:
            with ParquetFile(path) as file:
                known = file.metadata
                sizes = [known.row_group(i).num_rows for i in range(known.num_row_groups)]
            found += [(path, place, size) for place, size in enumerate(sizes)]
        return found

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        """The first row of every row group."""
        return np.cumsum([0, *(size for _, _, size in self._groups[:-1])]).astype(np.int64)

    @cached_property
    def _kept(self) -> dict[int, Array]:
        return {}

    def _read(self, group: int) -> Array:
        """All rows of a row group, (row, column)."""
        if group not in self._kept:
            from pyarrow.parquet import ParquetFile

            path, place, size = self._groups[group]
            made = np.empty((size, len(self.names)), self.dtype)
            with ParquetFile(path) as file:
                table = file.read_row_group(place, columns=list(self.names), use_threads=False)
            for column, name in enumerate(self.names):
                made[:, column] = table.column(name).to_numpy()
            self._kept.clear()
            self._kept[group] = made
        return self._kept[group]

    def __getstate__(self) -> dict[str, Any]:
        """Without what was read here."""
        kept = {"files", "names", "rows", "dtype"}
        return {name: value for name, value in self.__dict__.items() if name in kept}


_ORIGINS: dict[int, StoredRows] = {}  # by the id of an array that is alive


def remember_origin(values: Array, files: Sequence[Path], names: Sequence[str]) -> None:
    """Note that an array (row, column) holds these columns of files as they stand there."""
    resolved = tuple(file.resolve() for file in files)
    _ORIGINS[id(values)] = StoredRows(resolved, tuple(names), len(values), values.dtype)
    weakref.finalize(values, _ORIGINS.pop, id(values), None)


def origin_of(values: Array) -> StoredRows | None:
    """The files whose rows an array holds; None if it was made in another way."""
    return _ORIGINS.get(id(values))

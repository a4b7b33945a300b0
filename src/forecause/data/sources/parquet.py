"""Parquet: small files are loaded; large ones are read column by column and row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from forecause.data.cells import Missing, numbers
from forecause.data.scratch import is_large, new_array
from forecause.data.sources.rawtable import Array, RawTable, check_names, raw_table, reading
from forecause.data.sources.stored import remember_origin
from forecause.errors import InputError, MissingExtra

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

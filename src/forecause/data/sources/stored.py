"""Rows of Parquet files, read where they are needed: by other machines, a block of rows at a time.

A table that was read from large files need not travel with the work on it. `origin_of` knows of
which files an array holds the rows as they stand there; a helper opens these, at the same path,
and decodes the row groups that its own windows lie in.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


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

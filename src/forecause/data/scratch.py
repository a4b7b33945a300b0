"""Arrays too large for the memory: they live in a nameless temporary file that is mapped.

The file has no name from the moment it is made, so nothing is left behind however the process
ends; its room is given back when the last view of the array is gone.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from forecause.errors import InputError

# Time and memory:
LARGE = 256 * 2**20  # bytes; an array beyond this is not made in memory
PIECE = 8 * 2**20  # bytes copied together

Array = npt.NDArray[Any]


def is_large(shape: Sequence[int], dtype: npt.DTypeLike) -> bool:
    """Whether an array of this shape would take too much memory."""
    return _size(shape, dtype) > LARGE


def new_array(shape: Sequence[int], dtype: npt.DTypeLike) -> Array:
    """An array to be filled, in memory if it is small, else in a temporary file."""
    if not is_large(shape, dtype):
        return np.empty(shape, dtype)
    size, folder = _size(shape, dtype), scratch_folder()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            _reserve(file, size)
            return np.asarray(np.memmap(file, dtype=dtype, mode="r+", shape=tuple(shape)))
    except OSError as error:
        raise InputError(
            f"The data needs {size / 2**30:.1f} GiB of temporary room in {str(folder)!r}: "
            f"{(error.strerror or 'it cannot be had').lower()}; name a folder on a larger disk in "
            "the environment variable TMPDIR."
        ) from error


def copied(array: Array, dtype: npt.DTypeLike | None = None) -> Array:
    """A row-major copy, piece by piece if it is large; a mapped file is never loaded whole."""
    made = new_array(array.shape, array.dtype if dtype is None else dtype)
    for rows in pieces(array.shape, made.dtype):
        made[rows] = array[rows]
    return made


def taken(array: Array, rows: npt.NDArray[np.int64]) -> Array:
    """The rows with these numbers, in this order."""
    made = new_array((len(rows), *array.shape[1:]), array.dtype)
    for some in pieces(made.shape, made.dtype):
        made[some] = array[rows[some]]
    return made


def joined(arrays: Sequence[Any]) -> Array:
    """The arrays one below the other; a single one is not copied."""
    if len(arrays) == 1:
        return np.asarray(arrays[0])
    rows = sum(len(array) for array in arrays)
    made = new_array(
        (rows, *arrays[0].shape[1:]), np.result_type(*(array.dtype for array in arrays))
    )
    first = 0
    for array in arrays:
        for some in pieces(array.shape, made.dtype):
            made[first + some.start : first + some.stop] = array[some]
        first += len(array)
    return made


def side_by_side(columns: Sequence[Array], dtype: npt.DTypeLike) -> Array:
    """Columns (row,) side by side, (row, column)."""
    made = new_array((len(columns[0]), len(columns)), dtype)
    for rows in pieces(made.shape, made.dtype):
        for place, column in enumerate(columns):
            made[rows, place] = column[rows]
    return made


def pieces(shape: Sequence[int], dtype: npt.DTypeLike) -> Iterator[slice]:
    """Slices of the first axis that hold about PIECE bytes each."""
    step = max(1, PIECE // max(_size(shape[1:], dtype), 1))
    return (slice(i, min(i + step, shape[0])) for i in range(0, shape[0], step))


def chunks(values: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Pieces of a (row, variable) array, so that a mapped file is never loaded whole."""
    return (values[rows] for rows in pieces(values.shape, np.float64))


def scratch_folder() -> Path:
    """TMPDIR if it is set; else where large temporary files belong: /tmp is often in memory."""
    if not os.environ.get("TMPDIR") and os.access("/var/tmp", os.W_OK):
        return Path("/var/tmp")
    return Path(os.environ.get("TMPDIR") or tempfile.gettempdir())


def _size(shape: Sequence[int], dtype: npt.DTypeLike) -> int:
    size = np.dtype(dtype).itemsize
    for length in shape:
        size *= int(length)
    return size


def _reserve(file: IO[bytes], size: int) -> None:
    """Claim the room at once: a mapped file that outgrows its disk would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for start in range(0, size, PIECE):
        file.write(bytes(min(PIECE, size - start)))
    file.flush()

"""RawTable: any table in memory as named columns, before anyone says what the columns mean."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.data.cells import Missing, numbers
from forecause.data.scratch import side_by_side
from forecause.errors import InputError

Array = npt.NDArray[Any]

TIME_NAMES = frozenset({"time", "date", "datetime", "timestamp", "t", "index", "step"})
UNNAMED = ("", "Unnamed: 0")  # what a written row index is called, in the file and by pandas


@dataclass(frozen=True)
class RawTable:
    """Columns of one recorded table; `matrix` is the same data where it need not be copied.

    `beside` holds what stands beside the columns (a pandas index, xarray coordinates): it may
    serve as time, series or domain but is never a variable.
    """

    names: tuple[str, ...]
    columns: Sequence[Array]  # (row,) each
    matrix: Array | None = None  # (row, column), float32 or float64
    beside: Mapping[str, Array] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()  # rows of each series, where several are stacked
    notes: tuple[str, ...] = ()
    unnamed: bool = False  # whether the names were made up, as those of an array are

    def __post_init__(self) -> None:
        check_names(self.names)
        lengths = {len(column) for column in self.columns}
        if len(lengths) > 1:
            raise InputError(f"The columns differ in length: {sorted(lengths)} values.")

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def column(self, name: str) -> Array:
        """The values of a column, or of what stands beside the columns."""
        return self.columns[self.names.index(name)] if name in self.names else self.beside[name]

    def head(self, name: str) -> Array:
        """The first value of a column, (1,): what kind of column it is, without reading it all."""
        return self.column(name)[:1]

    def values(self, names: Sequence[str], missing: Missing = ()) -> Array:
        """Columns of numbers side by side (row, name); a matrix is viewed where that is enough.

        Text named in `missing` stands for a missing value.
        """
        places = [self.names.index(name) for name in names]
        if not places:
            return np.empty((self.rows, 0))
        if self.matrix is not None and places == list(range(places[0], places[0] + len(places))):
            return self.matrix[:, places[0] : places[0] + len(places)]
        columns = [numbers(name, self.column(name), missing) for name in names]
        single = all(column.dtype == np.float32 for column in columns)
        return side_by_side(columns, np.float32 if single else np.float64)


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """What a library raises within becomes an InputError that names the file."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # a broken file can make its library raise anything
        lines = str(error).strip().splitlines()
        reason = (lines[0][:200] if lines else type(error).__name__).rstrip(".")
        raise InputError(f"{str(path)!r} cannot be read as {kind}: {reason}.") from error


def check_names(names: Sequence[str]) -> None:
    """Names must tell the columns apart: what libraries do to repeated ones is never right."""
    seen: set[str] = set()
    for place, name in enumerate(names, 1):
        if name in seen:
            what = f"the name {name!r} twice" if name else f"no name for column {place}"
            raise InputError(f"Column names must differ; found {what}.")
        seen.add(name)
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise InputError(
                f"The name {name!r} holds half of a character pair, which no file can hold; "
                "rename it."
            )


def raw_table(data: Any) -> RawTable:
    """Make a RawTable of a table in memory: pandas, polars, pyarrow, xarray, numpy or a dict."""
    library = type(data).__module__.partition(".")[0]
    if library == "xarray":
        return _from_xarray(data)
    if isinstance(data, Mapping):
        return RawTable(tuple(map(str, data)), [_column(name, data[name]) for name in data])
    if isinstance(data, np.ndarray):
        return from_array(data)
    if library == "torch":
        return from_array(_from_torch(data))
    if library == "pandas" and hasattr(data, "columns"):
        return _from_pandas(data)
    if library == "pyarrow" and hasattr(data, "column_names"):
        check_names(data.column_names)  # narwhals raises its own error
    import narwhals.stable.v2 as nw

    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _from_narwhals(frame)
    if hasattr(data, "__array__") and library not in ("pandas", "polars", "pyarrow"):
        return from_array(np.asarray(data))
    raise InputError(
        "Expected a table (pandas, polars, pyarrow, xarray, numpy), a path, or a list of them; "
        f"found {type(data).__module__}.{type(data).__qualname__}."
    )


def from_array(array: Array) -> RawTable:
    """Columns x0, x1, ... of a (time, variable) or (series, time, variable) array, not copied."""
    if array.dtype.names:
        columns = [_column(name, _unmasked(array[name])) for name in array.dtype.names]
        return RawTable(array.dtype.names, columns)
    array = _unmasked(array)
    if array.ndim not in (2, 3):
        raise InputError(
            "Expected an array of 2 dimensions (time, variable) or 3 (series, time, variable), "
            f"found {array.ndim} of shape {array.shape}."
        )
    if not array.shape[-1]:
        raise InputError(f"The data is empty: an array of shape {array.shape} has no columns.")
    lengths = (array.shape[1],) * array.shape[0] if array.ndim == 3 else ()
    matrix = _matrix(array.reshape(-1, array.shape[-1]))
    names = tuple(f"x{i}" for i in range(matrix.shape[1]))
    return replace(_from_matrix(matrix, names, {}, lengths), unnamed=True)


def _unmasked(array: Array) -> Array:
    """A plain array with missing cells where others are masked; text of known letters alone."""
    if isinstance(array, np.ma.MaskedArray) and array.dtype.kind != "c":
        numeric = array.dtype.kind in "fiub"
        plain = array.astype(np.float64 if numeric else object)
        array = np.ma.filled(plain, np.nan if numeric else None)
    if array.dtype.kind == "U" and array.size:
        letters = np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
        if np.ascontiguousarray(array).view(letters).max() > sys.maxunicode:
            raise InputError("The text in the array holds what is no letter; is the file damaged?")
    return np.asarray(array)


def _matrix(array: Array) -> Array:
    """Floats as they are, other numbers as float64; text and dates are left to be refused."""
    if array.dtype in (np.float32, np.float64) or array.dtype.kind not in "fiub":
        return np.asarray(array)
    return array.astype(np.float64)


def _from_matrix(
    matrix: Array,
    names: tuple[str, ...],
    beside: Mapping[str, Array],
    lengths: tuple[int, ...] = (),
) -> RawTable:
    kept = matrix if matrix.dtype in (np.float32, np.float64) else None
    columns = [matrix[:, i] for i in range(matrix.shape[1])]
    return RawTable(names, columns, kept, beside, lengths)


def _column(name: str, values: Any) -> Array:
    try:
        column = np.asarray(values)
    except (ValueError, TypeError, OverflowError, RuntimeError):
        raise InputError(
            f"Column {name!r} holds lists among its cells, or what is no cell at all."
        ) from None
    if column.ndim != 1:
        raise InputError(f"Column {name!r} must have one dimension, found {column.ndim}.")
    return column


def _from_torch(data: Any) -> Array:
    """A tensor's values, wherever and however it holds them."""
    import torch

    if not isinstance(data, torch.Tensor) or data.device.type == "meta" or data.is_complex():
        raise InputError(
            f"Expected a tensor of real numbers with values, found {type(data).__qualname__}"
            f"{f' of {data.dtype} on {data.device}' if isinstance(data, torch.Tensor) else ''}."
        )
    plain = data.detach()
    plain = plain if plain.layout == torch.strided else plain.to_dense()
    if plain.is_floating_point() and plain.dtype not in (torch.float32, torch.float64):
        plain = plain.float()  # numpy has no bfloat16
    return np.asarray(plain.cpu().numpy())


def _plain_column(series: Any) -> Array:
    """A column of a data frame as an array of one dimension."""
    import narwhals.stable.v2 as nw

    try:
        column = series.to_numpy()
    except Exception:  # whole numbers of 128 bits, say, which numpy has not
        try:
            column = series.cast(nw.Float64).to_numpy()
        except Exception:
            raise InputError(
                f"Column {series.name!r} of the type {series.dtype} cannot be used; remove it or "
                "turn it into numbers."
            ) from None
    if column.ndim != 1:
        raise InputError(
            f"Column {series.name!r} holds several values in a cell ({series.dtype}); give each a "
            "column of its own."
        )
    return np.asarray(column)


def _from_pandas(frame: Any) -> RawTable:
    """A frame of one float type is not copied; its index stands beside the columns."""
    import narwhals.stable.v2 as nw
    import pandas as pd

    names = tuple(map(str, frame.columns))
    index = frame.index
    levels = [index.get_level_values(i) for i in range(index.nlevels)]
    beside = {}
    for level in levels:
        dated = isinstance(level, pd.DatetimeIndex | pd.PeriodIndex | pd.TimedeltaIndex)
        written = len(level) > 0 and isinstance(level[0], str) and any(map(str.isdigit, level[0]))
        if level.name is not None or dated or (written and len(levels) == 1):
            name = "index" if level.name is None else str(level.name)
            beside[name] = nw.from_native(level.to_series(), series_only=True).to_numpy()
    if names and set(map(str, frame.dtypes)) in ({"float32"}, {"float64"}):
        return _from_matrix(frame.to_numpy(), names, beside)
    check_names(names)
    table = nw.from_native(frame.set_axis(list(names), axis=1), eager_only=True)
    return RawTable(names, [_plain_column(table[name]) for name in names], None, beside)


def _from_narwhals(frame: Any) -> RawTable:
    """pandas, polars and pyarrow alike; an index that pandas stored in a file stands beside."""
    stored = [name for name in frame.columns if name.startswith("__index_level_")]
    names = tuple(name for name in frame.columns if name not in stored)
    if not names:  # then these are all there is
        names, stored = tuple(stored), []
    return RawTable(
        names,
        [_plain_column(frame[name]) for name in names],
        beside={name: _plain_column(frame[name]) for name in stored},
    )


def _from_xarray(data: Any) -> RawTable:
    import xarray as xr

    if isinstance(data, xr.Dataset):
        variables = list(data.data_vars.values())
        if len(variables) == 1 and variables[0].ndim == 2:
            return _from_data_array(variables[0])
        return _from_dataset(data)
    return _from_data_array(data)


def _from_dataset(data: Any) -> RawTable:
    shapes = {str(name): tuple(map(str, v.dims)) for name, v in data.data_vars.items()}
    if not shapes or len(set(shapes.values())) > 1 or len(next(iter(shapes.values()))) != 1:
        raise InputError(
            "Expected a dataset whose variables all run over time and nothing else, found "
            + ", ".join(f"{name!r} over {dims}" for name, dims in list(shapes.items())[:5])
            + "; select the variables first."
        )
    (dimension,) = next(iter(data.data_vars.values())).dims
    columns = [variable.values for variable in data.data_vars.values()]
    return RawTable(tuple(shapes), columns, beside=_along(data, dimension))


def _from_data_array(data: Any) -> RawTable:
    if data.ndim != 2:
        raise InputError(
            f"Expected a DataArray of two dimensions (time, variable), found {data.dims}."
        )
    first, second = data.dims
    if _is_time(data, second) and not _is_time(data, first):
        data, first, second = data.T, second, first
    coordinate = data.coords.get(second)
    labels = range(data.shape[1]) if coordinate is None else coordinate.values
    names = tuple(f"x{i}" if coordinate is None else str(i) for i in labels)
    return _from_matrix(_matrix(data.values), names, _along(data, first))


def _is_time(data: Any, dimension: Any) -> bool:
    dated = dimension in data.coords and data.coords[dimension].dtype.kind == "M"
    return dated or str(dimension).lower() in TIME_NAMES


def _along(data: Any, dimension: Any) -> dict[str, Array]:
    """The coordinates that run over this dimension alone."""
    return {str(n): c.values for n, c in data.coords.items() if c.dims == (dimension,)}

"""Filling short gaps of missing values by straight lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.data.sources.scratch import copied


def interpolated(
    values: npt.NDArray[Any],
    starts: npt.NDArray[np.int64],
    longest: int,
    columns: Iterable[int] | None = None,
) -> tuple[npt.NDArray[Any], int]:
    """Values (row, variable) with runs of at most `longest` missing rows filled, and how many.

    In these columns, or in all.

    A run is filled from the value before to the value after it, both in the same unbroken stretch:
    edges stay missing. The input is copied only if something is filled.
    """
    stretch = np.zeros(len(values), dtype=np.int64)
    stretch[starts[1:]] = 1
    stretch = np.cumsum(stretch)
    filled, count = values, 0
    for column in range(values.shape[1]) if columns is None else columns:
        missing = np.isnan(values[:, column])
        rows = _rows_to_fill(missing, stretch, longest)
        if not len(rows):
            continue
        if filled is values:
            filled = copied(values)
        known = np.flatnonzero(~missing)
        filled[rows, column] = np.interp(rows, known, values[known, column])
        count += len(rows)
    return filled, count


def _rows_to_fill(
    missing: npt.NDArray[np.bool_], stretch: npt.NDArray[np.int64], longest: int
) -> npt.NDArray[np.int64]:
    change = np.diff(np.concatenate([[0], missing.astype(np.int8), [0]]))
    first, end = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
    short = (end - first <= longest) & (first > 0) & (end < len(missing))
    first, end = first[short], end[short]
    inner = stretch[first - 1] == stretch[end]
    inside = np.zeros(len(missing) + 1, dtype=np.int64)
    inside[first[inner]] += 1
    inside[end[inner]] -= 1
    return np.flatnonzero(np.cumsum(inside)[:-1])

"""The table in standard deviations from the mean: worked out once, cut into windows by all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from forecause.data.sources.parquet import StoredRows

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Single = npt.NDArray[np.float32]

# Time and memory:
ROWS_AT_ONCE = 1 << 14
MOST_STANDARDISED = 25_000_000  # values of a table that is kept standardised: 100 MB


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation per variable, to put every variable on one scale."""

    mean: Array  # (variable,)
    sd: Array  # (variable,)


class StandardTable:
    """A table in standard deviations from the mean, worked out once for all of its windows.

    Whole where it lies in memory and is not too large, otherwise of the rows that are asked for;
    either way in float64 before it is rounded, whatever the data is.
    """

    def __init__(self, values: npt.NDArray[Any] | StoredRows, scale: Scale) -> None:
        self.values, self.scale = values, scale

    def __getstate__(self) -> dict[str, Any]:
        """Without what was worked out here."""
        return {"values": self.values, "scale": self.scale}

    @cached_property
    def whole(self) -> Single | None:
        """(row, column), not to be written to."""
        if not isinstance(self.values, np.ndarray) or self.values.size > MOST_STANDARDISED:
            return None
        if is_mapped(self.values):
            return None
        table = np.empty(self.values.shape, dtype=np.float32)
        for first in range(0, len(table), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            table[rows] = _scaled(self.values[rows], self.scale)
        table.flags.writeable = False
        return table

    def windows(self, last: Index, max_lag: int) -> Single:
        """The windows that end with these rows, (window, max_lag + 1, column).

        A view that is not to be written to where they follow each other in the whole table.
        """
        if self.whole is not None:
            width = self.whole.shape[1]
            # a window of consecutive rows is a stretch of the flattened table
            flat = sliding_window_view(self.whole.ravel(), (max_lag + 1) * width)[::width]
            chosen = flat[last[0] - max_lag : last[-1] - max_lag + 1] if follow(last) else None
            if chosen is None:
                chosen = flat[last - max_lag]
            return chosen.reshape(len(last), max_lag + 1, width)
        rows = last[:, None] + np.arange(-max_lag, 1)
        first = int(rows[:, 0].min(initial=len(self.values)))
        end = int(rows[:, -1].max(initial=0)) + 1
        if end - first <= rows.size:  # overlapping windows are cut from one stretch
            return _scaled(self.values[first:end], self.scale).take(rows - first, axis=0)
        return _scaled(self.values[rows], self.scale)


def follow(rows: Index) -> bool:
    """Whether rows are neighbours in order; none are not."""
    return len(rows) > 0 and bool((np.diff(rows) == 1).all())


def is_mapped(values: npt.NDArray[Any]) -> bool:
    """Whether an array is memory-mapped, also as a view of a view of a file."""
    table: npt.NDArray[Any] | None = values
    while table is not None and not isinstance(table, np.memmap):
        table = table.base if isinstance(table.base, np.ndarray) else None
    return table is not None


def _scaled(values: npt.NDArray[Any], scale: Scale) -> Single:
    """Values (..., variable) in standard deviations from the mean."""
    scaled = values - scale.mean
    scaled /= scale.sd
    return scaled.astype(np.float32)

"""A regular grid of time: rows that fall into the same step become one row.

The same routine joins rows that share a time stamp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config.spec import HowName
from forecause.errors import InputError

Array = npt.NDArray[Any]

EVERY = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*([a-zA-Z]*)\s*")
SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
SECONDS |= {"d": 86_400, "day": 86_400, "w": 7 * 86_400, "week": 7 * 86_400}
MONTHS = {"mo": 1, "month": 1, "q": 3, "quarter": 3, "y": 12, "a": 12, "year": 12}
# Time and memory:
MOST_STEPS_PER_ROW = 100  # a finer grid would be almost empty
MONDAY = np.datetime64("1970-01-05", "ns")  # so that weeks begin on Mondays


@dataclass(frozen=True)
class Every:
    """The length of a step: a number of months or of nanoseconds, or a plain number."""

    size: float
    unit: Literal["months", "nanoseconds", "number"]

    @classmethod
    def of(cls, text: str | float) -> Every:
        """Read `1h`, `15min`, `2 weeks`, `1 month`, or a number for times that are numbers."""
        match = EVERY.fullmatch(str(text))
        number, name = match.groups() if match else (None, "?")
        size = float(number) if number else 1.0
        unit = name.lower()
        if len(unit) > 1:
            unit = unit.removesuffix("s")  # hours, weeks
        if size > 0 and not name and number:
            return cls(size, "number")
        if size > 0 and unit in SECONDS:
            return cls(round(size * SECONDS[unit] * 1e9), "nanoseconds")
        if size > 0 and unit in MONTHS and size.is_integer():
            return cls(size * MONTHS[unit], "months")
        raise InputError(
            f"Expected the length of a step (every) such as 15min, 1h, 1d, 1w, 1month, 1quarter, "
            f"1year or a number, found {text!r}."
        )

    def steps(self, time: Array) -> npt.NDArray[np.int64]:
        """The number of the step that each time falls into, (row,)."""
        self._check(time)
        if self.unit == "number":
            return np.floor(time.astype(np.float64) / self.size).astype(np.int64)
        if self.unit == "months":
            return np.asarray(time.astype("datetime64[M]").astype(np.int64) // int(self.size))
        if time.dtype.kind == "M":
            time = time.astype("datetime64[ns]") - MONDAY
        return np.asarray(time.astype("timedelta64[ns]").astype(np.int64) // int(self.size))

    def times(self, steps: npt.NDArray[np.int64], like: Array) -> Array:
        """When these steps begin, of the type of the times `like`."""
        if self.unit == "number":
            return steps * self.size
        if self.unit == "months":
            return (steps * int(self.size)).astype("datetime64[M]").astype(like.dtype)
        span = (steps * int(self.size)).astype("timedelta64[ns]")
        return (span if like.dtype.kind == "m" else MONDAY + span).astype(like.dtype)

    def _check(self, time: Array) -> None:
        dated = time.dtype.kind in "Mm"
        if dated == (self.unit == "number"):
            have, want = ("dates", "1h") if dated else ("numbers", "10")
            raise InputError(f"The times are {have}: give every as something like {want}.")
        if self.unit == "months" and time.dtype.kind != "M":
            raise InputError("Months need dates, and the times are durations; use days.")


@dataclass(frozen=True)
class Groups:
    """Rows that become one: each of `count` new rows is made of the rows of one group."""

    of_row: npt.NDArray[np.int64]  # (row,) the new row, ascending; some may have no row
    count: int

    @property
    def first(self) -> npt.NDArray[np.int64]:
        """The first row of every group that has rows."""
        return np.flatnonzero(np.diff(self.of_row, prepend=-1))

    def merged(self, values: Array, how: HowName = "mean") -> Array:
        """Values (row, column) with one row per group; NaN where nothing is known."""
        groups = pd.DataFrame(values).groupby(self.of_row)
        made = groups.sum(min_count=1) if how == "sum" else groups.agg(how)
        return made.reindex(range(self.count)).to_numpy(values.dtype)

    def last_code(
        self, codes: npt.NDArray[np.int64], carried: bool = False
    ) -> npt.NDArray[np.int64]:
        """The last code (row,) that is not -1 of each group; -1 where there is none, or, if
        `carried`, that of the group before it."""
        known = pd.Series(codes).where(codes >= 0)
        made = known.groupby(self.of_row).last().reindex(range(self.count))
        return (made.ffill() if carried else made).fillna(-1).to_numpy(np.int64)

    def all_true(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether all rows of a group are True; False where there are none."""
        made = pd.Series(chosen).groupby(self.of_row).all()
        return made.reindex(range(self.count), fill_value=False).to_numpy(bool)


def on_grid(every: Every, time: Array, series: Array) -> tuple[Groups, Array, Array]:
    """Groups of sorted rows by steps of time, and the time and series (new row,) of each.

    Every series has all steps from its first to its last, whether there are rows or not.
    """
    steps = every.steps(time)
    first = np.flatnonzero(np.diff(series, prepend=-1))
    ends = np.append(first[1:], len(series))
    lengths = steps[ends - 1] - steps[first] + 1
    total = int(lengths.sum())
    if total > MOST_STEPS_PER_ROW * len(time):
        raise InputError(
            f"Such steps make {total:,} rows of {len(time):,}, nearly all of them empty; take a "
            "longer step (every)."
        )
    offsets = np.cumsum(lengths) - lengths
    of_row = steps - np.repeat(steps[first] - offsets, ends - first)
    numbers = np.arange(total) + np.repeat(steps[first] - offsets, lengths)
    return Groups(of_row, total), every.times(numbers, time), np.repeat(series[first], lengths)

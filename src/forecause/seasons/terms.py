"""TimeTerms: cycles, a slow trend, level shifts and odd days, as columns that any row's time gives.

Time drives every variable, so it is a common cause like any other. The terms can be evaluated for
any row, also for future ones; `search` finds them and `course` takes them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from forecause.common.bounded import Count
from forecause.regression.splines import spline_terms

# Time and memory:
MOST_HARMONICS = 10_000  # of a season that is loaded, and of its parts

# Shape of the model:
TREND_KNOTS = 5
MOST_STRAIGHT = 5  # knots of a trend that goes on straight after the last row

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cycle:
    """A period in rows, how many harmonics it takes, and whether its size changes with time.

    The bounds hold for a run that is loaded.
    """

    period: Annotated[float, Field(ge=2)]
    harmonics: Annotated[int, Field(ge=1, le=MOST_HARMONICS)]
    growing: bool = False
    name: str = ""  # of a period that the calendar knows: "day"
    # of equal length with levels of their own: the days of a week
    parts: Annotated[int, Field(ge=0, le=MOST_HARMONICS)] = 0
    shift: float = 0.0  # rows from the beginning of the first part to row 0

    @property
    def words(self) -> str:
        """Like `a cycle of 24 rows (a day)`."""
        rows = f"{self.period:.1f}".removesuffix(".0")
        name = f" (a {self.name})" if self.name else ""
        return f"a cycle of {rows} rows{name}{', whose size changes' if self.growing else ''}"

    @property
    def frequencies(self) -> list[float]:
        """In cycles per row, of every harmonic that rows can show."""
        orders = range(1, self.harmonics + 1)
        return [order / self.period for order in orders if order / self.period <= 0.5]


@dataclass(frozen=True)
class TimeTerms:
    """What time explains in a table of so many rows: cycles, trend, shifts and odd days."""

    rows: Count
    cycles: tuple[Cycle, ...] = ()
    knots: tuple[float, ...] = ()  # rows between which the trend bends; () is no trend
    shifts: tuple[Count, ...] = ()  # first rows of new levels
    odd_days: tuple[tuple[int, int], ...] = ()  # first row and end of days unlike their weekday

    def __bool__(self) -> bool:
        return bool(self.cycles or self.knots or self.shifts or self.odd_days)

    def matrix(self, positions: npt.ArrayLike | None = None) -> Array:
        """The terms at some rows, by default all of the table, (row, term). No intercept.

        Rows may be fractional or lie in the future; there the trend goes on straight, or stays
        where it is if it bends often.
        """
        places = np.arange(self.rows) if positions is None else positions
        time = np.asarray(places, dtype=np.float64)
        columns = [term for cycle in self.cycles for term in self._cycle_terms(cycle, time)]
        if self.knots:
            bent = len(self.knots) > MOST_STRAIGHT
            slow = np.clip(time, self.knots[0], self.knots[-1]) if bent else time
            columns += list(trend_terms(slow, self.knots).T)
        columns += [(time >= row).astype(np.float64) for row in self.shifts]
        columns += [((time >= a) & (time < b)).astype(np.float64) for a, b in self.odd_days]
        return np.stack(columns, axis=1) if columns else np.zeros((len(time), 0))

    def _cycle_terms(self, cycle: Cycle, time: Array) -> list[Array]:
        """Sine and cosine of every harmonic that no cycle before this one has."""
        taken = [f for c in self.cycles[: self.cycles.index(cycle)] for f in c.frequencies]
        terms: list[Array] = []
        for frequency in cycle.frequencies:
            if any(abs(frequency - other) < 0.25 / self.rows for other in taken):
                continue
            terms += waves(frequency, time)
        if cycle.growing:
            terms += [term * (2 * time / max(self.rows - 1, 1) - 1) for term in list(terms)]
        if cycle.parts:
            part = np.floor((time + cycle.shift) / cycle.period * cycle.parts) % cycle.parts
            terms += [(part == level).astype(np.float64) for level in range(1, cycle.parts)]
        return terms

    @property
    def words(self) -> list[str]:
        """What there is, in plain words."""
        parts = [cycle.words for cycle in self.cycles]
        if self.knots:
            parts.append("a slow trend")
        if self.shifts:
            rows = ", ".join(f"{row + 1:,}" for row in self.shifts)
            parts.append(f"a new level from row {rows} on")
        if self.odd_days:
            count = len(self.odd_days)
            days = "a day that is" if count == 1 else f"{count} days that are"
            parts.append(f"{days} unlike their weekday, such as holidays")
        return parts


def trend_terms(time: Array, knots: Sequence[float]) -> Array:
    """A natural cubic spline of time without intercept, (row, knot - 1); straight outside."""
    first, last = knots[0], knots[-1]
    places = (np.array(knots) - first) / (last - first)
    return spline_terms((time - first)[:, None] / (last - first), places[None])[:, 0]


def slow_terms(rows: int, knots: int = TREND_KNOTS) -> Array:
    """A trend that bends a few times, (row, term)."""
    return trend_terms(np.arange(rows, dtype=np.float64), even_knots(rows, knots))


def even_knots(rows: int, count: int = TREND_KNOTS) -> tuple[float, ...]:
    """Evenly spread over the rows, the first and the last included."""
    return tuple(np.linspace(0, rows - 1, count).tolist())


def waves(frequency: float, time: Array) -> list[Array]:
    """Cosine and sine; at half a cycle per row the sine is always zero and left out."""
    angle = 2 * np.pi * frequency * time
    return [np.cos(angle)] if abs(frequency - 0.5) < 1e-9 else [np.cos(angle), np.sin(angle)]

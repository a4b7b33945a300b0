"""TimeCourse: what was taken out of a panel before anything is fitted, and how to put it back.

Cycles, trends and level shifts drive every variable alike, so they make unrelated variables look
related. Each series has terms of its own with periods that all share; what they explain of its
numbers is subtracted, and added again to forecasts. Differences from row to row, where asked for,
are taken first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from forecause.config.thresholds import thresholds
from forecause.data.gaps import expected
from forecause.data.scratch import copied, new_array, pieces
from forecause.regression.least_squares import pseudo_inverse
from forecause.seasons.cycles import rows_since_monday
from forecause.seasons.search import Season, TrendName, find_time_terms
from forecause.seasons.terms import Array, Cycle, TimeTerms

if TYPE_CHECKING:
    from forecause.config import Config, DataOptions
    from forecause.data.panel import Panel

# Time and memory:
MOST_SEARCHED = 20_000  # rows of a series that are searched; of longer ones averages are
MOST_CELLS = 20_000_000  # of a table that are searched
MOST_COLUMNS = 60  # that are searched, evenly spread; what is found is taken out of all
MOST_SERIES = 50  # with more, no series is searched for a trend of its own
BLOCK = 200  # columns solved together

# Numerics:
NOTHING_LEFT = 1e-6  # share of the variance: such a variable is time itself and stays as it is

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TimeCourse:
    """What time explains of every column in every series, and the last levels of differences."""

    terms: tuple[TimeTerms, ...]  # of each series
    weights: tuple[Array, ...]  # (1 + term, column) of each series, the first of the constant
    ends: tuple[int, ...]  # position in time after the last row, of each series
    levels: Array | None = None  # (series, column) where differences are taken; NaN: a label

    def explained(self, series: int, positions: npt.ArrayLike) -> Array:
        """What time explains at some positions of a series, (position, column)."""
        terms = self.terms[series].matrix(positions)
        return np.asarray(self.weights[series][0] + terms @ self.weights[series][1:])

    def applied(self, panel: Panel) -> Panel:
        """A panel without what time explains, its numbers as differences where these are taken."""
        left = panel if self.levels is None else differenced(panel)
        if not any(self.terms):
            return replace(left, course=self)
        values = new_array(left.values.shape, left.values.dtype)
        for series, (first, end) in enumerate(left.spans):
            place = positions_of(left, first, end)
            for rows in pieces((end - first, values.shape[1]), np.float64):
                own = slice(first + rows.start, first + rows.stop)
                values[own] = left.values[own] - self.explained(series, place[rows])
        left = replace(left, values=values, course=self)
        return left if left.filled is None else _filled_again(left)

    def of_rows(self, panel: Panel, start: int = 0, end: int | None = None) -> Array:
        """What time explains of the rows start .. end of a panel like the one it came from."""
        end = panel.rows if end is None else end
        explained = np.zeros((end - start, len(panel.variables)))
        for series, (first, last) in enumerate(panel.spans):
            low, high = max(first, start), min(last, end)
            if low < high:
                place = positions_of(panel, first, last)[low - first : high - first]
                explained[low - start : high - start] = self.explained(series, place)
        return explained

    def restored(
        self, series: int, ahead: Array, position: int | None = None, last: Array | None = None
    ) -> Array:
        """Forecasts (..., step, column) in the data's own units.

        From the end of a series, or from a position in it with these last values (column,).
        """
        start = self.ends[series] if position is None else position
        values = ahead + self.explained(series, start + np.arange(ahead.shape[-2]))
        if self.levels is None:
            return np.asarray(values)
        levels = self.levels[series]  # NaN for labels, which are no differences
        known = np.nan_to_num(levels if last is None else last)
        return np.where(np.isnan(levels), values, known + np.cumsum(values, axis=-2))

    def taken_from(self, series: int, column: int, path: Array) -> Array:
        """What is left of the values (step,) that a column is to have after a series' end."""
        if self.levels is not None:
            path = np.diff(path, prepend=self.levels[series, column])
        ahead = self.ends[series] + np.arange(len(path))
        return np.asarray(path - self.explained(series, ahead)[:, column])

    @property
    def sentence(self) -> str:
        """What was done, in plain words; empty if nothing was."""
        said = "" if self.levels is None else "Differences from row to row were taken. "
        parts = self._words()
        if parts:
            listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
            said += f"Time alone explains {listed}; it was taken out of every number."
        return said.strip()

    def _words(self) -> list[str]:
        if len(self.terms) == 1:
            return self.terms[0].words
        longest = max(self.terms, key=lambda one: one.rows)
        parts = [cycle.words for cycle in longest.cycles]
        for what, count in (
            ("a slow trend", sum(bool(one.knots) for one in self.terms)),
            ("new levels", sum(bool(one.shifts) for one in self.terms)),
            ("days unlike their weekday", sum(bool(one.odd_days) for one in self.terms)),
        ):
            parts += [f"{what} in {count} of {len(self.terms)} series"] if count else []
        return parts

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "terms": [asdict(terms) for terms in self.terms],
            "weights": [weights.tolist() for weights in self.weights],
            "ends": list(self.ends),
            "levels": None if self.levels is None else np.nan_to_num(self.levels).tolist(),
            "labels": [] if self.levels is None else np.isnan(self.levels[0]).tolist(),
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> TimeCourse:
        """Back from `to_json`."""
        levels = None
        if saved["levels"] is not None:
            levels = np.where(saved["labels"], np.nan, np.array(saved["levels"], dtype=np.float64))
        return cls(
            TypeAdapter(tuple[TimeTerms, ...]).validate_python(saved["terms"]),
            tuple(np.array(weights, dtype=np.float64) for weights in saved["weights"]),
            tuple(saved["ends"]),
            levels,
        )


def time_taken_out(panel: Panel, config: Config) -> Panel:
    """The panel without what time alone explains; its `course` tells what that was.

    Where nothing is asked for or found, the panel itself. Level shifts are not looked for where
    there are domains or regimes, which have levels of their own.
    """
    asked = config.data
    fitting = config.forecasting
    shifts = panel.domain is None and not fitting.regimes and not fitting.per_series
    levels = _last_levels(panel) if asked.difference else None
    left = differenced(panel) if asked.difference else panel
    spans = left.spans
    places = [positions_of(left, first, end) for first, end in spans]
    if left.filled is not None:  # what was filled says nothing about time
        left = replace(left, values=_emptied(left.values, left.filled))
    terms = _find(left, places, asked, shifts)
    if levels is None and not any(terms):
        return panel
    numeric = left.coding.numeric_columns
    weights = tuple(
        _weights(own, place, left.values[first:end], numeric)
        for (first, end), own, place in zip(spans, terms, places, strict=True)
    )
    return TimeCourse(terms, weights, tuple(map(_length, places)), levels).applied(panel)


def _filled_again(panel: Panel) -> Panel:
    """The filled cells once more, by what is expected there once time is taken out."""
    assert panel.filled is not None
    values = _emptied(panel.values, panel.filled)
    return replace(panel, values=expected(values, panel.starts, panel.coding.numeric_columns)[0])


def _emptied(values: npt.NDArray[Any], cells: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """A copy with these cells missing."""
    made = copied(values)
    for rows in pieces(values.shape, values.dtype):
        made[rows][cells[rows]] = np.nan
    return made


def positions_of(panel: Panel, first: int, end: int) -> Index:
    """The place in time of rows first .. end of one series, in steps: gaps in time count."""
    steps = np.ones(end - first, dtype=np.int64)
    steps[:1] = 0
    breaks = panel.starts[(panel.starts > first) & (panel.starts < end)] - first
    if panel.time is not None and len(breaks):
        time = panel.time[first:end]
        dates = time.dtype.kind == "M"
        moved = np.diff((time.astype("datetime64[s]") if dates else time).astype(np.float64))
        usual = np.median(moved)
        if np.isfinite(usual) and usual > 0:
            steps[breaks] = np.maximum(1, np.nan_to_num(np.round(moved[breaks - 1] / usual), nan=1))
    return np.cumsum(steps)


def _length(place: Index) -> int:
    return int(place[-1]) + 1 if len(place) else 0


def _find(
    panel: Panel, places: Sequence[Index], asked: DataOptions, shifts: bool
) -> tuple[TimeTerms, ...]:
    """The terms of each series: periods from the longest one, everything else of its own."""
    terms = [TimeTerms(_length(place)) for place in places]
    numeric = panel.coding.numeric_columns
    if (asked.season, asked.trend) == ("none", "none") or not len(numeric):
        return tuple(terms)
    longest = max(range(len(terms)), key=lambda series: len(places[series]))
    search = SeasonSearch(panel, places, shifts)
    terms[longest] = search.terms(longest, asked.season, asked.trend)
    cycles = terms[longest].cycles
    for series, own in enumerate(terms):
        if series == longest or not own.rows:
            continue
        kept = tuple(c for c in cycles if c.period * thresholds().seasons.least_cycles <= own.rows)
        if asked.trend == "none" or len(terms) > MOST_SERIES:
            terms[series] = replace(own, cycles=tuple(replace(c, parts=0) for c in kept))
        else:
            periods = [cycle.period for cycle in kept]  # none of them is no season
            terms[series] = search.terms(series, periods, asked.trend)
    return tuple(terms)


@dataclass(frozen=True, eq=False)
class SeasonSearch:
    """The numbers of a panel on regular grids of time, some of them where there are many."""

    panel: Panel
    places: Sequence[Index]
    shifts: bool

    def terms(self, series: int, season: Season, trend: TrendName) -> TimeTerms:
        """What time explains in one series."""
        first, end = self.panel.spans[series]
        place, begin = self.places[series], 0
        rows, total = slice(first, end), int(place[-1]) + 1
        if total > thresholds().seasons.most_empty * len(place):
            # the longest unbroken stretch alone is searched
            rows, trend = self._longest_stretch(first, end), "none"
            begin = int(place[rows.start - first])
            place = np.arange(rows.stop - rows.start)
        stamps = self._dates(rows)
        grid = self._grid(rows, place)
        if len(grid) <= MOST_SEARCHED:
            searched = find_time_terms(grid, stamps, season, trend, self.shifts)
            return self._from_first_row(replace(searched, rows=total), first, begin)
        begin += len(grid) - MOST_SEARCHED
        late = int(np.searchsorted(place, len(grid) - MOST_SEARCHED))
        stamps = None if stamps is None else stamps[late:]
        cycles = find_time_terms(grid[-MOST_SEARCHED:], stamps, season, "none").cycles
        terms = self._from_first_row(TimeTerms(total, cycles), first, begin)
        return self._with_averages(grid, terms, trend)

    def _dates(self, rows: slice) -> npt.NDArray[np.datetime64] | None:
        """The time stamps of some rows, None where time is no dates."""
        time = self.panel.time
        return time[rows] if time is not None and time.dtype.kind == "M" else None

    def _from_first_row(self, terms: TimeTerms, first: int, begin: int) -> TimeTerms:
        """Terms that were found from position `begin` on, counted from a series' first row."""
        start = self._dates(slice(first, first + 1))

        def moved(cycle: Cycle) -> Cycle:
            shift = (cycle.shift - begin) % cycle.period
            if start is not None:
                shift = rows_since_monday(start[0], cycle.period)
            return replace(cycle, shift=shift) if cycle.parts else cycle

        cycles = tuple(map(moved, terms.cycles))
        odd_days = tuple((one + begin, end + begin) for one, end in terms.odd_days)
        return replace(terms, cycles=cycles, odd_days=odd_days)

    def _grid(self, rows: slice, place: Index) -> Array:
        """The values at every position, (position, column), NaN where there is no row."""
        numeric = self.panel.coding.numeric_columns
        most = int(np.clip(MOST_CELLS // len(place), 5, MOST_COLUMNS))
        columns = numeric[:: max(1, -(-len(numeric) // most))]
        values = np.asarray(self.panel.values[rows][:, columns], dtype=np.float64)
        if place[-1] + 1 == len(values):
            return values
        grid = np.full((int(place[-1]) + 1, len(columns)), np.nan)
        grid[place] = values
        return grid

    def _longest_stretch(self, first: int, end: int) -> slice:
        inner = self.panel.starts[(self.panel.starts > first) & (self.panel.starts < end)]
        edges = np.array([first, *inner.tolist(), end])
        most = int(np.diff(edges).argmax())
        return slice(int(edges[most]), int(edges[most + 1]))

    def _with_averages(self, grid: Array, terms: TimeTerms, trend: TrendName) -> TimeTerms:
        """Trend and shifts of a long series, from averages of neighbours freed of the cycles."""
        place, columns = np.arange(len(grid)), np.arange(grid.shape[1])
        weights = _weights(terms, place, grid, columns)
        step = -(-len(grid) // MOST_SEARCHED)
        cuts = np.arange(0, len(grid), step)
        free = grid - (weights[0] + terms.matrix(place) @ weights[1:])
        known = np.maximum(np.add.reduceat(np.isfinite(free), cuts, axis=0), 1)
        averages = np.add.reduceat(np.nan_to_num(free), cuts, axis=0) / known
        slow = find_time_terms(averages, None, "none", trend, self.shifts)
        knots = tuple(step * knot for knot in slow.knots)
        return replace(terms, knots=knots, shifts=tuple(step * row for row in slow.shifts))


def _weights(terms: TimeTerms, place: Index, part: npt.NDArray[Any], columns: Index) -> Array:
    """Least squares of columns on the terms, (1 + term, column), mean zero; 0 for other columns."""
    weights = np.zeros((1 + terms.matrix([0]).shape[1], part.shape[1]))
    for some in np.array_split(columns, -(-len(columns) // BLOCK)) if terms else ():
        weights[:, some] = _solved(terms, place, part, some)
    return weights


def _solved(terms: TimeTerms, place: Index, part: npt.NDArray[Any], columns: Index) -> Array:
    """`_weights` of a few columns alone, from moments gathered piece by piece.

    A column of which nothing would be left is time itself, an hour of the day say: it stays.
    """
    size = 1 + terms.matrix([0]).shape[1]
    gram, moment = np.zeros((len(columns), size, size)), np.zeros((len(columns), size))
    square = np.zeros(len(columns))
    near = [part[np.isfinite(part[:, c]).argmax(), c] for c in columns.tolist()]
    for rows in pieces((len(part), size * len(columns)), np.float64):
        design = np.column_stack([np.ones(rows.stop - rows.start), terms.matrix(place[rows])])
        values = np.asarray(part[rows][:, columns], dtype=np.float64) - near
        known = np.isfinite(values)
        if known.all():
            gram += design.T @ design
        else:
            gram += np.einsum("ri,rc,rj->cij", design, known, design, optimize=True)
        filled = np.where(known, values, 0.0)
        moment += filled.T @ design
        square += (filled**2).sum(0)
    count = np.maximum(gram[:, 0, 0], 1)
    solved = (pseudo_inverse(gram) @ moment[..., None])[..., 0]
    left = square - (solved * moment).sum(1)
    weights = np.where(
        (left > NOTHING_LEFT * (square - moment[:, 0] ** 2 / count))[:, None], solved, 0
    )
    weights[:, 0] = -(gram[:, 0, 1:] * weights[:, 1:]).sum(1) / count
    return np.asarray(weights.T)


def differenced(panel: Panel) -> Panel:
    """Numbers as their change since the row before; missing in the first row of a stretch."""
    values = new_array(panel.values.shape, panel.values.dtype)
    numeric = panel.coding.numeric_columns
    for rows in pieces(values.shape, np.float64):
        values[rows] = panel.values[rows]
        before = panel.values[max(rows.start - 1, 0) : rows.stop - 1][:, numeric]
        since = max(rows.start, 1)
        values[since : rows.stop, numeric] = panel.values[since : rows.stop][:, numeric] - before
    values[np.ix_(panel.starts, numeric)] = np.nan
    filled = None if panel.filled is None else panel.filled.copy()
    if filled is not None and panel.filled is not None:
        filled[1:] |= panel.filled[:-1]
    return replace(panel, values=values, filled=filled)


def _last_levels(panel: Panel) -> Array:
    """The last value of every number in every series, (series, column); NaN for labels."""
    spans, numeric = panel.spans, panel.coding.numeric_columns
    levels = np.full((len(spans), len(panel.variables)), np.nan)
    for series, (first, end) in enumerate(spans):
        levels[series, numeric] = panel.values[end - 1][numeric] if end > first else 0.0
    return levels

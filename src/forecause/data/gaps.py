"""Missing values: straight lines over short gaps, or what is expected from the rows before.

Expected values come from a joint Gaussian model of a row and the rows before it, fitted to the
table with its holes by expectation and maximisation. Only the past and the same row are used: a
value that was estimated from its own future would make effects look stronger than they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.config.thresholds import thresholds
from forecause.data.scratch import copied, pieces
from forecause.regression.least_squares import precision

# Time and memory:
MOST_COLUMNS = 600  # of a row with the rows before it; with many variables fewer rows are used
MOST_VARIABLES = 2000  # beyond which nothing is filled
MOST_ITERATIONS = 12
COVARIANCE_WORK = 4e9  # rows times squared columns of one covariance, at most
LEAST_FIT_ROWS = 20_000

# Numerics:
CLOSE = 0.01  # standard deviations: a smaller change of all cells ends the iterations
RIDGE = 1e-3  # added to the variances, so that near-copies can be solved

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.int64]


def expected(
    values: npt.NDArray[Any], starts: Index, columns: Iterable[int]
) -> tuple[npt.NDArray[Any], Mask | None]:
    """Values (row, column) with gaps filled, and which cells those are, None if none.

    `columns` may be filled; in the others, which are only read, gaps stay. Long gaps stay too, and
    gaps that are not short where most of the row or of the column is missing; see the thresholds
    of reading. `starts` are the first rows of unbroken stretches.
    """
    bounds = thresholds().reading
    if values.shape[1] > MOST_VARIABLES:
        return values, None
    missing = np.concatenate(
        [np.isnan(values[rows]) for rows in pieces(values.shape, values.dtype)]
    )
    least = bounds.least_complete
    if (~missing.any(axis=1)).sum() < least and len(missing) < 10 * least:
        return values, None
    chosen = np.zeros_like(missing)
    known_rows = missing.mean(axis=1) <= 1 - bounds.least_known
    for column in columns:
        own = missing[:, column]
        if own.any():
            chosen[:, column] = _in_runs_up_to(bounds.short_gap, own, starts)
        if chosen[:, column].sum() < own.sum() and own.mean() <= 1 - bounds.least_known:
            chosen[:, column] |= _in_runs_up_to(bounds.longest_gap, own, starts) & known_rows
    if not chosen.any():
        return values, None
    made = _Filling(values, missing, starts).result()
    made[missing & ~chosen] = np.nan
    return made, chosen


def _in_runs_up_to(longest: int, missing: Mask, starts: Index) -> Mask:
    """Where (row,) a run of missing rows within one stretch is at most so long."""
    change = np.flatnonzero(np.diff(missing.astype(np.int8), prepend=0, append=0))
    edges = np.union1d(change, starts)
    lengths = np.diff(np.append(edges, len(missing)))
    short = np.repeat(lengths <= longest, lengths)
    return np.asarray(missing & np.concatenate([np.zeros(edges[0], dtype=bool), short]))


class _Filling:
    """Expectation and maximisation on a copy of the values, in standard deviations.

    A row's vector is the row followed by those before it, (row, (1 + before) * column).
    """

    def __init__(self, values: npt.NDArray[Any], missing: Mask, starts: Index) -> None:
        self.mean = np.nanmean(values, axis=0, dtype=np.float64)
        self.sd = np.nanstd(values, axis=0, dtype=np.float64)
        self.missing = missing
        self.columns = values.shape[1]
        affordable = MOST_COLUMNS // self.columns - 1
        self.before = max(0, min(thresholds().reading.rows_before, affordable))
        self.made = copied(values)
        for rows in pieces(values.shape, values.dtype):
            self.made[rows] = np.where(missing[rows], self.mean, self.made[rows])
        stretch = np.searchsorted(starts, np.arange(len(values)), side="right") - 1
        self.age = np.arange(len(values)) - starts[stretch]  # rows since the stretch began
        self.holes = np.flatnonzero(missing.any(axis=1))
        # of the values that are filled in, the variance that is still unknown, per row of the table
        self.unknown: Floats = np.diag(missing.mean(axis=0))

    def result(self) -> npt.NDArray[Any]:
        """The values with every missing cell filled."""
        for _ in range(MOST_ITERATIONS):
            if self._improve() < CLOSE:
                break
        return self.made

    def _improve(self) -> float:
        """One round over all missing cells; the largest change in standard deviations."""
        pull = precision(self._covariance())[: self.columns]  # (column, vector)
        own = pull[:, : self.columns]
        unknown, largest = np.zeros_like(self.unknown), 0.0
        counts = self.missing[self.holes].sum(axis=1)
        for count in np.unique(counts):
            rows = self.holes[counts == count]
            for some in np.array_split(rows, -(-len(rows) * self.columns // 100_000)):
                places = np.nonzero(self.missing[some])[1].reshape(-1, count)
                block = own[places[:, :, None], places[:, None, :]]  # (row, missing, missing)
                force = np.take_along_axis(self._vectors(some) @ pull.T, places, axis=1)
                inverse = precision(block)
                step = np.einsum("rij,rj->ri", inverse, force)
                self.made[some[:, None], places] -= step * self.sd[places]
                largest = max(largest, float(np.abs(step).max()))
                np.add.at(unknown, (places[:, :, None], places[:, None, :]), inverse)
        self.unknown = unknown / len(self.made)
        return largest

    def _covariance(self) -> Floats:
        """Of the rows' vectors, (vector, vector), what is unknown of filled cells included."""
        rows = np.flatnonzero(self.age >= self.before)
        size = (1 + self.before) * self.columns
        most = max(LEAST_FIT_ROWS, int(COVARIANCE_WORK / size**2))
        rows = rows[:: max(1, -(-len(rows) // most))]
        total = np.zeros((size, size))
        for some in np.array_split(rows, max(1, -(-len(rows) * size // 1_000_000))):
            vectors = self._vectors(some)
            total += vectors.T @ vectors
        total /= max(len(rows), 1)
        for lag in range(1 + self.before):
            own = slice(lag * self.columns, (lag + 1) * self.columns)
            total[own, own] += self.unknown
        return total + RIDGE * np.eye(size)

    def _vectors(self, rows: Index) -> Floats:
        """The vectors of some rows, 0 where the stretch had not begun."""
        lags = np.arange(1 + self.before)
        places = np.maximum(rows[:, None] - lags, 0)
        vectors = (self.made[places] - self.mean) / self.sd
        vectors[self.age[rows][:, None] < lags] = 0.0
        return vectors.reshape(len(rows), -1)


def interpolated(
    values: npt.NDArray[Any], starts: Index, longest: int, columns: Iterable[int]
) -> tuple[npt.NDArray[Any], int]:
    """Values (row, column) with runs of at most `longest` missing rows filled, and how many.

    In these columns. A run is filled from the value before to the value after it, both in the same
    unbroken stretch: edges stay missing. The input is copied only if something is filled.
    """
    filled, count = values, 0
    for column in columns:
        missing = np.isnan(values[:, column])
        rows, known = _rows_between(missing, starts, longest), np.flatnonzero(~missing)
        if not len(rows):
            continue
        if filled is values:
            filled = copied(values)
        filled[rows, column] = np.interp(rows, known, values[known, column])
        count += len(rows)
    return filled, count


def _rows_between(missing: Mask, starts: Index, longest: int) -> Index:
    """The rows of short runs with a known row before and after them in the same stretch."""
    rows, known = np.flatnonzero(_in_runs_up_to(longest, missing, starts)), np.flatnonzero(~missing)
    after = np.searchsorted(known, rows)  # the place of the next known row
    inner = (after > 0) & (after < len(known))
    rows, after = rows[inner], after[inner]
    before_of, after_of = (
        np.searchsorted(starts, known[place], side="right") for place in (after - 1, after)
    )
    return rows[before_of == after_of]

"""Missing values and single wild errors, which are read as missing: both are filled.

Short gaps are filled by straight lines, or by what is expected from the rows before.
Expected values come from a joint Gaussian model of a row and the rows before it, fitted to the
table with its holes by expectation and maximisation. Only the past and the same row are used: a
value that was estimated from its own future would make effects look stronger than they are.

A cell far from what its column's last rows let expect is either a shock, which the system feels
in the rows after it, or an error of measurement, which it does not. Where the rows after such
cells show nothing of what they should do, they are read as missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from forecause.common.arrays import Array, Index, Mask
from forecause.config.thresholds import thresholds
from forecause.data.scratch import copied, pieces
from forecause.regression.least_squares import precision, ridge

# Time and memory:
MOST_COLUMNS = 600  # of a row with the rows before it; with many variables fewer rows are used
MOST_VARIABLES = 2000  # beyond which nothing is filled
MOST_ITERATIONS = 12
COVARIANCE_WORK = 4e9  # rows times squared columns of one covariance, at most
LEAST_FIT_ROWS = 20_000
# and of the look for outliers:
MOST_CELLS = 2_000_000  # of a table that is looked at
MOST_INPUTS = 600  # columns times rows before them
MOST_ROWS = 20_000  # that are judged
ROUNDS = 4  # in which neighbours of an outlier are looked at again

# Shape of the model:
BEFORE = 5  # rows that a cell is expected from
FELT_WITHIN = 24  # rows in which a shock is felt, at most
LONGEST = 2  # neighbouring rows; longer stretches are events, not single errors

# Numerics:
CLOSE = 0.01  # standard deviations: a smaller change of all cells ends the iterations
RIDGE = 1e-3  # added to the variances, so that near-copies can be solved
CLIPPED = 3.0  # robust standard deviations beyond which a cell counts no further in a fit
PENALTY = 1e-3  # of a regression, per row
TO_SD = 1.4826  # from a median of distances to a standard deviation, if normal


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
        self.unknown: Array = np.diag(missing.mean(axis=0))

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

    def _covariance(self) -> Array:
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

    def _vectors(self, rows: Index) -> Array:
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


def additive_outliers(values: npt.NDArray[Any], starts: Index, columns: list[int]) -> Mask | None:
    """Which cells (row, column) are errors that nothing feels; None if there are none.

    `starts` are the first rows of unbroken stretches; `columns` are looked at.
    """
    rows = len(values)
    too_large = rows * len(columns) > MOST_CELLS or len(columns) * BEFORE > MOST_INPUTS
    if too_large or not columns or rows < 10 * BEFORE:
        return None
    whole, values = values, values[:, columns]
    stretch = np.searchsorted(starts, np.arange(rows), side="right") - 1
    usable = np.arange(rows) - starts[stretch] >= BEFORE
    if usable.sum() < 10 * BEFORE:
        return None
    table = _standardised(values)
    far, expected, nearly = _far_cells(table, usable)
    bounds = thresholds().reading
    counts = far.sum(axis=0)
    asked = (counts >= bounds.least_outliers) & (counts <= bounds.most_outliers * rows)
    asked &= counts >= bounds.outliers_apart * nearly
    if not asked.any():
        return None
    far[:, ~asked] = False
    judged = _Judged(table, np.where(far, expected, table), usable, ~np.isnan(values))
    unfelt = judged.unfelt(np.flatnonzero(asked))
    if not len(unfelt):
        return None
    found = np.zeros(whole.shape, dtype=bool)
    found[:, np.array(columns)[unfelt]] = far[:, unfelt]
    return found


def _standardised(values: npt.NDArray[Any]) -> Array:
    """Distances from the median in robust standard deviations; 0 where nothing is known."""
    table = np.array(values, dtype=np.float64)
    table -= np.nanmedian(table, axis=0)
    spread = TO_SD * np.nanmedian(np.abs(table), axis=0)
    table /= np.where(spread > 0, spread, np.inf)
    return np.nan_to_num(table, copy=False)


def _far_cells(table: Array, usable: Mask) -> tuple[Mask, Array, Index]:
    """Where (row, column) a cell is far from what the rows before it let expect, that, and how
    many cells (column,) are nearly as far: heavy tails have many."""
    far, known = np.zeros(table.shape, dtype=bool), table.copy()
    expected = np.zeros_like(table)
    for _ in range(ROUNDS):
        for column in range(table.shape[1]):
            expected[:, column] = _from_own_past(known[:, column], usable)
        surprise = table - expected
        spread = TO_SD * np.median(np.abs(surprise[usable]), axis=0)
        now = np.abs(surprise) > thresholds().reading.outlier * spread
        now &= usable[:, None] & (spread > 0)
        new = now & ~far
        new[1:] &= ~new[:-1]  # an outlier misleads about the row after it
        if not new.any():
            break
        far |= new
        known = np.where(far, expected, table)
    bounds = thresholds().reading
    nearly = np.abs(surprise) > bounds.nearly_outlier * bounds.outlier * spread
    return far & ~_in_long_runs(far), expected, (nearly & ~far & usable[:, None]).sum(axis=0)


def _from_own_past(known: Array, usable: Mask) -> Array:
    """What a column's last rows let expect, (row,), by a regression that outliers cannot tilt."""
    lags = np.column_stack([np.roll(known, lag) for lag in range(1, BEFORE + 1)])
    design = np.column_stack([np.clip(lags, -CLIPPED, CLIPPED), np.ones(len(known))])
    seen = design[usable]
    target = np.clip(known[usable], -CLIPPED, CLIPPED)
    slopes = ridge(seen, target, PENALTY * len(seen))
    return np.column_stack([lags, np.ones(len(known))]) @ slopes


def _in_long_runs(far: Mask) -> Mask:
    """Where (row, column) more than LONGEST neighbouring rows of a column are far off."""
    rows = len(far)
    padded = np.pad(far, ((LONGEST, LONGEST), (0, 0)))
    windows = [padded[shift : shift + rows + LONGEST] for shift in range(LONGEST + 1)]
    full = np.logical_and.reduce(windows)
    return np.logical_or.reduce([full[shift : shift + rows] for shift in range(LONGEST + 1)])


class _Judged:
    """Whether rows after far cells are forecast better without them than with them.

    Far cells are shocks, or answers to shocks, where what a forecast without them leaves open goes
    with the sign of earlier ones, however large they are. Where nothing follows a column's usual
    cells either, nothing can be told.
    """

    def __init__(self, table: Array, without: Array, usable: Mask, known: Mask) -> None:
        rows = np.flatnonzero(usable)
        rows = rows[:: max(1, -(-len(rows) // MOST_ROWS))]
        before = rows[:, None] - np.arange(1, BEFORE + 1)
        target = np.clip(table[rows], -CLIPPED, CLIPPED)
        left, right = (
            np.where(known[rows], _left_open(inputs[before].reshape(len(rows), -1), target), 0.0)
            for inputs in (without, table)
        )
        self.loss = (np.square(right) - np.square(left)).sum(axis=1)
        self.far_before = (table != without)[before].any(axis=1)  # (row, column)
        t = _largest_t(np.sign(table - without), rows, left)
        tests = 2 * _felt_within(len(t)) * np.where(np.eye(len(t), dtype=bool), 1, t.size)
        level = thresholds().reading.felt
        is_link = t > ndtri(1 - level / tests)  # most shocks are felt by their own column
        self.is_felt = is_link.any(axis=1) | is_link.any(axis=0)
        usual = np.clip(without, -CLIPPED, CLIPPED)
        t = _largest_t(usual - usual.mean(axis=0), rows, target, BEFORE)
        self.matters = (t > ndtri(1 - level / (2 * BEFORE * t.size))).any(axis=1)

    def unfelt(self, columns: Index) -> Index:
        """The columns whose far cells are errors.

        What a column's few far cells leave open, those of all columns together may tell.
        """
        least = thresholds().reading.outlier_gain
        columns = columns[self.matters[columns] & ~self.is_felt[columns]]
        own = np.array([self._gain(self.far_before[:, [column]]) for column in columns])
        together = self._gain(self.far_before[:, columns[own > 0]])
        return columns[own > (0.0 if together > least else least)]

    def _gain(self, far_before: Mask) -> float:
        """How much better rows after far cells are forecast without them, in standard errors."""
        loss = self.loss[far_before.any(axis=1)]
        if len(loss) < 2:
            return -np.inf
        return float(loss.mean() / max(loss.std() / np.sqrt(len(loss)), 1e-12))


def _felt_within(columns: int) -> int:
    """Rows after a far cell that are looked at."""
    return max(BEFORE, min(FELT_WITHIN, MOST_INPUTS // columns))


def _largest_t(steps: Array, rows: Index, left: Array, within: int = 0) -> Array:
    """Of a column's steps (row, column) some rows back on what is left open, (column, target)."""
    largest = np.zeros((steps.shape[1], left.shape[1]))
    for lag in range(1, (within or _felt_within(steps.shape[1])) + 1):
        before = steps[np.maximum(rows - lag, 0)]
        error = np.sqrt(np.maximum(np.square(before).T @ np.square(left), 1e-12))
        largest = np.maximum(largest, np.abs(before.T @ left) / error)
    return largest


def _left_open(inputs: Array, target: Array) -> Array:
    """Residuals (row, column), each half of the rows forecast by a fit to the other."""
    design = np.column_stack([inputs, np.ones(len(inputs))])
    halves = np.arange(len(design)) < len(design) // 2
    made = np.empty_like(target)
    for half in (halves, ~halves):
        made[half] = design[half] @ ridge(design[~half], target[~half], PENALTY * len(design))
    return np.clip(target - made, -CLIPPED, CLIPPED)

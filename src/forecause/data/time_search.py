"""The search for what time alone explains: cycles, a slow trend and level shifts.

Every piece is tested beside each variable's own past, so that an autoregression or a random walk
does not look like a cycle or a trend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import fft
from scipy.special import fdtrc

from forecause.data.time_terms import (
    Array,
    Cycle,
    TimeTerms,
    spline_terms,
    waves,
)

Stamps = npt.NDArray[np.datetime64]
Season = Literal["auto", "none"] | Sequence[float]
TrendName = Literal["auto", "none"]

HELD_LAGS = 6  # own past values that stand beside every piece while it is tested
LEAST_CYCLES = 3.0  # in the data, before a period is believed
LEAST_CYCLES_OF_SPECTRUM = 5.0  # before one is believed that no time stamp suggests
LEAST_PERIOD = 2.0  # rows
MOST_PARTS = 16  # of the record in which a wave's phase is compared
LEVEL = 0.01  # chance that a table without cycles is given one from its spectrum
STAMP_LEVEL = 0.02  # the same for a period that the time stamps suggest
MOST_CYCLES = 4
LEAST_HARMONICS, MOST_HARMONICS = 2, 6
SHARPEST, ROWS_PER_ORDER = 40, 30  # harmonics of a cycle with steps, such as weekdays; rows of each
TREND_KNOTS = 5
LEAST_ROWS = 60  # with fewer nothing is looked for
# Knots of a slow wave that all variables share, its least F value on average over them, and own
# past values beside it. Random walks of 2 to 8 variables reach 5.3 once in a hundred tables.
WAVE_KNOTS, SHARED_F, WAVE_LAGS = (9, 17), 5.5, 2
ROWS_PER_KNOT = 30  # of such a wave, at least
MOST_SHIFTS = 8
ROWS_BESIDE_SHIFT = 10  # a level lasts at least so many rows
# F values that pure random walks exceed once in a thousand, which no stationary series reaches
# by chance either; of 1,000 to 2,000 walks of 300 to 2,000 rows.
STRAIGHT_F = 19.0
TREND_F = 9.0
SHIFT_F = 28.0
# Of a shift that all variables share, on average over them: this much, and this over the root of
# their number. Of 360 tables of 2, 5 and 8 random walks none reached it.
SHARED_SHIFT_F, SHARED_SHIFT_SPREAD = 4.0, 18.0

LEAST_NEW = 1e-5  # of a piece, that other terms and the own past do not hold already
SAME_F = 3.0  # F lost to a rounder period that still counts as fitting as well
COMMON_PERIODS = (7.0, 12.0, 24.0, 30.4375, 48.0, 52.0, 60.0, 96.0, 144.0, 168.0, 288.0, 365.25)

DAYS, MONDAY = 7, np.datetime64("1970-01-05T00:00:00")  # the first Monday of the calendar used
SECONDS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
SECONDS |= {"month": 2629746.0, "year": 31556952.0}


def find_time_terms(
    values: Array,
    stamps: Stamps | None = None,
    season: Season = "auto",
    trend: TrendName = "auto",
    shifts: bool = True,
) -> TimeTerms:
    """Look for what time explains in values (row, variable).

    season: `auto` looks at the time stamps and the spectrum, `none` at nothing, or the periods in
    rows. trend: `auto` looks for a slow trend and, with `shifts`, for level shifts.
    """
    terms = TimeTerms(len(values))
    if len(values) < LEAST_ROWS:
        return terms
    search = _Search(_without_gaps(values))
    if not isinstance(season, str):
        for period in season:
            terms = search.with_cycle(terms, Cycle(float(period), 1))
    elif season == "auto":
        terms = search.with_calendar_cycles(terms, stamps)
        terms = search.with_spectral_cycles(terms)
    if trend == "auto":
        terms = search.with_level_changes(terms, shifts)
        terms = _Search(search.values, WAVE_LAGS).with_shared_changes(terms, shifts)
        if season == "auto" and (terms.knots or terms.shifts):
            # a shift or trend may have hidden a cycle, or posed as one
            terms = search.with_spectral_cycles(replace(terms, cycles=()), terms.cycles)
    return replace(terms, cycles=_merged(terms.cycles))


def calendar_periods(stamps: Stamps | None, rows: int) -> dict[str, float]:
    """Periods in rows that the calendar suggests for this sampling step, by name."""
    if stamps is None or len(stamps) < 2:
        return {}
    step = float(np.median(np.diff(stamps.astype("datetime64[s]")).astype(np.float64)))
    if step <= 0:
        return {}
    periods = {name: length / step for name, length in SECONDS.items()}
    if step > 27 * SECONDS["day"]:  # months and quarters are unequal, their number is not
        periods = {"year": float(round(SECONDS["year"] / step))}
    return {
        name: period
        for name, period in periods.items()
        if LEAST_PERIOD <= period <= rows / LEAST_CYCLES
    }


def rows_since_monday(stamp: np.datetime64, week: float) -> float:
    """How many of a week's rows have passed since midnight of the Monday before."""
    seconds = float((stamp.astype("datetime64[s]") - MONDAY) / np.timedelta64(1, "s"))
    return seconds % SECONDS["week"] / SECONDS["week"] * week


class _Search:
    """Tests of pieces of time, beside each variable's own past."""

    def __init__(self, values: Array, held_lags: int = HELD_LAGS) -> None:
        self.held_lags = held_lags
        spread = values.std(0)
        self.values = ((values - values.mean(0)) / np.where(spread > 0, spread, 1))[:, spread > 0]
        self.rows, self.variables = self.values.shape
        self._terms, self._columns = TimeTerms(self.rows), np.zeros((self.rows, 0))
        self._beside: Array | None = None  # what the bases below stand for
        self._bases: dict[int, tuple[Array, Array]] = {}

    def gain(self, pieces: Array, beside: Array) -> Array:
        """F values of pieces (row, term) given own past and other terms, (variable,)."""
        found = np.zeros(self.variables)
        for column in range(self.variables):
            basis, left = self._held(column, beside)
            rest = pieces[self.held_lags :] - basis @ (basis.T @ pieces[self.held_lags :])
            rest /= np.maximum(np.sqrt((pieces**2).sum(0)), 1e-300)
            rest, sizes, _ = np.linalg.svd(rest, full_matrices=False)
            rest = rest[:, sizes > LEAST_NEW]
            if not rest.shape[1]:
                continue
            explained = ((rest.T @ left) ** 2).sum()
            free = len(left) - basis.shape[1] - rest.shape[1]
            found[column] = explained / rest.shape[1] / max((left @ left - explained) / free, 1e-12)
        return found

    def wave_p_value(self, frequencies: Sequence[float], beside: Array) -> float:
        """Smallest p-value over variables and frequencies, times how many were tried."""
        time = np.arange(self.rows, dtype=np.float64)
        gains = [self.gain(np.stack(waves(f, time), 1), beside).max() for f in frequencies]
        best = float(max(gains, default=0.0))
        tests = self.variables * max(len(frequencies), 1)
        p_value = float(fdtrc(2, self.rows - 3 * self.held_lags, best))
        return float(min(1.0, tests * p_value))

    def sized(self, cycle: Cycle, held: Array) -> Cycle:
        """The cycle with as many harmonics as there is evidence for beside other terms."""
        most = int(min(MOST_HARMONICS, cycle.period // 2))
        found = min(LEAST_HARMONICS, most)
        time = np.arange(self.rows, dtype=np.float64)
        for order in range(1, most + 1):
            if self.wave_p_value([order / cycle.period], held) < LEVEL / MOST_HARMONICS:
                found = max(found, order)
            held = np.column_stack([held, *waves(order / cycle.period, time)])
        return replace(cycle, harmonics=max(found, self._sharpest(cycle, held)))

    def _sharpest(self, cycle: Cycle, held: Array) -> int:
        """The highest harmonic beyond the usual ones that any variable shows, 0 without one.

        All are tested at once beside what is held: those of one cycle hardly overlap.
        """
        most = int(min(SHARPEST, (cycle.period - 1) // 2, self.rows // ROWS_PER_ORDER))
        orders = np.arange(MOST_HARMONICS + 1, most + 1)
        if not len(orders):
            return 0
        time = np.arange(self.held_lags, self.rows, dtype=np.float64)
        angles = 2 * np.pi * time[:, None] * orders / cycle.period
        pieces = np.hstack([np.cos(angles), np.sin(angles)])
        f_values = np.zeros((self.variables, len(orders)))
        for column in range(self.variables):
            basis, left = self._held(column, held)
            rest = pieces - basis @ (basis.T @ pieces)
            size = (rest**2).sum(0)
            explained = (left @ rest) ** 2 / np.where(size > LEAST_NEW * len(rest), size, np.inf)
            both = explained.reshape(2, -1).sum(0)
            f_values[column] = both / 2 / (left @ left / len(left))
        p_values = fdtrc(2, self.rows - 3 * self.held_lags, f_values.max(0))
        clear = orders[p_values * f_values.size < LEVEL]
        return int(clear.max(initial=0))

    def with_calendar_cycles(self, terms: TimeTerms, stamps: Stamps | None) -> TimeTerms:
        """Add the periods of the time stamps that the data follow, the shortest first."""
        periods = calendar_periods(stamps, self.rows)
        for name, period in sorted(periods.items(), key=lambda item: item[1]):
            beside = np.column_stack([terms.matrix(), self._slow()])
            orders = [k / period for k in (1, 2, 3) if k / period <= 0.5]
            if self.wave_p_value(orders, beside) < STAMP_LEVEL / len(periods):
                terms = self._with_weekdays(
                    terms, self.with_cycle(terms, Cycle(period, 1, name=name)), stamps
                )
        return terms

    def _with_weekdays(
        self, before: TimeTerms, terms: TimeTerms, stamps: Stamps | None
    ) -> TimeTerms:
        """The terms, a level for each day in place of most waves if the last cycle is a week
        that jumps at midnight."""
        week = terms.cycles[-1]
        if week.name != "week" or week.period < 2 * DAYS or stamps is None:
            return terms
        days = replace(week, parts=DAYS, shift=rows_since_monday(stamps[0], week.period))
        pieces = TimeTerms(self.rows, (replace(days, harmonics=0),)).matrix()
        best = self.gain(pieces, np.column_stack([terms.matrix(), self._slow()])).max()
        p_value = fdtrc(pieces.shape[1], self.rows - 4 * self.held_lags, best) * self.variables
        if p_value >= LEVEL:
            return terms
        return self.with_cycle(before, replace(days, harmonics=1, growing=False))

    def with_cycle(self, terms: TimeTerms, cycle: Cycle) -> TimeTerms:
        """Add a cycle, with as many harmonics as there is evidence for, growing if it grows."""
        levels = TimeTerms(self.rows, (replace(cycle, harmonics=0),)).matrix()
        beside = np.column_stack([terms.matrix(), self._slow(), levels])
        cycle = self.sized(cycle, beside)
        terms = replace(terms, cycles=(*terms.cycles, cycle))
        return replace(terms, cycles=(*terms.cycles[:-1], self.grown(cycle, terms)))

    def with_spectral_cycles(self, terms: TimeTerms, known: Sequence[Cycle] = ()) -> TimeTerms:
        """Add the known cycles that are still seen, then those that stand out of the spectrum."""
        for cycle in known:
            orders = [k / cycle.period for k in range(1, cycle.harmonics + 1)]
            beside = np.column_stack([terms.matrix(), self._slow()])
            if self.wave_p_value(orders, beside) < STAMP_LEVEL:
                terms = replace(terms, cycles=(*terms.cycles, cycle))
        while len(terms.cycles) < MOST_CYCLES:
            beside = np.column_stack([terms.matrix(), self._slow()])
            frequency = self._strongest_wave(beside)
            if frequency is None or not self._keeps_time(frequency, beside):
                return terms
            terms = self.with_cycle(terms, Cycle(self._period(frequency, beside), 1))
        return terms

    def with_level_changes(self, terms: TimeTerms, shifts: bool = True) -> TimeTerms:
        """Add level shifts, a slow trend, or both: the set with the best criterion."""
        options = [terms, *self._with_trends(terms)]
        if shifts:
            options = [o for trend in options for o in (trend, self._with_shifts(trend))]
        options = list(dict.fromkeys(options))
        return options[0] if len(options) == 1 else min(options, key=self._criterion)

    def with_shared_changes(self, terms: TimeTerms, shifts: bool) -> TimeTerms:
        """Add a slow wave or level shifts that all variables together show, as fits better."""
        options = [self.with_shared_wave(terms)]
        if shifts and self.variables > 1:
            options.append(self._with_shifts(terms, shared=True))
        found = [option for option in options if option != terms]
        return min(found, key=self._criterion) if found else terms

    def with_shared_wave(self, terms: TimeTerms) -> TimeTerms:
        """A trend that bends more often, where all variables together show that it does.

        One of them alone could as well be a random walk: a week in ten days of rows, say.
        """
        for count in WAVE_KNOTS:
            if self.variables < 2 or self.rows < count * ROWS_PER_KNOT:
                break
            bends = even_knots(self.rows, count)
            pieces = spline_terms(np.arange(self.rows, dtype=np.float64), bends)
            if self.gain(pieces, self._matrix(terms)).mean() > SHARED_F:
                terms = replace(terms, knots=bends)
        return terms

    def grown(self, cycle: Cycle, terms: TimeTerms) -> Cycle:
        """The cycle, marked as growing or shrinking where there is evidence."""
        waves = replace(terms, cycles=(cycle,), knots=(), shifts=()).matrix()
        pieces = waves[:, : 2 * LEAST_HARMONICS] * np.linspace(-1, 1, self.rows)[:, None]
        best = self.gain(pieces, terms.matrix()).max()
        p_value = fdtrc(pieces.shape[1], self.rows - 4 * self.held_lags, best) * self.variables
        return replace(cycle, growing=bool(p_value < LEVEL))

    def _held(self, column: int, beside: Array) -> tuple[Array, Array]:
        """An orthonormal basis of what stands beside a piece, and what it leaves of a variable."""
        if self._beside is not beside:
            self._beside, self._bases = beside, {}
        if column not in self._bases:
            own = self.values[:, column]
            past = [own[self.held_lags - k : len(own) - k] for k in range(1, self.held_lags + 1)]
            design = np.column_stack([np.ones(len(past[0])), *past, beside[self.held_lags :]])
            basis = np.linalg.qr(design)[0]
            following = own[self.held_lags :]
            self._bases[column] = basis, following - basis @ (basis.T @ following)
        return self._bases[column]

    def _matrix(self, terms: TimeTerms) -> Array:
        """The terms' columns, the same array for the same terms as last time."""
        if self._terms != terms:
            self._terms, self._columns = terms, terms.matrix()
        return self._columns

    def _slow(self) -> Array:
        return spline_terms(np.arange(self.rows, dtype=np.float64), even_knots(self.rows))

    def _strongest_wave(self, beside: Array) -> float | None:
        """The frequency that stands out most from any variable's spectrum, if one does."""
        found = [wave_f_values(*self._held(c, beside)) for c in range(self.variables)]
        frequencies = found[0][0]
        f_values = np.stack([f for _, f in found])  # (variable, frequency)
        f_values[:, frequencies < LEAST_CYCLES_OF_SPECTRUM / self.rows] = 0.0
        tests = self.variables * self.rows  # the grid is dense: about two looks at each
        if tests * fdtrc(2, self.rows - 3 * self.held_lags, f_values.max()) >= LEVEL:
            return None
        return float(frequencies[f_values.max(0).argmax()])

    def _keeps_time(self, frequency: float, beside: Array) -> bool:
        """Whether a wave has the same phase in many parts of the record.

        A system that swings by itself has a peak in its spectrum, too, but loses count. The mean
        over parts of the complex amplitude is compared with its spread, an F value of 2 and
        2 (parts - 1) degrees of freedom.
        """
        cycles = frequency * self.rows
        parts = int(np.clip(cycles, LEAST_CYCLES_OF_SPECTRUM, MOST_PARTS))
        turning = np.exp(-2j * np.pi * frequency * np.arange(self.rows - self.held_lags))
        best = 0.0
        for column in range(self.variables):
            turned = np.array_split(self._held(column, beside)[1] * turning, parts)
            amplitudes = np.array([part.mean() for part in turned])
            spread = amplitudes.var() * parts / (parts - 1)  # of complex numbers
            best = max(best, parts * abs(amplitudes.mean()) ** 2 / max(float(spread), 1e-300))
        looks = 2 * cycles * self.variables  # at frequencies up to this one
        return bool(looks * (1 + best / (parts - 1)) ** (1 - parts) < LEVEL)

    def _period(self, frequency: float, beside: Array) -> float:
        """The period at a peak: one of the calendar or a whole number where it fits as well."""
        time = np.arange(self.rows, dtype=np.float64)

        def gain(f: float) -> float:
            return float(self.gain(np.stack(waves(f, time), 1), beside).max())

        best = frequency
        for width in (0.5 / self.rows, 0.05 / self.rows):
            best = float(max(best + width * np.linspace(-1, 1, 11), key=gain))
        least = gain(best) - SAME_F
        near = sorted(COMMON_PERIODS, key=lambda period: abs(1 / period - best))
        for period in (near[0], float(round(1 / best))):
            if abs(1 / period - best) < 0.5 / self.rows and gain(1 / period) > least:
                return period
        return 1 / best

    def _with_trends(self, terms: TimeTerms) -> list[TimeTerms]:
        """The terms with a straight and with a curved trend, as far as there is evidence."""
        found, beside = [], self._matrix(terms)
        for knots, least in ((2, STRAIGHT_F), (TREND_KNOTS, TREND_F)):
            bends = even_knots(self.rows, knots)
            pieces = spline_terms(np.arange(self.rows, dtype=np.float64), bends)
            if self.gain(pieces, beside).max() > least:
                found.append(replace(terms, knots=bends))
        return found

    def _with_shifts(self, terms: TimeTerms, shared: bool = False) -> TimeTerms:
        """Add the steps that one variable shows clearly, or that all show on average."""
        least = SHARED_SHIFT_F + SHARED_SHIFT_SPREAD / self.variables**0.5 if shared else SHIFT_F
        while len(terms.shifts) < MOST_SHIFTS:
            beside = self._matrix(terms)
            f_values = np.stack(
                [step_f_values(*self._held(c, beside)) for c in range(self.variables)]
            )
            for place in (row - self.held_lags for row in terms.shifts):
                f_values[:, max(0, place - ROWS_BESIDE_SHIFT) : place + ROWS_BESIDE_SHIFT] = 0
            height = f_values.mean(0) if shared else f_values.max(0)
            if height.max() < least:
                break
            row = int(height.argmax()) + self.held_lags
            terms = replace(terms, shifts=tuple(sorted((*terms.shifts, row))))
        return terms

    def _criterion(self, terms: TimeTerms) -> float:
        """Schwarz's criterion of an autoregression of every variable beside the terms."""
        matrix = self._matrix(terms)
        parameters = matrix.shape[1] + len(terms.shifts)  # the row of a shift is chosen too
        left = [self._held(c, matrix)[1] for c in range(self.variables)]
        fit = sum(len(e) * np.log(max(float(e @ e), 1e-12) / len(e)) for e in left)
        return float(fit + np.log(self.rows) * parameters * self.variables)


def wave_f_values(basis: Array, left: Array) -> tuple[Array, Array]:
    """F values of a sine and cosine of every frequency beside a basis, by fast transforms.

    basis (row, column) is orthonormal, left (row,) what it leaves of a variable. Returns the
    frequencies, in cycles per row, twice as dense as Fourier's, and their F values.
    """
    rows = len(left)
    size = 2 * fft.next_fast_len(rows)
    waves = fft.rfft(left, size)  # sum of left (cos - i sin)
    held = fft.rfft(np.ascontiguousarray(basis.T), size).T
    frequencies = np.arange(len(waves)) / size
    double = fft.fft(np.ones(rows), size)[(2 * np.arange(len(waves))) % size]
    cos_cos = (rows + double.real) / 2 - (held.real**2).sum(1)
    sin_sin = (rows - double.real) / 2 - (held.imag**2).sum(1)
    cos_sin = -double.imag / 2 + (held.real * held.imag).sum(1)
    determinant = cos_cos * sin_sin - cos_sin**2
    a, b = waves.real, -waves.imag
    explained = sin_sin * a**2 - 2 * cos_sin * a * b + cos_cos * b**2
    valid = determinant > 1e-6 * rows**2
    explained = np.where(valid, explained / np.where(valid, determinant, 1.0), 0.0)
    explained = np.clip(explained, 0, (1 - 1e-9) * (left @ left))
    free = rows - basis.shape[1] - 2
    return frequencies, explained / 2 / ((left @ left - explained) / free)


def step_f_values(basis: Array, left: Array) -> Array:
    """F values of a step at every row beside an orthonormal basis (row, column), (row,)."""
    rows = len(left)
    after = np.cumsum(left[::-1])[::-1]
    held = np.cumsum(basis[::-1], axis=0)[::-1]
    room = np.arange(rows, 0, -1) - (held**2).sum(1)
    valid = room > 1e-6 * rows
    explained = np.where(valid, after**2 / np.where(valid, room, 1.0), 0.0)
    explained = np.clip(explained, 0, (1 - 1e-9) * (left @ left))
    f_values = explained / ((left @ left - explained) / (rows - basis.shape[1] - 1))
    f_values[:ROWS_BESIDE_SHIFT] = f_values[-ROWS_BESIDE_SHIFT:] = 0.0
    return np.asarray(f_values)


def even_knots(rows: int, count: int = TREND_KNOTS) -> tuple[float, ...]:
    return tuple(np.linspace(0, rows - 1, count).tolist())


def _merged(cycles: tuple[Cycle, ...]) -> tuple[Cycle, ...]:
    """Cycles without those that are half or a third of another one, whose harmonics they are."""
    kept = list(cycles)
    for part in cycles:
        for whole in kept:
            ratio = round(whole.period / part.period)
            if ratio in (2, 3) and abs(whole.period / part.period - ratio) < 0.01:
                kept.remove(part)
                harmonics = max(whole.harmonics, min(ratio * part.harmonics, MOST_HARMONICS))
                growing = whole.growing or part.growing
                wider = replace(whole, harmonics=harmonics, growing=growing)
                kept[kept.index(whole)] = wider
                break
    return tuple(kept)


def _without_gaps(values: Array) -> Array:
    """Missing cells filled by straight lines, for the search only."""
    filled = values.astype(np.float64).copy()
    time = np.arange(len(values))
    for column in filled.T:
        known = np.isfinite(column)
        if known.any() and not known.all():
            column[~known] = np.interp(time[~known], time[known], column[known])
    return np.nan_to_num(filled)

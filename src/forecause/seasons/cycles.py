"""The search for cycles: those that the time stamps suggest, and those that the spectrum shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc

from forecause.config.thresholds import thresholds
from forecause.seasons.piece_tests import PieceTests, wave_f_values
from forecause.seasons.terms import Array, Cycle, TimeTerms, even_knots, slow_terms, waves

Stamps = npt.NDArray[np.datetime64]
Orders = npt.NDArray[np.int64]

# Shape of the model:
LEAST_PERIOD = 2.0  # rows
MOST_PARTS = 16  # of the record in which a wave's phase is compared
MOST_CYCLES = 4
LEAST_HARMONICS, MOST_HARMONICS = 2, 6
SHARPEST = 40  # harmonics of a cycle with steps, such as weekdays

# Formats:
DAY_PERIODS = (24.0, 48.0, 96.0, 144.0, 288.0)  # rows that are surely a day
COMMON_PERIODS = (7.0, 12.0, 24.0, 30.4375, 48.0, 52.0, 60.0, 96.0, 144.0, 168.0, 288.0, 365.25)

DAYS, MONDAY = 7, np.datetime64("1970-01-05T00:00:00")  # the first Monday of the calendar used
SECONDS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
SECONDS |= {"month": 2629746.0, "year": 31556952.0}


def calendar_periods(
    stamps: Stamps | None, rows: int, least_cycles: float | None = None
) -> dict[str, float]:
    """Periods in rows that the calendar suggests for this sampling step, by name."""
    least = thresholds().seasons.least_cycles if least_cycles is None else least_cycles
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
        if period >= LEAST_PERIOD and period * least <= rows
    }


def rows_since_monday(stamp: np.datetime64, week: float) -> float:
    """How many of a week's rows have passed since midnight of the Monday before."""
    seconds = float((stamp.astype("datetime64[s]") - MONDAY) / np.timedelta64(1, "s"))
    return seconds % SECONDS["week"] / SECONDS["week"] * week


def week_of(cycles: Sequence[Cycle]) -> dict[str, float]:
    """The week of rows whose days were seen without time stamps: 168 rows for a day of 24."""
    days = [cycle.period for cycle in cycles if cycle.period in DAY_PERIODS]
    return {"week": DAYS * days[0]} if days else {}


def with_week_of_days(tests: PieceTests, terms: TimeTerms) -> TimeTerms:
    """Replace cycles that are fractions of a week by one weekly cycle, where a day was seen."""
    week = week_of(terms.cycles)
    if not week or week["week"] * thresholds().seasons.least_cycles > tests.rows:
        return terms
    same = thresholds().seasons.same_rounds
    rounds = [(cycle, week["week"] / cycle.period) for cycle in terms.cycles]
    others = [c for c, n in rounds if n > DAYS - 1 or abs(n - round(n)) > same * round(n)]
    without_parts = replace(terms, cycles=tuple(others))
    return max(
        (terms, with_suggested_cycles(tests, without_parts, week, None)),
        key=lambda option: any(cycle.name == "week" for cycle in option.cycles),
    )


def with_suggested_cycles(
    tests: PieceTests, terms: TimeTerms, periods: Mapping[str, float], stamps: Stamps | None
) -> TimeTerms:
    """Add those of some named periods that the data follow, the shortest first."""
    for name, period in sorted(periods.items(), key=lambda item: item[1]):
        orders = [k / period for k in (1, 2, 3) if k / period <= 0.5]
        level = thresholds().seasons.stamp_level / len(periods)
        if tests.wave_p_value(orders, _beside(tests, terms)) < level:
            terms = with_named_cycle(tests, terms, Cycle(period, 1, name=name), stamps)
    return terms


def with_asked_cycle(
    tests: PieceTests, terms: TimeTerms, period: float, stamps: Stamps | None
) -> TimeTerms:
    """Add a period that was asked for, under its name if the time stamps know it."""
    names = calendar_periods(stamps, tests.rows, least_cycles=0.0)
    most = thresholds().seasons.same_period * period
    same = [name for name, length in names.items() if abs(length - period) < most]
    return with_named_cycle(tests, terms, Cycle(period, 1, name=(same or [""])[0]), stamps)


def with_named_cycle(
    tests: PieceTests, terms: TimeTerms, cycle: Cycle, stamps: Stamps | None
) -> TimeTerms:
    """Add a cycle; a level for each day in place of most waves if it is a week that jumps at
    midnight."""
    with_waves, weekdays = with_cycle(tests, terms, cycle), _weekdays(cycle, stamps)
    if not weekdays:
        return with_waves
    beside = _beside(tests, with_waves)
    p_values = [tests.p_value(_levels(tests, days), beside) for days in weekdays]
    best = int(np.argmin(p_values))
    if p_values[best] * len(weekdays) >= thresholds().seasons.level:
        return with_waves
    return with_cycle(tests, terms, weekdays[best])


def with_short_cycle(
    tests: PieceTests, terms: TimeTerms, periods: Mapping[str, float], stamps: Stamps | None
) -> TimeTerms:
    """A named period of which there are few rounds, where all variables together show it.

    It is compared with the trend that was found, which may have been a part of it.
    """
    options, trends = [terms], ((), even_knots(tests.rows, 2), even_knots(tests.rows))
    straight = replace(terms, knots=trends[1]).matrix()

    def evidence(cycle: Cycle) -> float:
        pieces = TimeTerms(tests.rows, (cycle,)).matrix()
        return float(tests.f_values(pieces, straight).mean())

    for name, period in periods.items():
        wave = Cycle(period, LEAST_HARMONICS, name=name)
        shapes = [wave, replace(wave, harmonics=2 * LEAST_HARMONICS)]
        shapes += sorted(_weekdays(wave, stamps), key=evidence)[-1:]
        least = thresholds().seasons.short_f
        clear = [shape for shape in shapes if tests.variables > 1 and evidence(shape) > least]
        for cycles in ((*terms.cycles, shape) for shape in clear):
            options += [replace(terms, cycles=cycles, knots=knots) for knots in trends]
    return options[0] if len(options) == 1 else min(options, key=tests.criterion)


def with_cycle(tests: PieceTests, terms: TimeTerms, cycle: Cycle) -> TimeTerms:
    """Add a cycle, with as many harmonics as there is evidence for, growing if it grows."""
    given = np.column_stack([_beside(tests, terms), _levels(tests, cycle)])
    cycle = _sized(tests, cycle, given)
    terms = replace(terms, cycles=(*terms.cycles, cycle))
    return replace(terms, cycles=(*terms.cycles[:-1], _grown(tests, cycle, terms)))


def with_spectral_cycles(
    tests: PieceTests, terms: TimeTerms, known: Sequence[Cycle] = ()
) -> TimeTerms:
    """Add the known cycles that are still seen, then those that stand out of the spectrum."""
    for cycle in known:
        if _still_seen(tests, terms, cycle):
            terms = replace(terms, cycles=(*terms.cycles, cycle))
    while len(terms.cycles) < MOST_CYCLES:
        beside = _beside(tests, terms)
        frequency = _strongest_wave(tests, beside)
        if frequency is None or not _keeps_time(tests, frequency, beside):
            return terms
        period = _whole(tests, _period(tests, frequency, beside), beside)
        terms = with_cycle(tests, terms, Cycle(period, 1))
    return terms


def merged(cycles: tuple[Cycle, ...]) -> tuple[Cycle, ...]:
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


def _beside(tests: PieceTests, terms: TimeTerms) -> Array:
    """What stands beside a cycle while it is tested: other terms and a slow trend."""
    return np.column_stack([terms.matrix(), slow_terms(tests.rows)])


def _weekdays(week: Cycle, stamps: Stamps | None) -> list[Cycle]:
    """A week as one wave and a level for each of its days; none if it is no week of short rows.

    Without time stamps there is one for every place that midnight may have.
    """
    if week.name != "week" or week.period < 2 * DAYS:
        return []
    hours = range(round(week.period / DAYS))
    shifts = hours if stamps is None else [rows_since_monday(stamps[0], week.period)]
    return [replace(week, parts=DAYS, shift=float(shift), harmonics=1) for shift in shifts]


def _levels(tests: PieceTests, cycle: Cycle) -> Array:
    """The levels of a cycle's parts, without its waves, (row, part - 1)."""
    return TimeTerms(tests.rows, (replace(cycle, harmonics=0),)).matrix()


def _still_seen(tests: PieceTests, terms: TimeTerms, cycle: Cycle) -> bool:
    """Whether a cycle is seen beside other terms; few rounds of one were compared with trends."""
    if cycle.period * thresholds().seasons.least_cycles > tests.rows:
        return True
    beside, level = _beside(tests, terms), thresholds().seasons.stamp_level
    if cycle.parts and tests.p_value(_levels(tests, cycle), beside) < level:
        return True
    orders = [k / cycle.period for k in range(1, cycle.harmonics + 1)]
    return tests.wave_p_value(orders, beside) < level


def _sized(tests: PieceTests, cycle: Cycle, given: Array) -> Cycle:
    """The cycle with as many harmonics as there is evidence for beside other terms."""
    most = int(min(MOST_HARMONICS, cycle.period // 2))
    highest = min(LEAST_HARMONICS, most)
    time = np.arange(tests.rows, dtype=np.float64)
    level = thresholds().seasons.level / MOST_HARMONICS
    for order in range(1, most + 1):
        if tests.wave_p_value([order / cycle.period], given) < level:
            highest = max(highest, order)
        given = np.column_stack([given, *waves(order / cycle.period, time)])
    return replace(cycle, harmonics=max(highest, _sharpest(tests, cycle, given)))


def _sharpest(tests: PieceTests, cycle: Cycle, given: Array) -> int:
    """The highest harmonic beyond the usual ones that any variable shows, 0 without one."""
    shown = tests.rows // thresholds().seasons.rows_per_harmonic
    most = int(min(SHARPEST, (cycle.period - 1) // 2, shown))
    clear = _clear_orders(tests, cycle.period, np.arange(MOST_HARMONICS + 1, most + 1), given)
    return int(clear.max(initial=0))


def _clear_orders(tests: PieceTests, period: float, orders: Orders, given: Array) -> Orders:
    """Those harmonics that any variable shows; they hardly overlap, so each is tested alone."""
    if not len(orders):
        return orders
    angles = 2 * np.pi * np.arange(tests.rows)[:, None] * orders / period
    both = tests.each_t_value(np.hstack([np.cos(angles), np.sin(angles)]), given) ** 2
    f_values = both.reshape(tests.variables, 2, -1).mean(1)
    p_values = fdtrc(2, tests.rows - 3 * tests.own_lags, f_values.max(0))
    return np.asarray(orders[p_values * f_values.size < thresholds().seasons.level])


def _whole(tests: PieceTests, period: float, beside: Array) -> float:
    """The period, or a multiple of it of whole rows, most of whose waves are seen.

    Twelve months that all differ have waves of 12, 6, 4, 3 and 2.4 rows, of which any may be the
    strongest.
    """
    bounds, best, most = thresholds().seasons, period, 1
    for times in range(2, MOST_HARMONICS + 1):
        whole = float(round(times * period))
        if abs(times / whole - 1 / period) > 0.5 / tests.rows:
            continue
        if whole * bounds.least_cycles_of_spectrum > tests.rows:
            break
        orders = np.arange(1, int(min(SHARPEST, (whole - 1) // 2)) + 1)
        clear = len(_clear_orders(tests, whole, orders, beside))
        if clear >= max(most + bounds.more_waves, len(orders) / 2):
            best, most = whole, clear
    return best


def _grown(tests: PieceTests, cycle: Cycle, terms: TimeTerms) -> Cycle:
    """The cycle, marked as growing or shrinking where there is evidence."""
    own = replace(terms, cycles=(cycle,), knots=(), shifts=()).matrix()
    pieces = own[:, : 2 * LEAST_HARMONICS] * np.linspace(-1, 1, tests.rows)[:, None]
    return replace(
        cycle, growing=bool(tests.p_value(pieces, terms.matrix()) < thresholds().seasons.level)
    )


def _strongest_wave(tests: PieceTests, beside: Array) -> float | None:
    """The frequency that stands out most from any variable's spectrum, if one does."""
    spectra = [
        wave_f_values(*tests.residualise_on_own_lags(c, beside)) for c in range(tests.variables)
    ]
    frequencies = spectra[0][0]
    f_values = np.stack([f for _, f in spectra])  # (variable, frequency)
    bounds = thresholds().seasons
    f_values[:, frequencies < bounds.least_cycles_of_spectrum / tests.rows] = 0.0
    looks = tests.variables * tests.rows  # the grid is dense: about two looks at each
    if looks * fdtrc(2, tests.rows - 3 * tests.own_lags, f_values.max()) >= bounds.level:
        return None
    return float(frequencies[f_values.max(0).argmax()])


def _keeps_time(tests: PieceTests, frequency: float, beside: Array) -> bool:
    """Whether a wave has the same phase in many parts of the record.

    A stochastic oscillation has a peak in its spectrum, too, but drifts in phase; a calendar
    cycle does not. The mean over parts of the complex amplitude is compared with its spread, an F
    value of 2 and 2 (parts - 1) degrees of freedom.
    """
    cycles = frequency * tests.rows
    parts = int(np.clip(cycles, thresholds().seasons.least_cycles_of_spectrum, MOST_PARTS))
    turning = np.exp(-2j * np.pi * frequency * np.arange(tests.rows - tests.own_lags))
    best = 0.0
    for column in range(tests.variables):
        turned = np.array_split(tests.residualise_on_own_lags(column, beside)[1] * turning, parts)
        amplitudes = np.array([part.mean() for part in turned])
        spread = amplitudes.var() * parts / (parts - 1)  # of complex numbers
        best = max(best, parts * abs(amplitudes.mean()) ** 2 / max(float(spread), 1e-300))
    looks = 2 * cycles * tests.variables  # at frequencies up to this one
    return bool(looks * (1 + best / (parts - 1)) ** (1 - parts) < thresholds().seasons.level)


def _period(tests: PieceTests, frequency: float, beside: Array) -> float:
    """The period at a peak: one of the calendar or a whole number where it fits as well."""
    time = np.arange(tests.rows, dtype=np.float64)

    def gain(f: float) -> float:
        return float(tests.f_values(np.stack(waves(f, time), 1), beside).max())

    best = frequency
    for width in (0.5 / tests.rows, 0.05 / tests.rows):
        best = float(max(best + width * np.linspace(-1, 1, 11), key=gain))
    least = gain(best) - thresholds().seasons.same_f
    near = sorted(COMMON_PERIODS, key=lambda period: abs(1 / period - best))
    for period in (near[0], float(round(1 / best))):
        if abs(1 / period - best) < 0.5 / tests.rows and gain(1 / period) > least:
            return period
    return 1 / best

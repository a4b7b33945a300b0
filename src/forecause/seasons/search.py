"""The search for what time alone explains: cycles, a slow trend, level shifts and odd days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.special import chdtrc, fdtrc

from forecause.config.thresholds import thresholds
from forecause.seasons.cycles import (
    Stamps,
    calendar_periods,
    merged,
    week_of,
    with_asked_cycle,
    with_short_cycle,
    with_spectral_cycles,
    with_suggested_cycles,
    with_week_of_days,
)
from forecause.seasons.piece_tests import PieceTests, step_f_values
from forecause.seasons.terms import TREND_KNOTS, Array, TimeTerms, even_knots, slow_terms

Season = Literal["auto", "none"] | Sequence[float]
TrendName = Literal["auto", "none"]

# Shape of the model:
WAVE_KNOTS = (9, 17)  # of a slow wave that all variables share
MOST_SHIFTS = 8

# Time and memory:
MOST_ODD_ROUNDS = 6  # of looking for odd days; each finds the days of about one size


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
    bounds = thresholds().seasons
    if len(values) < bounds.least_rows:
        return terms
    tests = PieceTests(_without_gaps(values), bounds.own_lags)
    if not isinstance(season, str):
        for period in season:
            terms = with_asked_cycle(tests, terms, float(period), stamps)
    elif season == "auto":
        terms = _with_cycles(tests, terms, stamps)
    if trend == "auto":
        terms = with_level_changes(tests, terms, shifts)
        shared = PieceTests(tests.values, bounds.shared_own_lags)
        if season == "auto":
            terms = with_short_cycle(shared, terms, _few_rounds(terms, stamps), stamps)
        terms = with_shared_changes(shared, terms, shifts)
        if season == "auto" and (terms.knots or terms.shifts):
            # a shift or trend may have hidden a cycle, or posed as one
            terms = with_spectral_cycles(tests, replace(terms, cycles=()), terms.cycles)
    terms = replace(terms, cycles=merged(terms.cycles))
    return with_odd_days(tests, terms) if season != "none" else terms


def _with_cycles(tests: PieceTests, terms: TimeTerms, stamps: Stamps | None) -> TimeTerms:
    """Cycles of the time stamps, of the spectrum, and of the week where the spectrum has a day."""
    periods = calendar_periods(stamps, tests.rows)
    terms = with_suggested_cycles(tests, terms, periods, stamps)
    terms = with_spectral_cycles(tests, terms)
    return terms if periods else with_week_of_days(tests, terms)


def _few_rounds(terms: TimeTerms, stamps: Stamps | None) -> dict[str, float]:
    """Named periods that the table has a few rounds of, too few for a test of one variable."""
    least, most = thresholds().seasons.short_cycles, thresholds().seasons.least_cycles
    named = calendar_periods(stamps, terms.rows, least) or week_of(terms.cycles)
    return {name: period for name, period in named.items() if least <= terms.rows / period < most}


def _without_gaps(values: Array) -> Array:
    """Missing cells filled by straight lines, for the search only."""
    filled = values.astype(np.float64).copy()
    time = np.arange(len(values))
    for column in filled.T:
        known = np.isfinite(column)
        if known.any() and not known.all():
            column[~known] = np.interp(time[~known], time[known], column[known])
    return np.nan_to_num(filled)


def with_level_changes(tests: PieceTests, terms: TimeTerms, shifts: bool = True) -> TimeTerms:
    """Add level shifts, a slow trend, or both: the set with the best criterion."""
    options = [terms, *_with_trends(tests, terms)]
    if shifts:
        options = [o for trend in options for o in (trend, _with_shifts(tests, trend))]
    options = list(dict.fromkeys(options))
    return options[0] if len(options) == 1 else min(options, key=tests.criterion)


def with_shared_changes(tests: PieceTests, terms: TimeTerms, shifts: bool) -> TimeTerms:
    """Add a slow wave or level shifts that all variables together show, as fits better."""
    options = [_with_shared_wave(tests, terms)]
    if shifts and tests.variables > 1:
        options.append(_with_shifts(tests, terms, shared=True))
    changed = [option for option in options if option != terms]
    return min(changed, key=tests.criterion) if changed else terms


def _with_trends(tests: PieceTests, terms: TimeTerms) -> list[TimeTerms]:
    """The terms with a straight and with a curved trend, as far as there is evidence."""
    options, beside, bounds = [], tests.columns(terms), thresholds().seasons
    for knots, least in ((2, bounds.straight_f), (TREND_KNOTS, bounds.trend_f)):
        if tests.f_values(slow_terms(tests.rows, knots), beside).max() > least:
            options.append(replace(terms, knots=even_knots(tests.rows, knots)))
    return options


def _with_shared_wave(tests: PieceTests, terms: TimeTerms) -> TimeTerms:
    """A trend that bends more often, where all variables together show that it does.

    One of them alone could as well be a random walk: a week in ten days of rows, say.
    """
    bounds = thresholds().seasons
    trends = [
        (2, _shared(bounds.shared_straight_f, tests)),
        (TREND_KNOTS, _shared(bounds.shared_trend_f, tests)),
    ]
    for count, least in (*trends, *((knots, bounds.wave_f) for knots in WAVE_KNOTS)):
        if tests.variables < 2 or tests.rows < count * bounds.rows_per_knot:
            break
        pieces = slow_terms(tests.rows, count)
        if tests.f_values(pieces, tests.columns(terms)).mean() > least:
            terms = replace(terms, knots=even_knots(tests.rows, count))
    return terms


def _shared(bound: tuple[float, float], tests: PieceTests) -> float:
    """The least mean F value over all variables: a + b / sqrt(variables)."""
    least, spread = bound
    return least + spread / tests.variables**0.5


def _with_shifts(tests: PieceTests, terms: TimeTerms, shared: bool = False) -> TimeTerms:
    """Add the steps that one variable shows clearly, or that all show on average."""
    bounds = thresholds().seasons
    least = _shared(bounds.shared_shift_f, tests) if shared else bounds.shift_f
    apart = bounds.rows_of_level
    while len(terms.shifts) < MOST_SHIFTS:
        beside = tests.columns(terms)
        f_values = np.stack(
            [
                step_f_values(*tests.residualise_on_own_lags(c, beside))
                for c in range(tests.variables)
            ]
        )
        for place in (row - tests.own_lags for row in terms.shifts):
            f_values[:, max(0, place - apart) : place + apart] = 0
        height = f_values.mean(0) if shared else f_values.max(0)
        if height.max() < least:
            break
        row = int(height.argmax()) + tests.own_lags
        terms = replace(terms, shifts=tuple(sorted((*terms.shifts, row))))
    return terms


def with_odd_days(tests: PieceTests, terms: TimeTerms) -> TimeTerms:
    """Add a level for each day that stands out, where every weekday has a level of its own.

    A day counts by its clearest variable, or by all together.
    """
    weeks = [cycle for cycle in terms.cycles if cycle.parts]
    bounds = thresholds().seasons
    if not weeks or weeks[0].period / weeks[0].parts < bounds.rows_of_day:
        return terms
    rows = weeks[0].period / weeks[0].parts
    edges = np.arange(-weeks[0].shift % rows - rows, tests.rows + rows, rows).round().astype(int)
    days = [(int(a), int(b)) for a, b in pairwise(edges) if b > 0 and a < tests.rows]
    time = np.arange(tests.rows)
    pieces = np.stack([(time >= a) & (time < b) for a, b in days], axis=1).astype(np.float64)
    for _ in range(MOST_ODD_ROUNDS):
        t_values = tests.each_t_value(pieces, tests.columns(terms))  # (variable, day)
        free = tests.rows - 4 * tests.own_lags
        of_one = fdtrc(1, free, (t_values**2).max(0)) * tests.variables
        of_all = _chance_of_all(t_values)
        height = (t_values**2).sum(0)
        clear = 2 * len(days) * np.minimum(of_one, of_all) < bounds.odd_day_level
        clear &= height > height.max() / 2  # the clearest first: they move their weekday's level
        odd_days = [day for day, odd in zip(days, clear, strict=True) if odd]
        most = bounds.most_odd_days * len(days)
        if not odd_days or len(terms.odd_days) + len(odd_days) > most:
            break
        terms = replace(terms, odd_days=tuple(sorted((*terms.odd_days, *odd_days))))
    return terms


def _chance_of_all(t_values: Array) -> Array:
    """The chance (day,) of squares of t values (variable, day) that add up to as much as a day's.

    Variables that drive each other rise and fall on the same days, so the sum is one of fewer
    squares than there are variables (Satterthwaite's approximation, by the correlation of days).
    """
    most = thresholds().seasons.usual_day
    usual = np.clip(t_values, -most, most)
    together = np.nan_to_num(np.atleast_2d(np.corrcoef(usual)), nan=0.0)
    np.fill_diagonal(together, 1.0)
    stretch = float((together**2).sum()) / len(t_values)
    return np.asarray(chdtrc(len(t_values) / stretch, (t_values**2).sum(0) / stretch))

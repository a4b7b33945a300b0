"""The search for what time alone explains: cycles, a slow trend, level shifts and odd days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

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
from forecause.seasons.levels import (
    with_level_changes,
    with_odd_days,
    with_shared_changes,
)
from forecause.seasons.piece_tests import PieceTests
from forecause.seasons.terms import Array, TimeTerms

Season = Literal["auto", "none"] | Sequence[float]
TrendName = Literal["auto", "none"]


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

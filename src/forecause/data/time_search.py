"""The search for what time alone explains: cycles, a slow trend and level shifts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from forecause.data.time_cycles import (
    Stamps,
    merged,
    with_calendar_cycles,
    with_cycle,
    with_spectral_cycles,
)
from forecause.data.time_levels import WAVE_LAGS, with_level_changes, with_shared_changes
from forecause.data.time_terms import Array, Cycle, TimeTerms
from forecause.data.time_tests import PieceTests

Season = Literal["auto", "none"] | Sequence[float]
TrendName = Literal["auto", "none"]

LEAST_ROWS = 60  # with fewer nothing is looked for


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
    tests = PieceTests(_without_gaps(values))
    if not isinstance(season, str):
        for period in season:
            terms = with_cycle(tests, terms, Cycle(float(period), 1))
    elif season == "auto":
        terms = with_calendar_cycles(tests, terms, stamps)
        terms = with_spectral_cycles(tests, terms)
    if trend == "auto":
        terms = with_level_changes(tests, terms, shifts)
        terms = with_shared_changes(PieceTests(tests.values, WAVE_LAGS), terms, shifts)
        if season == "auto" and (terms.knots or terms.shifts):
            # a shift or trend may have hidden a cycle, or posed as one
            terms = with_spectral_cycles(tests, replace(terms, cycles=()), terms.cycles)
    return replace(terms, cycles=merged(terms.cycles))


def _without_gaps(values: Array) -> Array:
    """Missing cells filled by straight lines, for the search only."""
    filled = values.astype(np.float64).copy()
    time = np.arange(len(values))
    for column in filled.T:
        known = np.isfinite(column)
        if known.any() and not known.all():
            column[~known] = np.interp(time[~known], time[known], column[known])
    return np.nan_to_num(filled)

"""The search for what changes slowly or at once: trends, shared slow waves, level shifts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forecause.seasons.piece_tests import ROWS_BESIDE_SHIFT, PieceTests, step_f_values
from forecause.seasons.terms import Array, TimeTerms, trend_terms

TREND_KNOTS = 5
# Knots of a slow wave that all variables share, its least F value on average over them, and own
# past values beside it. Random walks of 2 to 8 variables reach 5.3 once in a hundred tables.
WAVE_KNOTS, SHARED_F, WAVE_LAGS = (9, 17), 5.5, 2
# The same of a straight and of a bent trend: this much, and this over the root of the variables'
# number. Of 900 tables of 2, 5 and 8 random walks, 200 to 1,000 rows long, five exceeded either.
SHARED_TRENDS = ((2, 5.0, 8.0), (TREND_KNOTS, 3.6, 5.4))
ROWS_PER_KNOT = 30  # of such a wave, at least
MOST_SHIFTS = 8
# F values that pure random walks exceed once in a thousand, which no stationary series reaches
# by chance either; of 1,000 to 2,000 walks of 300 to 2,000 rows.
STRAIGHT_F = 19.0
TREND_F = 9.0
SHIFT_F = 28.0
# Of a shift that all variables share, on average over them: this much, and this over the root of
# their number. Of 360 tables of 2, 5 and 8 random walks none reached it.
SHARED_SHIFT_F, SHARED_SHIFT_SPREAD = 4.0, 18.0


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
    found = [option for option in options if option != terms]
    return min(found, key=tests.criterion) if found else terms


def slow_terms(rows: int, knots: int = TREND_KNOTS) -> Array:
    """A trend that bends a few times, (row, term)."""
    return trend_terms(np.arange(rows, dtype=np.float64), even_knots(rows, knots))


def even_knots(rows: int, count: int = TREND_KNOTS) -> tuple[float, ...]:
    """Evenly spread over the rows, the first and the last included."""
    return tuple(np.linspace(0, rows - 1, count).tolist())


def _with_trends(tests: PieceTests, terms: TimeTerms) -> list[TimeTerms]:
    """The terms with a straight and with a curved trend, as far as there is evidence."""
    found, beside = [], tests.columns(terms)
    for knots, least in ((2, STRAIGHT_F), (TREND_KNOTS, TREND_F)):
        if tests.f_values(slow_terms(tests.rows, knots), beside).max() > least:
            found.append(replace(terms, knots=even_knots(tests.rows, knots)))
    return found


def _with_shared_wave(tests: PieceTests, terms: TimeTerms) -> TimeTerms:
    """A trend that bends more often, where all variables together show that it does.

    One of them alone could as well be a random walk: a week in ten days of rows, say.
    """
    trends = [(knots, f + spread / tests.variables**0.5) for knots, f, spread in SHARED_TRENDS]
    for count, least in (*trends, *((knots, SHARED_F) for knots in WAVE_KNOTS)):
        if tests.variables < 2 or tests.rows < count * ROWS_PER_KNOT:
            break
        pieces = slow_terms(tests.rows, count)
        if tests.f_values(pieces, tests.columns(terms)).mean() > least:
            terms = replace(terms, knots=even_knots(tests.rows, count))
    return terms


def _with_shifts(tests: PieceTests, terms: TimeTerms, shared: bool = False) -> TimeTerms:
    """Add the steps that one variable shows clearly, or that all show on average."""
    least = SHARED_SHIFT_F + SHARED_SHIFT_SPREAD / tests.variables**0.5 if shared else SHIFT_F
    while len(terms.shifts) < MOST_SHIFTS:
        beside = tests.columns(terms)
        f_values = np.stack(
            [
                step_f_values(*tests.residualise_on_own_lags(c, beside))
                for c in range(tests.variables)
            ]
        )
        for place in (row - tests.own_lags for row in terms.shifts):
            f_values[:, max(0, place - ROWS_BESIDE_SHIFT) : place + ROWS_BESIDE_SHIFT] = 0
        height = f_values.mean(0) if shared else f_values.max(0)
        if height.max() < least:
            break
        row = int(height.argmax()) + tests.own_lags
        terms = replace(terms, shifts=tuple(sorted((*terms.shifts, row))))
    return terms

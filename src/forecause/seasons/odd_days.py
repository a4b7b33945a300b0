"""The search for days that are unlike their weekday, such as holidays, in rows of hours."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, fdtrc

from forecause.seasons.piece_tests import PieceTests
from forecause.seasons.terms import TimeTerms

Array = npt.NDArray[np.float64]

LEVEL = 0.001  # chance that a table without such days is given one
MOST_ROUNDS = 6  # of looking; each finds the days of about one size
MOST_ODD = 0.25  # of all days
LEAST_ROWS = 4  # of a day
MOST_USUAL = 3.0  # t value of a day, beyond which it says nothing of the usual ones


def with_odd_days(tests: PieceTests, terms: TimeTerms) -> TimeTerms:
    """Add a level for each day that stands out, where every weekday has a level of its own.

    A day counts by its clearest variable, or by all together.
    """
    weeks = [cycle for cycle in terms.cycles if cycle.parts]
    if not weeks or weeks[0].period / weeks[0].parts < LEAST_ROWS:
        return terms
    rows = weeks[0].period / weeks[0].parts
    edges = np.arange(-weeks[0].shift % rows - rows, tests.rows + rows, rows).round().astype(int)
    days = [(int(a), int(b)) for a, b in pairwise(edges) if b > 0 and a < tests.rows]
    time = np.arange(tests.rows)
    pieces = np.stack([(time >= a) & (time < b) for a, b in days], axis=1).astype(np.float64)
    for _ in range(MOST_ROUNDS):
        t_values = tests.each_t_value(pieces, tests.columns(terms))  # (variable, day)
        free = tests.rows - 4 * tests.own_lags
        of_one = fdtrc(1, free, (t_values**2).max(0)) * tests.variables
        of_all = _chance_of_all(t_values)
        height = (t_values**2).sum(0)
        clear = 2 * len(days) * np.minimum(of_one, of_all) < LEVEL
        clear &= height > height.max() / 2  # the clearest first: they move their weekday's level
        found = [day for day, odd in zip(days, clear, strict=True) if odd]
        if not found or len(terms.odd_days) + len(found) > MOST_ODD * len(days):
            break
        terms = replace(terms, odd_days=tuple(sorted((*terms.odd_days, *found))))
    return terms


def _chance_of_all(t_values: Array) -> Array:
    """The chance (day,) of squares of t values (variable, day) that add up to as much as a day's.

    Variables that drive each other rise and fall on the same days, so the sum is one of fewer
    squares than there are variables (Satterthwaite's approximation, by the correlation of days).
    """
    usual = np.clip(t_values, -MOST_USUAL, MOST_USUAL)
    together = np.nan_to_num(np.atleast_2d(np.corrcoef(usual)), nan=0.0)
    np.fill_diagonal(together, 1.0)
    stretch = float((together**2).sum()) / len(t_values)
    return np.asarray(chdtrc(len(t_values) / stretch, (t_values**2).sum(0) / stretch))

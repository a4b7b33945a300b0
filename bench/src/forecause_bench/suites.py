"""All suites by name: what can be run. Each stands beside the systems it is made of.

A suite is a list of cells (the columns of a table: how to simulate), methods (its rows), sizes and
seeds.
"""

from __future__ import annotations

from forecause.errors import InputError
from forecause_bench.calibration import (
    CALIBRATION,
    CALIBRATION_SIZE,
    FEW_ROWS,
    LINEAR,
)
from forecause_bench.drivers import DRIVERS, ELSEWHERE
from forecause_bench.effects import EFFECTS
from forecause_bench.gaps import GAPS
from forecause_bench.hard_systems import HARD, OWN_TESTS, OWN_TESTS_PRETRAINED
from forecause_bench.hourly import HOURLY
from forecause_bench.nulls import ALERTS, LINKED, NULLS
from forecause_bench.paper_suites import PAPER_SUITES, QUICK
from forecause_bench.ranking import RANKING
from forecause_bench.real.suites import REAL_SUITES
from forecause_bench.scaling import SCALING, SCREENING, VERY_WIDE
from forecause_bench.speed import SPEED
from forecause_bench.suite import Suite

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        QUICK,
        LINEAR,
        CALIBRATION,
        CALIBRATION_SIZE,
        FEW_ROWS,
        *PAPER_SUITES,
        SCALING,
        VERY_WIDE,
        SCREENING,
        SPEED,
        NULLS,
        LINKED,
        ALERTS,
        DRIVERS,
        ELSEWHERE,
        EFFECTS,
        GAPS,
        HOURLY,
        HARD,
        OWN_TESTS,
        OWN_TESTS_PRETRAINED,
        RANKING,
        *REAL_SUITES,
    )
}


def find_suite(name: str) -> Suite:
    """The suite of this name."""
    if name not in SUITES:
        raise InputError(f"Unknown suite {name!r}; choose one of {', '.join(SUITES)}.")
    return SUITES[name]


def describe_suites() -> list[str]:
    """One line per suite: its name, what it is about and how large it is."""
    width = max(map(len, SUITES))
    lines = []
    for suite in SUITES.values():
        sizes = sorted({rows for cell in suite.cells for rows in suite.rows_of(cell)})
        size = (
            f"{len(suite.cells)} columns, {len(suite.methods)} methods, {suite.seeds} seeds, "
            f"rows {', '.join(f'{rows:,}' if rows else 'all' for rows in sizes)}"
        )
        lines.append(f"{suite.name:{width}}  {suite.title} ({size})")
    lines.append(f"{'forecasts':{width}}  Errors of forecasts, and their bands, beside rivals")
    return lines

"""Hourly tables with three true links, and what real ones have besides a daily cycle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.data.panel import Panel
from forecause.graph.lagged import LaggedGraph
from forecause_bench.suite import Cell, Suite

Array = npt.NDArray[np.float64]
NAMES = ("solar", "wind", "demand", "price", "flow", "heat")
LINKS = (("solar", "price", 2, -0.5), ("demand", "price", 1, 0.5), ("wind", "flow", 3, 0.4))
MEMORY = 0.5
START = "2021-03-01"
KINDS = {
    "own-phases": "a day with a harmonic, of its own phase in every variable",
    "weekdays": "a day, another level on each day of the week",
    "lost-hours": "a day; one hour in fifty is not in the table",
    "summer-time": "a day that begins an hour earlier from the middle on",
    "holidays": "a day and a week; ten whole days are like Sundays",
    "multiplied": "a day that multiplies the noise instead of being added on",
    "drifting-size": "a day whose size doubles from the first row to the last",
    "ragged": "a day, a week, lost hours, 3 % missing cells",
}


def table(rows: int, seed: int, kind: str) -> pd.DataFrame:
    """The table with its time stamps."""
    rng = np.random.default_rng([29, seed])
    hours = np.arange(rows + rows // 10)  # some are lost
    values = _linked(len(hours), rng)
    clock = hours + (hours >= rows // 2) if kind == "summer-time" else hours
    day = _wave(clock, 24, rng) + 0.5 * _wave(clock, 12, rng)
    week = np.repeat(rng.normal(size=(7, len(NAMES))), 24, axis=0)[hours % 168]
    if kind in ("weekdays", "holidays", "ragged"):
        day = day + 1.5 * week
    if kind == "holidays":
        days = len(hours) // 24
        free = np.isin(hours // 24, rng.choice(days, min(10, days // 3), replace=False))
        sunday = day[min(144, len(day) - 24) :][:24]
        day[free] = sunday[hours[free] % 24]
    if kind == "drifting-size":
        day = day * np.linspace(0.7, 1.4, len(hours))[:, None]
    values = np.exp(0.4 * day / 2) * (5 + values) if kind == "multiplied" else values + 2 * day
    made = pd.DataFrame(values, columns=list(NAMES))
    if kind == "ragged":
        made = made.mask(rng.uniform(size=made.shape) < 0.03)
    made.insert(0, "time", pd.Timestamp(START) + pd.to_timedelta(hours, unit="h"))
    if kind in ("lost-hours", "ragged"):
        made = made[rng.uniform(size=len(made)) > 0.02]
    return made.iloc[:rows]


def hourly(rows: int, seed: int, max_lag: int, kind: str) -> tuple[Panel, LaggedGraph]:
    """The table as it would be read from a file, and its graph."""
    own = [(name, name, 1, 1.0) for name in NAMES]
    return Panel.of(table(rows, seed, kind)), LaggedGraph.from_edges(
        list(NAMES), max_lag, [*own, *LINKS]
    )


def _linked(rows: int, rng: np.random.Generator) -> Array:
    """Autoregressions with three links, (row, variable)."""
    place = {name: column for column, name in enumerate(NAMES)}
    values = rng.normal(size=(rows + 100, len(NAMES)))
    for row in range(5, len(values)):
        values[row] += MEMORY * values[row - 1]
        for source, target, lag, effect in LINKS:
            values[row, place[target]] += effect * values[row - lag, place[source]]
    return values[100:]


def _wave(hours: Array | npt.NDArray[np.int64], period: float, rng: np.random.Generator) -> Array:
    """A sine of a phase and size of its own for every variable."""
    phase = rng.uniform(0, 2 * np.pi, len(NAMES))
    size = rng.uniform(0.7, 1.3, len(NAMES))
    return np.asarray(size * np.sin(2 * np.pi * hours[:, None] / period + phase))


HOURLY = Suite(
    "hourly",
    "Hourly tables with three true links: are they found, and nothing else?",
    tuple(
        Cell(kind, {"maker": f"{__name__}:hourly", "max_lag": 5, "kind": kind}) for kind in KINDS
    ),
    methods=("forecause", "var-fdr"),
    rows=(1_500,),
    seeds=10,
    first_seed=3000,
    limit=300.0,
    metrics=("lagged_no_self/shd", "lagged_no_self/recall", "false_cross"),
    axis="table",
    note="Six variables, two months of hours. "
    + " ".join(f"{kind}: {words}." for kind, words in KINDS.items())
    + " Links between variables are counted, false and missing ones together as SHD.",
)

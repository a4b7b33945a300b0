"""What a suite is: cells to simulate or read, methods to run on them, and how the table looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

BY_ROWS = "rows"  # stands for the paper's column of the same number of rows
PAPER_ROWS = {50_000: "50K", 100_000: "100K", 1_000_000: "1M"}
FEWEST = "50K"  # the paper's smallest column, shown beside systems of other numbers of rows
SIX_HOURS = 6 * 3600.0  # the paper's time limit

System = Mapping[str, Any]
"""Settings of one system besides rows and seed, always with `max_lag`.

They are those of forecause.simulation; or of the function `maker` ("module:name"), which is called
with all of them, rows and seed and gives a panel and its true graph; or name a recorded `dataset`.
"""

# The paper's graphs have 2.7 causes per variable and, to judge by its recall at k = 3, at most 3.
BASE: System = {"nodes": 10, "max_lag": 5, "in_degree": 2.7, "max_in_degree": 3}

BASELINES = (
    "pcmci",
    "pcmci-fdr",
    "pcmci+",
    "lpcmci",
    "var-lingam",
    "dynotears",
    "nts-notears",
    "tcdf",
    "granger-pairwise",
    "granger",
    "var-fdr",
    "cmlp",
    "random",
)
OURS = ("forecause", "forecause-transformer", "additive", "linear", "dot-paper")
STANDARD = (*OURS, *BASELINES, "random-oracle")


@dataclass(frozen=True)
class Cell:
    """One column: its heading, how its data is simulated, and where the paper has its figures."""

    name: str
    system: System
    paper: tuple[str, str] | None = None  # table and column; the column may be BY_ROWS
    rows: int | None = None  # its own number, not the suite's
    along: tuple[str, int] | None = None  # what it is a size of, and the size: ("variables", 25)
    group: str = ""  # cells of a group have a table of their own

    def paper_column(self, rows: int) -> tuple[str, str] | None:
        """The paper's table and column for this many rows, or for its fewest."""
        if self.paper is None or self.paper[1] != BY_ROWS:
            return self.paper
        return self.paper[0], PAPER_ROWS.get(rows, FEWEST)


@dataclass(frozen=True)
class Aim:
    """On a column, a method may take at most so many times the seconds of another."""

    column: str
    method: str
    most: float
    than: str


@dataclass(frozen=True)
class Suite:
    """Cells, methods, rows and seeds of one table, and how the table looks."""

    name: str
    title: str
    cells: tuple[Cell, ...] = ()
    methods: tuple[str, ...] = STANDARD
    rows: tuple[int, ...] = (50_000,)
    seeds: int = 3
    first_seed: int = 0
    limit: float = SIX_HOURS  # seconds per job
    metrics: tuple[str, ...] = ("f1", "precision", "recall", "shd")
    rows_as_columns: bool = False  # one table per cell with rows as columns, not the reverse
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # method -> its cells
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # method -> those shown
    axis: str = "column"  # what the columns of its figures run along
    note: str = ""
    alone: bool = False  # one job at a time, since it is times that are compared
    aims: tuple[Aim, ...] = ()
    foreseen: bool = False  # whether its times are shown beside those announced
    half: bool = False  # whether its systems are half of what their columns say

    @property
    def seed_numbers(self) -> range:
        """The seeds that are run."""
        return range(self.first_seed, self.first_seed + self.seeds)

    def rows_of(self, cell: Cell) -> tuple[int, ...]:
        """The numbers of rows that a cell is simulated with."""
        return self.rows if cell.rows is None else (cell.rows,)

    def halved(self) -> Suite:
        """The suite with half the variables, lags and hidden causes, its columns' names kept."""
        cells = tuple(replace(cell, system=_half(cell.system)) for cell in self.cells)
        return replace(self, cells=cells, half=True, note=f"{HALF} {self.note}".rstrip())


HALF = (
    "Half size: every system has half the variables, the largest lag and the hidden causes that "
    "its column in the paper has (5 variables and lag 3 where the paper has 10 and 5), so that two "
    "cores can do it."
)


def _half(system: System) -> System:
    """Half of every size, rounded up; of hidden causes down, but at least one.

    Not below 5 variables and lag 2, the paper's own small systems.
    """
    least = {"nodes": 5, "max_lag": 2}
    sizes = {
        name: max((system[name] + 1) // 2, min(system[name], low))
        for name, low in least.items()
        if name in system
    }
    if system.get("latents"):
        sizes["latents"] = max(1, system["latents"] // 2)
    return {**system, **sizes}

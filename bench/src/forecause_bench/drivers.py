"""Something that is not a column moves the columns: are false edges drawn, and is it said?

`drivers`: the families of `driven`, broken and sound, with four true links and without any.
`drivers-elsewhere`: those of `driven_elsewhere`, of other sizes, which no rule was chosen for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forecause.data.panel import Panel
from forecause.graph.lagged import LaggedGraph
from forecause_bench import driven_elsewhere
from forecause_bench.driven import BROKEN, MAX_LAG, SOUND, VARIABLES, make
from forecause_bench.suite import Cell, Suite

HIDDEN = "something hidden moves the columns"
SIZES = (0.25, 0.5, 0.75, 1.0, 1.0)  # of the largest table, by turns of the seed


def driven(rows: int, seed: int, max_lag: int, name: str) -> tuple[Panel, LaggedGraph]:
    """A table of a family, of at most `rows` rows, and its graph.

    Of ten seeds in a row five have links between variables.
    """
    size = int(SIZES[seed % len(SIZES)] * rows)
    values, coefficients = make(name, size, seed, links=seed // len(SIZES) % 2 == 1)
    names = [f"x{place}" for place in range(VARIABLES)]
    edges = [
        (names[j], names[i], int(lag) + 1, float(coefficients[i, j, lag]))
        for i, j, lag in np.argwhere(coefficients)
    ]
    return Panel.from_arrays([values], names), LaggedGraph.from_edges(names, max_lag, edges)


def driven_table(rows: int, seed: int, max_lag: int, name: str) -> tuple[Panel, LaggedGraph]:
    """The same of the families elsewhere, which have sizes and windows of their own."""
    sizes = driven_elsewhere.SIZES
    links = seed // len(sizes) % 2 == 1
    values, true = driven_elsewhere.make(name, int(sizes[seed % len(sizes)] * rows), seed, links)
    names = [f"x{place}" for place in range(values.shape[1])]
    edges = [(names[j], names[i], lag, 1.0) for j, i, lag in sorted(true)]
    return Panel.from_arrays([values], names), LaggedGraph.from_edges(names, max_lag, edges)


def _cells() -> list[Cell]:
    groups = {HIDDEN: BROKEN, "sound": SOUND}
    return [
        Cell(name, {"maker": f"{__name__}:driven", "max_lag": MAX_LAG, "name": name}, group=group)
        for group, families in groups.items()
        for name in families
    ]


def _cells_elsewhere() -> list[Cell]:
    groups = {HIDDEN: driven_elsewhere.HIDDEN, "sound": driven_elsewhere.SOUND}
    maker = f"{__name__}:driven_table"
    return [
        Cell(name, {"maker": maker, "max_lag": family.max_lag, "name": name}, group=group)
        for group, families in groups.items()
        for name, family in families.items()
    ]


COUNTED = (
    "Links between variables are counted. A run breaks its promise in silence if it has no doubt, "
    "at least two false links and more than 15 % of them false; rivals never doubt."
)
DRIVERS = Suite(
    "drivers",
    "Hidden common drivers: false edges, firm ones among them, and whether a run doubts itself",
    (*_cells(),),
    methods=("forecause", "ols-all", "var-fdr", "pcmci+"),
    rows=(2_000,),
    seeds=10,
    first_seed=300,  # the rules were chosen on others
    limit=600.0,
    metrics=(
        "silent", "broken", "false_links", "firm_false", "firm_links", "doubted", "true_links",
    ),
    axis="family",
    note="Six variables and at most 2,000 rows: 500, 1,000, 1,500, 2,000 and 2,000 by turns; five "
    "of the ten tables of a family have four true links between variables: a table has two true "
    f"ones on average, one volatility none, twins fewer. {COUNTED}",
)  # fmt: skip
ELSEWHERE = replace(
    DRIVERS,
    name="drivers-elsewhere",
    title="Hidden drivers as others bring them: 24 more families, and 11 sound ones",
    cells=(*_cells_elsewhere(),),
    note="Four to twelve variables, windows of two to five lags, 300, 500, 1,000, 1,500 and 2,000 "
    "rows by turns; five of the ten tables of a family have true links between variables, mostly "
    f"four. {COUNTED}",
)

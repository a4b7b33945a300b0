"""Does the error rate hold on tables like those that people have, and does a run know its limits?

`nulls`: families without any link between variables. `nulls-linked`: the same with a few links, as
they are and without what time adds. `alerts`: sound systems, of which hardly one should be doubted,
and systems that break an assumption.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.data.panel import Panel
from forecause.graph.lagged import LaggedGraph
from forecause.simulation import simulate
from forecause_bench.methods import Answer
from forecause_bench.suite import Cell, Suite
from forecause_bench.unlinked import FAMILIES, MAX_LAG, make

Array = npt.NDArray[np.float64]
MECHANISMS = ("linear", "monotonic", "piecewise-linear+monotonic", "mlp-add")
FEW_ROWS = 80
SIZES = (0.15, 0.25, 0.5, 0.75, 1.0)  # of the largest table, by turns of the seed
COPY_NOISE = 0.1  # of a variable's own spread, in its near-copy


def family(
    rows: int, seed: int, max_lag: int, name: str, links: bool, disturbed: bool = True
) -> tuple[Panel, LaggedGraph]:
    """A table of a family, of at most `rows` rows, and its graph.

    Self-links, and a few others with `links`; without `disturbed` time adds nothing.
    """
    size = int(SIZES[seed % len(SIZES)] * rows)
    values, true, stamps = make(name, size, seed, links, disturbed)
    names = [f"x{place}" for place in range(values.shape[1])]
    edges = [(names[j], names[i], int(lag) + 1, 1.0) for i, j, lag in np.argwhere(true)]
    table = pd.DataFrame(values, columns=names)
    if stamps is not None:
        table.insert(0, "time", stamps)
    return Panel.of(table), _graph(names, max_lag, edges)  # read as a user's table is


def sound(
    rows: int, seed: int, max_lag: int, mechanism: str = "linear"
) -> tuple[Panel, LaggedGraph]:
    """A stationary system whose lags fit the window."""
    return _table(_sound(rows, seed, mechanism), max_lag)


def regime_change(rows: int, seed: int, max_lag: int) -> tuple[Panel, LaggedGraph]:
    """Another system from the middle on."""
    made = simulate(nodes=7, max_lag=MAX_LAG, rows=rows, seed=seed, segments=2)
    return _table(made.values, max_lag)


def long_memory(rows: int, seed: int, max_lag: int) -> tuple[Panel, LaggedGraph]:
    """A linear system with causes that act eight to fifteen rows later."""
    rng = np.random.default_rng([5, seed])
    values, noise = np.zeros((rows + 100, 6)), rng.standard_normal((rows + 100, 6))
    order, lags = rng.permutation(6), rng.integers(8, 16, 6)
    for row in range(15, rows + 100):
        values[row] = 0.3 * values[row - 1] + noise[row]
        for k in range(1, 4):
            values[row, order[k]] += 0.4 * values[row - lags[k], order[k - 1]]
    return _table(values[100:], max_lag)


def drifting_cycle(rows: int, seed: int, max_lag: int) -> tuple[Panel, LaggedGraph]:
    """A strong cycle whose length drifts, so that no fixed period fits it."""
    rng = np.random.default_rng([6, seed])
    values, _, _ = make("white-noise", rows, seed)
    phase = 2 * np.pi * np.cumsum(1 / (20 + 8 * np.linspace(0, 1, rows)))
    shift = rng.uniform(0, 2 * np.pi, values.shape[1])
    return _table(values + 3 * np.sin(phase[:, None] + shift), max_lag)


def near_copy(rows: int, seed: int, max_lag: int) -> tuple[Panel, LaggedGraph]:
    """One variable twice, the second time with a little noise."""
    values, rng = _sound(rows, seed, "linear"), np.random.default_rng([7, seed])
    noise = COPY_NOISE * values[:, :1].std() * rng.standard_normal((rows, 1))
    return _table(np.hstack([values, values[:, :1] + noise]), max_lag)


def doubted(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Whether a run of the linear forecaster is doubted, 1 or 0."""
    from forecause.config import Config
    from forecause.method import run_on

    run = run_on(panel, Config(max_lag=max_lag, forecaster="linear", seed=seed))
    grave = any(finding.grave for finding in run.findings)
    nothing = _graph(panel.variables, max_lag, [])
    return [Answer(nothing, extra={"doubted": float(grave)})]


def _sound(rows: int, seed: int, mechanism: str) -> Array:
    made = simulate(nodes=7, max_lag=MAX_LAG, rows=rows, mechanism=mechanism, seed=seed)
    return np.asarray(made.values)


def _table(values: Array, max_lag: int) -> tuple[Panel, LaggedGraph]:
    names = [f"x{place}" for place in range(values.shape[1])]
    return Panel.from_arrays([values], names), _graph(names, max_lag, [])


def _graph(
    names: tuple[str, ...] | list[str], max_lag: int, edges: list[tuple[str, str, int, float]]
) -> LaggedGraph:
    return LaggedGraph.from_edges(list(names), max_lag, edges)


def _cells() -> list[Cell]:
    return [Cell(name, _system(name, False)) for name in FAMILIES]


def _linked_cells() -> list[Cell]:
    """Every family as it is, then as it would be if time added nothing."""
    kinds = {True: ("", "as it is"), False: (" undisturbed", "undisturbed")}
    return [
        Cell(name + more, _system(name, True) | {"disturbed": disturbed}, group=group)
        for disturbed, (more, group) in kinds.items()
        for name in FAMILIES
    ]


def _system(name: str, links: bool) -> dict[str, object]:
    return {"maker": f"{__name__}:family", "max_lag": MAX_LAG, "name": name, "links": links}


def _checked(kind: Callable[..., tuple[Panel, LaggedGraph]], mechanism: str = "") -> Cell:
    name = " ".join([kind.__name__.replace("_", " "), mechanism]).strip()
    system = {"maker": f"{__name__}:{kind.__name__}", "max_lag": MAX_LAG}
    return Cell(name, system | ({"mechanism": mechanism} if mechanism else {}))


TABLES = (
    "Tables have 5 to 8 variables and at most 2,000 rows: 300, 500, 1,000, 1,500 and 2,000 by "
    "turns of the seed; half of them have time stamps. "
)
NULLS = Suite(
    "nulls",
    "Series that look related because of time, without any link between them",
    (*_cells(),),
    methods=("forecause", "var-fdr", "pcmci+"),
    rows=(2_000,),
    seeds=20,
    first_seed=4000,  # the rules were chosen on others
    limit=600.0,
    metrics=("false_cross",),
    axis="family",
    note=f"{TABLES}Counted are links between variables, all of which are false, as a share of all "
    "links that a run draws, also those of a variable to its own past; the mean over runs. White "
    "noise has no true link at all, so that a run that draws one counts as 1.",
)
LINKED = Suite(
    "nulls-linked",
    "The families of the suite nulls with a few true links: is anything lost?",
    (*_linked_cells(),),
    methods=("forecause", "var-fdr"),
    rows=(2_000,),
    seeds=20,
    first_seed=4000,
    limit=600.0,
    metrics=("lagged_no_self/recall", "false_cross"),
    axis="family",
    note=f"{TABLES}Four links between variables, of coefficients 0.2 to 0.4; undisturbed is the "
    "same system with ordinary memory and Gaussian noise, to which time adds nothing.",
)
ALERTS = Suite(
    "alerts",
    "Is a run doubted: sound systems, and systems that break an assumption",
    (
        *(_checked(sound, mechanism) for mechanism in MECHANISMS),
        *map(_checked, (regime_change, long_memory, drifting_cycle, near_copy)),
        replace(_checked(sound), name="few rows", rows=FEW_ROWS),
    ),
    methods=("doubts",),
    rows=(500, 1_000, 2_000),
    seeds=20,
    first_seed=4000,
    limit=120.0,
    metrics=("doubted",),
    axis="system",
    note="The share of the systems of which no error rate is promised: near 0 for sound ones, near "
    "1 for all others. The four kinds of sound systems are 240 in all.",
)

"""What missing cells cost: the same systems complete, with scattered holes and with bursts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forecause.data.panel import Panel
from forecause.graph.lagged import LaggedGraph
from forecause.simulation import simulate
from forecause_bench.suite import BASE, Cell, Suite

MECHANISMS = (
    "linear",
    "monotonic",
    "piecewise-linear",
    "piecewise-linear+monotonic",
    "mlp-add",
    "mlp-concat",
)
BURSTS = (3, 12)  # rows; gaps of at most five are filled


def with_holes(
    rows: int, seed: int, max_lag: int, share: float, burst: int
) -> tuple[Panel, LaggedGraph]:
    """A simulated system, one mechanism after the other, without a share of its cells.

    Every column misses runs of `burst` rows at places of its own.
    """
    mechanism = MECHANISMS[seed % len(MECHANISMS)]
    settings = {**BASE, "max_lag": max_lag, "mechanism": mechanism}
    made = simulate(rows=rows, seed=seed, **settings)
    holes = np.random.default_rng([11, seed]).uniform(size=made.values.shape)
    first = holes < 1 - (1 - share) ** (1 / burst)  # so that a share of all cells is in a run
    frame = made.frame().mask(_lengthened(first, burst))
    return Panel.of(frame), made.graph


def _lengthened(first: npt.NDArray[np.bool_], burst: int) -> npt.NDArray[np.bool_]:
    """True where (row, column) a run began in this row or less than `burst` rows ago."""
    inside = first.copy()
    for later in range(1, burst):
        inside[later:] |= first[:-later]
    return inside


def _cell(name: str, share: float, burst: int = 1) -> Cell:
    maker = f"{__name__}:with_holes"
    return Cell(name, {"maker": maker, "max_lag": 5, "share": share, "burst": burst})


GAPS = Suite(
    "gaps",
    "Missing cells: what is lost against the complete table",
    (
        _cell("complete", 0.0),
        *(_cell(f"{share:.0%} scattered", share) for share in (0.01, 0.05, 0.2)),
        *(
            _cell(f"{share:.0%} in runs of {burst}", share, burst)
            for burst in BURSTS
            for share in (0.01, 0.05, 0.2)
        ),
    ),
    methods=("forecause", "additive"),
    rows=(2_000,),
    seeds=24,
    first_seed=3000,
    limit=600.0,
    metrics=("f1", "fdr", "recall"),
    axis="missing",
    note="10 variables, lag window 5; four seeds of each of the six mechanisms.",
)

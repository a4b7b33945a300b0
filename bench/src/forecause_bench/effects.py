"""Do intervals hold: of effects against the true average slopes, of forecasts against what came."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.config import Config
from forecause.data.panel import Panel
from forecause.graph.lagged import LaggedGraph
from forecause.simulation import simulate
from forecause.simulation.mechanisms import Mechanism, Network
from forecause.simulation.simulator import Simulated
from forecause_bench.methods import Answer
from forecause_bench.suite import Cell, Suite

SYSTEM: dict[str, Any] = {"nodes": 7, "max_lag": 3, "in_degree": 2.5}
AHEAD = 20  # rows kept back, to be forecast
LEVELS = (80, 90, 95)
NODES = 40  # of the sum over the noise that a network takes in
STEP = 1e-4  # of the slope of a form

Array = npt.NDArray[np.float64]


def with_true_effects(
    rows: int, seed: int, max_lag: int, mechanism: str, noise: str = "gaussian"
) -> tuple[Panel, LaggedGraph]:
    """A simulated system; the edges of its graph tell the true change per sd of the source."""
    made = simulate(
        rows=rows, seed=seed, mechanism=mechanism, noise=noise, **{**SYSTEM, "max_lag": max_lag}
    )
    known = true_changes(made)
    edges = made.graph.edges
    keys = zip(edges["source"], edges["target"], edges["lag"], strict=True)
    edges = edges.assign(change=[known[s, t, int(lag)] for s, t, lag in keys])
    return made.panel, LaggedGraph(made.variables, max_lag, edges)


def true_changes(made: Simulated) -> dict[tuple[str, str, int], float]:
    """The average slope of every edge over the rows, times the source's sd."""
    (system,) = made.systems
    values, steps = made.values, system.max_lag
    found = {}
    for target, parents in enumerate(system.structure.parents):
        if not parents:
            continue
        past = np.stack([values[steps - p.lag : len(values) - p.lag, p.source] for p in parents], 1)
        slopes = _slopes(system.mechanisms[target], past, float(made.noise_sd[target]))
        for parent, slope in zip(parents, slopes.mean(0), strict=True):
            names = made.variables[parent.source], made.variables[target]
            found[*names, parent.lag] = float(slope * values[:, parent.source].std())
    return found


def _slopes(mechanism: Mechanism, past: Array, noise_sd: float) -> Array:
    """Slopes of a target's expected value (row, parent), whose noise is Gaussian in a network."""
    if not isinstance(mechanism, Network):
        forms = enumerate(mechanism)
        return np.stack(
            [(f(past[:, k] + STEP) - f(past[:, k] - STEP)) / (2 * STEP) for k, f in forms], axis=1
        )
    start = past @ mechanism.inner.T + mechanism.shift
    if mechanism.noise_inner is None:
        bent = 1 - np.tanh(start) ** 2
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        bent = sum(
            weight * (1 - np.tanh(start + noise_sd * node * mechanism.noise_inner) ** 2)
            for node, weight in zip(nodes, weights / weights.sum(), strict=True)
        )
    return np.asarray((bent * mechanism.outer) @ mechanism.inner)


def interval_study(panel: Panel, max_lag: int, seed: int, **settings: Any) -> list[Answer]:
    """A run on all but the last rows, and how many of these its bands hold."""
    from forecause.effects.futures import bands
    from forecause.method import discover

    values = np.asarray(panel.values)
    past = Panel.from_arrays([values[:-AHEAD]], list(panel.variables))
    found = discover(past, max_lag, seed=seed, config=Config(device="cpu", **settings))
    told = bands(found, AHEAD, levels=LEVELS)
    came = values[-AHEAD:].ravel()
    held = {
        f"forecast_{level}": float(
            np.mean((told[f"low_{level}"] <= came) & (came <= told[f"high_{level}"]))
        )
        for level in LEVELS
    }
    return [Answer(found.graph, extra=held)]


def closed_forms(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The study with the additive forecaster."""
    return interval_study(panel, max_lag, seed, forecaster="additive")


def _cell(name: str, mechanism: str, **more: Any) -> Cell:
    maker = f"{__name__}:with_true_effects"
    return Cell(
        name, {"maker": maker, "max_lag": SYSTEM["max_lag"], "mechanism": mechanism, **more}
    )


EFFECTS = Suite(
    "effects",
    "Intervals of effects and bands of forecasts: how often they hold",
    (
        _cell("linear", "linear"),
        _cell("linear mixed noise", "linear", noise="mixed"),
        _cell("monotonic", "monotonic"),
        _cell("PL+M", "piecewise-linear+monotonic"),
        _cell("MLP-add", "mlp-add"),
        _cell("MLP-concat", "mlp-concat"),
    ),
    methods=("intervals-additive", "intervals"),
    rows=(500, 2_000, 8_000),
    seeds=30,
    first_seed=3000,  # the terms of the regression were chosen on earlier ones
    limit=600.0,
    metrics=(
        "effect_coverage",
        "effect_width",
        "forecast_90",
        "forecast_80",
        "forecast_95",
        "f1",
    ),
    axis="system",
    note="7 variables, lag window 3. Intervals of effects are nominal 90 %: the share of true "
    "edges that were found whose interval holds the true average slope over the rows, per standard "
    "deviation of the source. Bands are those of the next 20 rows of all variables.",
)

"""What should candidates be ranked by: relevance, p-values, or one discounted by the other?

The same discovery is ranked in several ways, on simulated systems with few rows, a chaotic one and
chains of gauges that hardly forget.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from forecause import LaggedGraph, Panel
from forecause.edges.select import discounted, target_shares
from forecause.method import discover
from forecause_bench.lorenz96 import lorenz96
from forecause_bench.methods import Answer
from forecause_bench.suite import Cell, Suite

MECHANISMS = (
    "linear",
    "monotonic",
    "piecewise-linear+monotonic",
    "mlp-add",
    "mlp-concat",
    "linear+trigonometric+monotonic",
    "trigonometric+piecewise-linear",
)
MAX_LAG = 3
BURN_IN = 50


def ways(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The default's graph with its candidates ranked in every way."""
    found = discover(panel, max_lag, seed=seed, device="cpu")
    relevance, p_values = found.relevance["relevance"], found.relevance["p_value"]
    evidence = -xr.apply_ufunc(np.log10, p_values.fillna(1.0).clip(min=1e-300))
    ranked: dict[str, xr.DataArray] = {
        "its score": discounted(relevance, p_values),
        "relevance": relevance,
        "share of its target": target_shares(relevance),
        "p-value": evidence,
    }
    chosen = found.graph.adjacency
    return [
        Answer(LaggedGraph.from_scores(scores, chosen), f"by {name}")
        for name, scores in ranked.items()
    ]


def gauges(rows: int, seed: int, max_lag: int, nodes: int) -> tuple[Panel, LaggedGraph]:
    """River gauges that hardly forget, each fed by one above it and all by the same rain."""
    rng = np.random.default_rng([seed, 21])
    memory = rng.uniform(0.93, 0.995, nodes)
    above = [int(rng.integers(max(0, i - 3), i)) for i in range(1, nodes)]
    delay = rng.integers(1, max_lag + 1, nodes - 1).tolist()
    storms = rng.exponential(1, rows + BURN_IN) * (rng.random(rows + BURN_IN) < 0.05)
    level = np.zeros((rows + BURN_IN, nodes))
    rain = 0.0
    for t in range(max_lag, len(level)):
        rain = 0.9 * rain + storms[t]
        local = 2 * rain * rng.uniform(0.5, 1.5, nodes)
        fed = [level[t - lag, source] for source, lag in zip(above, delay, strict=True)]
        local[1:] += 1.5 * np.array(fed)
        level[t] = memory * level[t - 1] + (1 - memory) * local + 0.02 * rng.normal(size=nodes)
    names = [f"gauge {i}" for i in range(nodes)]
    edges = [(name, name, 1) for name in names]
    edges += [(names[a], name, d) for name, a, d in zip(names[1:], above, delay, strict=True)]
    panel = Panel.from_arrays([level[BURN_IN:]], names)
    return panel, LaggedGraph.from_edges(names, max_lag, edges)


def ring(rows: int, seed: int, max_lag: int, forcing: float) -> tuple[Panel, LaggedGraph]:
    """Lorenz-96."""
    made = lorenz96(rows=rows, seed=seed, forcing=forcing)
    return made.panel, made.graph


RANKING = Suite(
    "ranking",
    "What candidates are ranked by",
    (
        *[
            Cell(name, {"nodes": 8, "max_lag": MAX_LAG, "mechanism": name, "in_degree": 2.0})
            for name in MECHANISMS
        ],
        *[
            Cell(
                f"Lorenz-96 forcing {forcing}",
                {"maker": f"{__name__}:ring", "max_lag": 1, "forcing": float(forcing)},
            )
            for forcing in (10, 40)
        ],
        Cell("gauges", {"maker": f"{__name__}:gauges", "max_lag": MAX_LAG, "nodes": 10}),
    ),
    methods=("ranked", "var-fdr", "pcmci+"),
    rows=(500, 1_000),
    seeds=5,
    first_seed=5000,  # the discount was chosen on others
    limit=600.0,
    metrics=("auroc", "average_precision"),
    axis="system",
    note="`by its score` is the product's way: relevance, less of it the less the p-value excludes "
    "chance. All rows of Forecause are of one discovery. Links of a variable to itself count.",
)

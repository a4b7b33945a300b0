"""The data of a fit, and its truth."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from forecause.data.panel import Panel
from forecause.graph.lagged import LaggedGraph
from forecause.simulation import simulate


def recorded(rows: int, seed: int, hidden: int = 0, **settings: Any) -> tuple[Panel, LaggedGraph]:
    """Simulate a system of which the last `hidden` variables are not recorded.

    Hidden variables are like all others, so that they count within the in-degree, as in the
    generator that the paper uses: its graphs have fewer recorded edges the more is hidden.
    """
    nodes = settings.pop("nodes")
    simulated = simulate(rows=rows, seed=seed, nodes=nodes + hidden, **settings)
    panel, truth = simulated.panel, simulated.graph
    if not hidden:
        return panel, truth
    names, edges = truth.variables[:nodes], truth.edges
    seen = edges["source"].isin(names) & edges["target"].isin(names)
    return (
        replace(panel, values=panel.values[:, :nodes].copy(), variables=names),
        LaggedGraph(names, truth.max_lag, edges[seen]),
    )


def commit() -> str:
    """The commit of the code that ran."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()

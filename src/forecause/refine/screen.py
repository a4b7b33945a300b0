"""Is there anything instantaneous to look for? What the past leaves unexplained tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.graph.axes import by_step
from forecause.graph.lagged import LaggedGraph
from forecause.regression.fdr import adjusted_p_values
from forecause.regression.moments import Moments, batches_of, unexplained
from forecause.regression.residuals import Residuals

FDR = 0.05
MOST_WINDOWS = 20_000  # looked at


@dataclass(frozen=True)
class Pair:
    """Two variables whose residuals move together within a row."""

    first: str
    second: str
    correlation: float
    q_value: float


def screen_instantaneous(panel: Panel, graph: LaggedGraph, fdr: float = FDR) -> tuple[Pair, ...]:
    """The pairs that are linked at lag 0, by an effect or a hidden cause; the strongest first.

    Every variable is regressed on its parents in the graph; the correlations of what is left
    pass Benjamini-Hochberg over all pairs.
    """
    correlation, p_values = _residuals(panel, graph).correlation(0)
    first, second = np.triu_indices(len(panel.variables), 1)
    q_values = adjusted_p_values(p_values[first, second])
    names = panel.variables
    pairs = [
        Pair(names[i], names[j], float(correlation[i, j]), float(q))
        for i, j, q in zip(first, second, q_values, strict=True)
        if q <= fdr
    ]
    return tuple(sorted(pairs, key=lambda pair: -abs(pair.correlation)))


def _residuals(panel: Panel, graph: LaggedGraph) -> Residuals:
    """What least squares on each variable's lagged parents leaves, in time order."""
    windows = Windows.of(panel, graph.max_lag).spread(MOST_WINDOWS)
    parents = by_step(graph.adjacency.sel(lag=slice(1, None)).values)  # (target, step, source)
    allowed = torch.from_numpy(parents).flatten(1).T
    coefficients = Moments.of(windows).solve(allowed=allowed)
    left = unexplained(batches_of(windows), coefficients)
    return Residuals.of(left.numpy(), windows)

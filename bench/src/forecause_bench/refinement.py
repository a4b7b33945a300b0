"""Studies of refinement: the graph as it was discovered, beside what became of it."""

from __future__ import annotations

from forecause.data.panel import Panel
from forecause.method import discover
from forecause.refine.instantaneous import refine_instantaneous
from forecause.refine.latent import refine_latent
from forecause_bench.methods import Answer


def latent_refinement(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The discovered graph, and the one without what hidden causes explain."""
    graph = discover(panel, max_lag, seed=seed, device="cpu").graph
    return [
        Answer(graph, "as discovered"),
        Answer(refine_latent(panel, graph), "refined"),
    ]


def instantaneous_refinement(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The discovered graph, and those with edges at lag 0 by either method."""
    graph = discover(panel, max_lag, seed=seed, device="cpu").graph
    return [
        Answer(graph, "as discovered (lagged)"),
        Answer(refine_instantaneous(panel, graph), "refined by PCMCI+"),
        Answer(refine_instantaneous(panel, graph, method="dynotears"), "refined by DYNOTEARS"),
    ]

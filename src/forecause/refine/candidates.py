"""What a refinement starts from: the discovered lagged edges and the pairs at lag 0."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from forecause.baselines.links import Mask
from forecause.data.panel import Panel
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause.refine.screen import Pair

Place = tuple[int, int, int]  # target, source, lag


def check_variables(panel: Panel, graph: LaggedGraph) -> None:
    """The data must be those of the graph, column by column."""
    if panel.variables != graph.variables:
        raise InputError(
            f"The data must have the graph's variables {list(graph.variables)} in this order, "
            f"found {list(panel.variables)}; give the table that the graph was discovered from."
        )


def lagged_places(graph: LaggedGraph) -> list[Place]:
    """Where the lagged causal edges lie in an array (target, source, lag 0 ..)."""
    place = {name: i for i, name in enumerate(graph.variables)}
    edges = graph.causal.edges
    rows = zip(edges["target"], edges["source"], edges["lag"], strict=True)
    return [(place[target], place[source], int(lag)) for target, source, lag in rows if lag > 0]


def candidate_mask(graph: LaggedGraph, pairs: Iterable[Pair]) -> Mask:
    """The discovered lagged edges, and the pairs at lag 0 in both directions."""
    place = {name: i for i, name in enumerate(graph.variables)}
    mask = np.zeros((len(place), len(place), graph.max_lag + 1), dtype=bool)
    for cell in lagged_places(graph):
        mask[cell] = True
    for pair in pairs:
        first, second = place[pair.first], place[pair.second]
        mask[first, second, 0] = mask[second, first, 0] = True
    return mask

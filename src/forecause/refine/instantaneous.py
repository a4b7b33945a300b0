"""Instantaneous effects: edges within a row, and lagged edges that only stood in for them.

A forecaster sees the past alone. Where a -> b within a row, a's causes forecast b, so it draws
edges from them to b that are none. PCMCI+ (Runge 2020) or DYNOTEARS (Pamfil et al. 2020),
started from the discovered edges and the lag-0 pairs, takes them away.
"""

from __future__ import annotations

from typing import Literal

from forecause.data.panel import Panel
from forecause.edges.knowledge import Knowledge
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause.progress import QUIET, Progress
from forecause.refine.candidates import candidate_mask, check_variables, screen_instantaneous
from forecause.refine.dynotears import graph_of_links
from forecause.refine.links import Links
from forecause.refine.tigramite_search import graph_plus, search_plus

InstantaneousMethod = Literal["pcmci+", "dynotears"]
KEY = ["source", "target", "lag"]
NOTHING = Knowledge()


def refine_instantaneous(
    panel: Panel,
    graph: LaggedGraph,
    knowledge: Knowledge = NOTHING,
    method: InstantaneousMethod = "pcmci+",
    progress: Progress = QUIET,
) -> LaggedGraph:
    """The graph with edges at lag 0, and without the lagged ones that these explain.

    Candidates are the discovered edges and the pairs that pass `screen_instantaneous`. By PCMCI+
    the score is a partial correlation and the column `mark` tells which lag-0 edges have no
    direction (o-o, or x-x where the evidence conflicts); by DYNOTEARS, which assumes noise of
    similar size, it is a weight.
    """
    check_variables(panel, graph)
    if method not in ("pcmci+", "dynotears"):
        raise InputError(f"Unknown method {method!r}; choose pcmci+ or dynotears.")
    what = f"refine: within a row, {method}"
    progress.step(what, 0.0)
    pairs = screen_instantaneous(panel, graph)
    links = Links.of(panel, graph.max_lag, knowledge).within(candidate_mask(graph, pairs))
    progress.step(what, 0.1)
    if method == "pcmci+":
        found = graph_plus(panel, search_plus(panel, graph.max_lag, links), links)
    else:
        found = graph_of_links(panel, graph.max_lag, links)
    progress.step(what, 1.0)
    return _with_details(found, graph)


def _with_details(found: LaggedGraph, before: LaggedGraph) -> LaggedGraph:
    """Edges that were there before keep the details that the refinement has not."""
    new = [name for name in before.edges if name in KEY or name not in found.edges]
    edges = found.edges.merge(before.edges[new], on=KEY, how="left")
    return LaggedGraph(found.variables, found.max_lag, edges, found.scores)

"""DYNOTEARS (Pamfil et al. 2020): a sparse linear system with an acyclic part at lag 0."""

from __future__ import annotations

import numpy as np

from forecause.data import Panel
from forecause.edges.knowledge import Knowledge
from forecause.graph import LaggedGraph
from forecause.refine.dynotears import fit_links, graph_of_links
from forecause.refine.links import Links, graph_of

NOTHING = Knowledge()


def dynotears(
    panel: Panel,
    max_lag: int,
    seed: int,
    knowledge: Knowledge = NOTHING,
    *,
    instantaneous: bool = False,
) -> LaggedGraph:
    """The nonzero lagged weights at the published penalties and threshold (0), scored by size.

    Weights refer to standardised variables. `instantaneous` adds the edges at lag 0. The start
    is zero: the seed is not used.
    """
    links = Links.of(panel, max_lag, knowledge)
    if instantaneous:
        return graph_of_links(panel, max_lag, links)
    weights = fit_links(panel, max_lag, links)[:, :, 1:]
    lagged = Links.of(panel, max_lag, knowledge, first_lag=1)
    chosen = lagged.completed(np.abs(weights), weights != 0)
    return graph_of(panel, np.abs(weights), chosen)

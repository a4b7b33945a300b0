"""VAR with FDR: least squares, t-tests and Benjamini-Hochberg, the honest bar for linear data."""

from __future__ import annotations

import numpy as np

from forecause.data import Panel
from forecause.edges.knowledge import Knowledge
from forecause.graph import LaggedGraph
from forecause.refine.candidates import LaggedProducts
from forecause.refine.links import Links, graph_of
from forecause.regression.p_values import adjusted_p_values
from forecause_bench.rivals.autoregression import edge_tests

FDR = 0.05
NOTHING = Knowledge()


def var_fdr(panel: Panel, max_lag: int, seed: int, knowledge: Knowledge = NOTHING) -> LaggedGraph:
    """Edges whose coefficient in the vector autoregression survives a 5 % FDR.

    Forbidden edges are left out of the regressions. The score is |t|. Nothing is random here: the
    seed is not used.
    """
    moments = LaggedProducts.of(panel, max_lag)
    links = Links.of(panel, max_lag, knowledge, first_lag=1)
    t, p = edge_tests(moments, links.allowed)
    q = adjusted_p_values(p)
    chosen = links.completed(np.abs(t), q <= FDR)
    return graph_of(panel, np.abs(t), chosen, p_value=p, q_value=q)

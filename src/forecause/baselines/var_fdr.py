"""VAR with FDR: least squares, t-tests and Benjamini-Hochberg, the honest bar for linear data."""

from __future__ import annotations

import numpy as np

from forecause.baselines.answer import graph_of
from forecause.baselines.design import Moments
from forecause.baselines.ols import by_edge, full_regression
from forecause.data import Panel
from forecause.graph import LaggedGraph
from forecause.graph.fdr import adjusted_p_values

FDR = 0.05


def var_fdr(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """Edges whose coefficient in the full vector autoregression survives a 5 % FDR.

    The score is |t|. Nothing is random here: the seed is not used.
    """
    moments = Moments.of(panel, max_lag)
    fit = full_regression(moments)
    p = by_edge(moments, fit.p)
    q = adjusted_p_values(p)
    return graph_of(panel, np.abs(by_edge(moments, fit.t)), q <= FDR, p_value=p, q_value=q)

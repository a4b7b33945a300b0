"""Granger causality, pairwise and multivariate: do a variable's lags help to predict another?

An F-test over all lags of a source decides whether the pair is linked (5 %, uncorrected, as it is
commonly used); the lags of the link are those whose own t-test is significant at 5 %, and the
most significant one if none is. The score of every candidate is |t|. A variable's own lags are
tested in the same way. Nothing is random here: the seeds are not used.
"""

from __future__ import annotations

import numpy as np

from forecause.common.arrays import Array
from forecause.data import Panel
from forecause.edges.knowledge import Knowledge
from forecause.graph import LaggedGraph
from forecause.refine.candidates import LaggedProducts
from forecause.refine.links import Links, graph_of
from forecause_bench.rivals.autoregression import edge_tests, lags_of, regressions

LEVEL = 0.05
NOTHING = Knowledge()


def granger(panel: Panel, max_lag: int, seed: int, knowledge: Knowledge = NOTHING) -> LaggedGraph:
    """Multivariate: the lags of a source are tested next to the lags of all other variables.

    Forbidden edges are left out of the regressions.
    """
    moments = LaggedProducts.of(panel, max_lag)
    links = Links.of(panel, max_lag, knowledge, first_lag=1)
    pair_p = np.ones((moments.variables, moments.variables))
    for target, columns, fit in regressions(moments, links.allowed):
        for source in np.unique(columns % moments.variables):
            group = np.flatnonzero(columns % moments.variables == source)
            pair_p[target, source] = fit.group_p(group)[0]
    return _tested(panel, *edge_tests(moments, links.allowed), pair_p, links)


def granger_pairwise(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """Pairwise: the lags of a source are tested next to the target's own lags alone."""
    moments = LaggedProducts.of(panel, max_lag)
    variables = moments.variables
    t = np.empty((variables, variables, max_lag))
    p = np.empty_like(t)
    pair_p = np.empty((variables, variables))
    tested = np.arange(max_lag)  # the source's lags come first among the predictors
    for i in range(variables):
        for j in range(variables):
            own = lags_of(moments, i)
            predictors = own if i == j else np.concatenate([lags_of(moments, j), own])
            fit = moments.regress(predictors, np.array([i]))
            t[i, j], p[i, j] = fit.t[:max_lag, 0], fit.p[:max_lag, 0]
            pair_p[i, j] = fit.group_p(tested)[0]
    return _tested(panel, t, p, pair_p, Links.of(panel, max_lag, NOTHING, first_lag=1))


def _tested(panel: Panel, t: Array, p: Array, pair_p: Array, links: Links) -> LaggedGraph:
    """The graph of t statistics and p-values (target, source, lag) and pairs (target, source)."""
    strength = np.abs(t)
    lags = (p <= LEVEL) | (strength == strength.max(axis=2, keepdims=True))
    chosen = links.completed(strength, lags & (pair_p <= LEVEL)[:, :, None])
    return graph_of(panel, strength, chosen, p_value=p)

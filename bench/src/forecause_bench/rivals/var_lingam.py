"""VAR-LiNGAM (Hyvärinen et al. 2010): a VAR whose non-Gaussian noise orders effects at lag 0."""

from __future__ import annotations

import numpy as np

from forecause.common.arrays import Array
from forecause.data import Panel
from forecause.graph import LaggedGraph
from forecause.refine.links import graph_of
from forecause.refine.tigramite_search import quiet
from forecause_bench.rivals.autoregression import Design


def var_lingam(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """The lagged coefficients that the published pruning (adaptive lasso, BIC) leaves nonzero.

    The steps are those of lingam's VARLiNGAM with all lags kept and its default pruning; they
    are taken here one by one on stacked windows, because the package reads one series only and
    its pruning is quadratic in the rows. The score is the coefficient's size before pruning, so
    that pruned candidates are ranked too. Nothing is random here: the seed is not used.
    """
    design = Design.of(panel, max_lag)
    windows, _, variables = design.past.shape
    past = design.past.reshape(windows, -1)  # (window, lag * source)
    reduced, *_ = np.linalg.lstsq(past, design.target)  # (lag * source, target)
    with quiet():
        from lingam import DirectLiNGAM

        model = DirectLiNGAM().fit(design.target - past @ reduced)
        # X_t = B0 X_t + sum_l B_l X_{t-l} + e  <=>  B_l = (I - B0) M_l
        lagged = (np.eye(variables) - model.adjacency_matrix_) @ reduced.T
        pruned = _pruned(past, design.target, model.causal_order_)
    return graph_of(panel, np.abs(_by_edge(lagged, max_lag)), _by_edge(pruned, max_lag) != 0)


def _pruned(past: Array, target: Array, order: list[int]) -> Array:
    """Lagged coefficients (target, lag * source), given each target's predecessors at lag 0."""
    from lingam.utils import predict_adaptive_lasso

    coefficients = np.empty((target.shape[1], past.shape[1]))
    for place, i in enumerate(order):
        columns = np.hstack([past, target[:, order[:place]], target[:, [i]]])
        last = columns.shape[1] - 1
        coefficients[i] = predict_adaptive_lasso(columns, np.arange(last), last)[: past.shape[1]]
    return coefficients


def _by_edge(coefficients: Array, max_lag: int) -> Array:
    """(target, lag * source) as (target, source, lag)."""
    return coefficients.reshape(len(coefficients), max_lag, -1).transpose(0, 2, 1)

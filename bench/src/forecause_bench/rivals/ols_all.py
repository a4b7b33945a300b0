"""Least squares given all other inputs, HC3 and Benjamini-Hochberg: the plainest honest test."""

from __future__ import annotations

import numpy as np

from forecause.data import Panel, Windows
from forecause.edges.reading import usual_fdr
from forecause.forecast.input_tests.protocol import link_q_values
from forecause.graph import LaggedGraph, empty_scores
from forecause.regression.robust import wald_p_values


def ols_all(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """Edges at the error rate that a run has by default: 5 %, from 1,500 windows on 2 %.

    Self-links and links between variables are adjusted apart, as in a run. The score is -log10 p.
    """
    windows = Windows.of(panel, max_lag)
    batch = windows.whole()
    past = batch.past[:, ::-1].astype(np.float64)  # (window, lag, source)
    count, lags, variables = past.shape
    design = np.column_stack([past.reshape(count, -1), np.ones(count)])
    p = wald_p_values(design, batch.target.astype(np.float64), lags * variables, 1)
    p = p.reshape(variables, lags, variables).transpose(0, 2, 1)  # (target, source, lag)
    scores = empty_scores(panel.variables, max_lag)
    scores = scores.copy(data=-np.log10(np.maximum(p, 1e-300)))
    chosen = scores.copy(data=link_q_values(p) <= usual_fdr(count, lags * variables)[0])
    return LaggedGraph.from_scores(scores, chosen)

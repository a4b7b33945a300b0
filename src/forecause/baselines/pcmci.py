"""PCMCI and PCMCI+ (Runge et al. 2019, 2020): conditional independence tests, by tigramite.

The test is partial correlation and the score its absolute value. Nothing is random here: the
seeds are not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forecause.baselines.answer import graph_of
from forecause.baselines.third_party import load, quiet
from forecause.baselines.tigramite_frame import frame_of, lagged, partial_correlation
from forecause.data import Panel
from forecause.graph import LaggedGraph
from forecause.graph.fdr import adjusted_p_values

LEVEL = 0.05  # tigramite's default for PCMCI
LEVEL_PLUS = 0.01  # tigramite's default for PCMCI+


def pcmci(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """PCMCI at its default level of 5 % per link, so one in twenty absent links is reported."""
    results = _run_pcmci(panel, max_lag)
    p = lagged(results["p_matrix"])
    return graph_of(panel, np.abs(lagged(results["val_matrix"])), p <= LEVEL, p_value=p)


def pcmci_fdr(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """PCMCI with Benjamini-Hochberg at 5 % over all lagged links: the fairer comparison."""
    results = _run_pcmci(panel, max_lag)
    p = lagged(results["p_matrix"])
    q = adjusted_p_values(p)
    scores = np.abs(lagged(results["val_matrix"]))
    return graph_of(panel, scores, q <= LEVEL, p_value=p, q_value=q)


def pcmci_plus(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """PCMCI+, which also conditions on values of the same time; its lagged links."""
    with quiet():
        results = _searcher(panel, max_lag).run_pcmciplus(tau_max=max_lag, pc_alpha=LEVEL_PLUS)
    return graph_of(
        panel,
        np.abs(lagged(results["val_matrix"])),
        lagged(results["graph"]) == "-->",
        p_value=lagged(results["p_matrix"]),
    )


def _run_pcmci(panel: Panel, max_lag: int) -> Any:
    with quiet():
        # Links at lag 0 take no part in the tests of lagged ones: leaving them out saves time.
        return _searcher(panel, max_lag).run_pcmci(tau_min=1, tau_max=max_lag)


def _searcher(panel: Panel, max_lag: int) -> Any:
    return load("tigramite.pcmci").PCMCI(frame_of(panel, max_lag), partial_correlation(), 0)

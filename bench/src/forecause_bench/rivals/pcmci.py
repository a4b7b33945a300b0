"""PCMCI, PCMCI+ (Runge et al. 2019, 2020) and LPCMCI (Gerhardus and Runge 2020), by tigramite.

The test is partial correlation and the score its absolute value. Nothing is random here: the
seeds are not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.data import Panel
from forecause.edges.knowledge import Knowledge
from forecause.graph import LaggedGraph
from forecause.graph.edge_table import CAUSAL, CAUSE
from forecause.refine.links import Links, graph_of
from forecause.refine.tigramite_search import (
    graph_plus,
    lagged,
    pcmci_searcher,
    quiet,
    search_latent,
    search_plus,
)
from forecause.regression.p_values import adjusted_p_values

LEVEL = 0.05  # tigramite's default for PCMCI
LEVEL_LATENT = 0.01  # of LPCMCI
# Bounds on LPCMCI's conditioning sets, without which ten variables take more than ten minutes.
MAX_SETS_PER_SIZE = 10
MAX_SIZE_NON_ANCESTRAL = 3
NOTHING = Knowledge()


def pcmci(panel: Panel, max_lag: int, seed: int, knowledge: Knowledge = NOTHING) -> LaggedGraph:
    """PCMCI at its default level of 5 % per link, so one in twenty absent links is reported."""
    links = Links.of(panel, max_lag, knowledge, first_lag=1)
    scores, p = _run_pcmci(panel, max_lag, links)
    return graph_of(panel, scores, links.completed(scores, p <= LEVEL), p_value=p)


def pcmci_fdr(panel: Panel, max_lag: int, seed: int, knowledge: Knowledge = NOTHING) -> LaggedGraph:
    """PCMCI with Benjamini-Hochberg at 5 % over all lagged links: the fairer comparison."""
    links = Links.of(panel, max_lag, knowledge, first_lag=1)
    scores, p = _run_pcmci(panel, max_lag, links)
    q = adjusted_p_values(p)
    return graph_of(panel, scores, links.completed(scores, q <= LEVEL), p_value=p, q_value=q)


def pcmci_plus(
    panel: Panel, max_lag: int, seed: int, knowledge: Knowledge = NOTHING
) -> LaggedGraph:
    """PCMCI+, which also conditions on values of the same time; its lagged links."""
    results = search_plus(panel, max_lag, Links.of(panel, max_lag, knowledge))
    scores = np.abs(lagged(results["val_matrix"]))
    links = Links.of(panel, max_lag, knowledge, first_lag=1)
    chosen = links.completed(scores, lagged(results["graph"]) == CAUSE)
    return graph_of(panel, scores, chosen, p_value=lagged(results["p_matrix"]))


def pcmci_plus_now(
    panel: Panel, max_lag: int, seed: int, knowledge: Knowledge = NOTHING
) -> LaggedGraph:
    """PCMCI+ with its links at lag 0; the column `mark` tells which have no direction."""
    links = Links.of(panel, max_lag, knowledge)
    return graph_plus(panel, search_plus(panel, max_lag, links), links)


def lpcmci(panel: Panel, max_lag: int, seed: int, knowledge: Knowledge = NOTHING) -> LaggedGraph:
    """The lagged links that are, or may be, causal; the column `mark` tells which."""
    results = search_latent(
        panel,
        max_lag,
        Links.of(panel, max_lag, knowledge).for_lpcmci(),
        pc_alpha=LEVEL_LATENT,
        max_q_global=MAX_SETS_PER_SIZE,
        max_p_non_ancestral=MAX_SIZE_NON_ANCESTRAL,
    )
    marks = lagged(results["graph"])
    scores = np.abs(lagged(results["val_matrix"]))
    causal = np.isin(marks, CAUSAL)
    return graph_of(
        panel,
        scores,
        Links.of(panel, max_lag, knowledge, first_lag=1).completed(scores, causal),
        p_value=lagged(results["p_matrix"]),
        mark=np.where(causal, marks, CAUSE),
    )


def _run_pcmci(
    panel: Panel, max_lag: int, links: Links
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Scores and p-values (target, source, lag); a forbidden link has no p-value."""
    with quiet():
        # Links at lag 0 take no part in the tests of lagged ones: leaving them out saves time.
        results = pcmci_searcher(panel, max_lag).run_pcmci(
            tau_min=1, tau_max=max_lag, link_assumptions=links.for_pcmci()
        )
    p = np.where(links.allowed, lagged(results["p_matrix"]), np.nan)
    return np.abs(lagged(results["val_matrix"])), p

"""PCMCI and PCMCI+ (Runge et al. 2019, 2020): conditional independence tests, by tigramite.

The test is partial correlation and the score its absolute value. Nothing is random here: the
seeds are not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.baselines.answer import graph_of
from forecause.baselines.links import Links
from forecause.baselines.third_party import load, quiet
from forecause.baselines.tigramite_frame import by_target, frame_of, lagged, partial_correlation
from forecause.data import Panel
from forecause.edges.knowledge import Knowledge
from forecause.graph import LaggedGraph
from forecause.graph.marks import CAUSE, WITHOUT_DIRECTION
from forecause.regression.fdr import adjusted_p_values

LEVEL = 0.05  # tigramite's default for PCMCI
LEVEL_PLUS = 0.01  # tigramite's default for PCMCI+
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


def search_plus(panel: Panel, max_lag: int, links: Links) -> Any:
    """What PCMCI+ finds among these links, as tigramite gives it."""
    with quiet():
        return _searcher(panel, max_lag).run_pcmciplus(
            tau_max=max_lag, pc_alpha=LEVEL_PLUS, link_assumptions=links.for_pcmci()
        )


def graph_plus(panel: Panel, results: Any, links: Links) -> LaggedGraph:
    """The results of `search_plus` as a graph with lag 0, one edge per pair there."""
    marks = links.directed(by_target(results["graph"]))
    found = marks == CAUSE
    found[:, :, 0] |= np.isin(marks[:, :, 0], WITHOUT_DIRECTION) & np.tri(
        len(marks), k=-1, dtype=bool
    )
    scores = np.abs(by_target(results["val_matrix"]))
    chosen = links.completed(scores, found)
    marks = np.where(found & ~links.fixed, marks, CAUSE)
    p = by_target(results["p_matrix"])
    sign = np.sign(by_target(results["val_matrix"])).astype(int)
    return graph_of(panel, scores, chosen, first_lag=0, mark=marks, sign=sign, p_value=p)


def _run_pcmci(
    panel: Panel, max_lag: int, links: Links
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Scores and p-values (target, source, lag); a forbidden link has no p-value."""
    with quiet():
        # Links at lag 0 take no part in the tests of lagged ones: leaving them out saves time.
        results = _searcher(panel, max_lag).run_pcmci(
            tau_min=1, tau_max=max_lag, link_assumptions=links.for_pcmci()
        )
    p = np.where(links.allowed, lagged(results["p_matrix"]), np.nan)
    return np.abs(lagged(results["val_matrix"])), p


def _searcher(panel: Panel, max_lag: int) -> Any:
    return load("tigramite.pcmci").PCMCI(frame_of(panel, max_lag), partial_correlation(), 0)

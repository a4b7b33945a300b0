"""tigramite's PCMCI and PCMCI+ with partial correlations from one covariance matrix.

The searches are tigramite's own. Its test builds an array of all rows and two regressions for every
question, 75 s for 50,000 rows of ten variables; all questions are about the same rows, so that one
matrix of all lagged values answers them, with the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.edges.knowledge import Knowledge
from forecause.graph.edge_table import CAUSE
from forecause.graph.lagged import LaggedGraph
from forecause.refine.links import Links, graph_of
from forecause.refine.tigramite_search import lagged, pcmci_searcher, quiet
from forecause_bench.rivals.pcmci import LEVEL

Node = tuple[int, int]  # variable, minus its lag


def pcmci(panel: Panel, max_lag: int) -> LaggedGraph:
    """PCMCI at 5 % per link, as it is run by default and in the paper."""
    links = Links.of(panel, max_lag, Knowledge(), first_lag=1)
    with quiet():
        results = by_moments(pcmci_searcher(panel, max_lag), max_lag).run_pcmci(
            tau_min=1, tau_max=max_lag, link_assumptions=links.for_pcmci()
        )
    scores, p = np.abs(lagged(results["val_matrix"])), lagged(results["p_matrix"])
    return graph_of(panel, scores, p <= LEVEL, p_value=p)


def pcmci_plus(panel: Panel, max_lag: int) -> LaggedGraph:
    """The lagged links of PCMCI+."""
    results = plus_by_moments(panel, max_lag, Links.of(panel, max_lag, Knowledge()))
    scores, p = np.abs(lagged(results["val_matrix"])), lagged(results["p_matrix"])
    return graph_of(panel, scores, lagged(results["graph"]) == CAUSE, p_value=p)


def plus_by_moments(panel: Panel, max_lag: int, links: Links) -> Any:
    """What PCMCI+ finds among these links, as tigramite gives it."""
    with quiet():
        return by_moments(pcmci_searcher(panel, max_lag), max_lag).run_pcmciplus(
            tau_max=max_lag,
            pc_alpha=thresholds().hidden.pcmci_plus_level,
            link_assumptions=links.for_pcmci(),
        )


def by_moments(searcher: Any, max_lag: int) -> Any:
    """The same searcher with a quicker test; for one series without missing values."""
    test = searcher.cond_ind_test
    (values,) = test.dataframe.values.values()
    rows, variables = len(values) - 2 * max_lag, values.shape[1]
    behind = range(2 * max_lag + 1)  # tests reach back so far, and leave out as many first rows
    design = np.hstack([values[2 * max_lag - lag : len(values) - lag] for lag in behind])
    correlation = np.corrcoef(design.T)  # column lag * variables + variable

    def run_test(
        X: Sequence[Node],  # tigramite's names
        Y: Sequence[Node],
        Z: Sequence[Node] | None = None,
        tau_max: int = max_lag,
        alpha_or_thres: float | None = None,
    ) -> tuple[Any, ...]:
        ends = [X[0], Y[0]]
        given = [node for node in dict.fromkeys(Z or []) if node not in ends]
        columns = [variables * -lag + variable for variable, lag in [*ends, *given]]
        value = partial_correlation(correlation[np.ix_(columns, columns)])
        p = test.get_analytic_significance(value, rows, len(columns), None)
        return (value, p) if alpha_or_thres is None else (value, p, p <= alpha_or_thres)

    test.run_test = run_test
    return searcher


def partial_correlation(correlation: npt.NDArray[np.float64]) -> float:
    """Of the first two variables given the others."""
    given = correlation[2:, 2:]
    ends = correlation[:2, :2] - correlation[:2, 2:] @ np.linalg.solve(given, correlation[2:, :2])
    return float(ends[0, 1] / np.sqrt(ends[0, 0] * ends[1, 1]))

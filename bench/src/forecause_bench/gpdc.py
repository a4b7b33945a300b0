"""PCMCI+ with tigramite's nonlinear test GPDC: Gaussian processes and distance correlation.

It needs the package dcor (`pip install './bench[gpdc]'`). Its time grows with the cube of
the rows, so it is for short tables.
"""

from __future__ import annotations

import numpy as np

from forecause.config.thresholds import THRESHOLDS
from forecause.data import Panel
from forecause.errors import MissingExtra
from forecause.graph.edge_table import CAUSE
from forecause.refine.links import graph_of
from forecause.refine.tigramite_search import frame_of, lagged, load, quiet
from forecause_bench.methods import Answer


def pcmci_plus_gpdc(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The lagged links, at PCMCI+'s usual level; nothing is random but the test's own null."""
    try:
        import dcor  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra("dcor", "gpdc", "./bench") from error
    test = load("tigramite.independence_tests.gpdc").GPDC(seed=seed, verbosity=0)
    searcher = load("tigramite.pcmci").PCMCI(frame_of(panel, max_lag), test, 0)
    with quiet():
        level = THRESHOLDS.hidden.pcmci_plus_level
        results = searcher.run_pcmciplus(tau_max=max_lag, pc_alpha=level)
    scores = np.abs(lagged(results["val_matrix"]))
    chosen = lagged(results["graph"]) == CAUSE
    return [Answer(graph_of(panel, scores, chosen, p_value=lagged(results["p_matrix"])))]

"""LPCMCI (Gerhardus and Runge 2020): PCMCI for systems with hidden common causes, by tigramite."""

from __future__ import annotations

import numpy as np

from forecause.baselines.answer import graph_of
from forecause.baselines.links import Links
from forecause.baselines.third_party import load, quiet
from forecause.baselines.tigramite_frame import frame_of, lagged, partial_correlation
from forecause.data import Panel
from forecause.edges.knowledge import Knowledge
from forecause.graph import LaggedGraph
from forecause.graph.marks import CAUSAL, CAUSE

LEVEL = 0.01
# Without bounds on the conditioning sets ten variables take more than ten minutes.
MAX_SETS_PER_SIZE = 10
MAX_SIZE_NON_ANCESTRAL = 3
NOTHING = Knowledge()


def lpcmci(panel: Panel, max_lag: int, seed: int, knowledge: Knowledge = NOTHING) -> LaggedGraph:
    """The lagged links that are, or may be, causal; the column `mark` tells which.

    Tests are partial correlations at the 1 % level, the score their absolute value. Nothing is
    random here: the seed is not used.
    """
    searcher = load("tigramite.lpcmci").LPCMCI(frame_of(panel, max_lag), partial_correlation())
    with quiet():
        results = searcher.run_lpcmci(
            link_assumptions=Links.of(panel, max_lag, knowledge).for_lpcmci(),
            tau_max=max_lag,
            pc_alpha=LEVEL,
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

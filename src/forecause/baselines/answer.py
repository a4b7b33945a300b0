"""What every baseline gives back: a graph with scores for all candidates."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from forecause.data import Panel
from forecause.graph import LaggedGraph, empty_scores


def graph_of(
    panel: Panel,
    scores: npt.NDArray[Any],
    chosen: npt.NDArray[Any],
    *,
    first_lag: int = 1,
    **details: npt.NDArray[Any],
) -> LaggedGraph:
    """A graph from arrays (target, source, lag); `details` become columns of the edge table."""
    blank = empty_scores(panel.variables, scores.shape[2] + first_lag - 1, first_lag)
    named = {name: blank.copy(data=values) for name, values in details.items()}
    return LaggedGraph.from_scores(blank.copy(data=scores), chosen, named)

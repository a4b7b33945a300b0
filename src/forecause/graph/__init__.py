"""The graph station: LaggedGraph, edge selection, metrics and export."""

from forecause.graph.axes import AXES, empty_scores
from forecause.graph.lagged import LaggedGraph

__all__ = ["AXES", "LaggedGraph", "empty_scores"]

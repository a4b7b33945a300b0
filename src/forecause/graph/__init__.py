"""The graph station: LaggedGraph, edge selection, metrics and export."""

from forecause.graph.lagged import AXES, LaggedGraph, empty_scores

__all__ = ["AXES", "LaggedGraph", "empty_scores"]

"""The attribution station: relevance of every (source, lag) for every target."""

from forecause.attribute.readouts import READOUTS, Readout
from forecause.attribute.relevance import cross_fitted, relevance

__all__ = ["READOUTS", "Readout", "cross_fitted", "relevance"]

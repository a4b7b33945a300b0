"""The attribution station: relevance of every (source, lag) for every target."""

from forecause.forecast.attribution.readouts import READOUTS, Readout
from forecause.forecast.attribution.relevance import cross_fitted, relevance

__all__ = ["READOUTS", "Readout", "cross_fitted", "relevance"]

"""The simulate station: systems with a known graph."""

from forecause.simulation import datasets
from forecause.simulation.simulator import Simulated, simulate
from forecause.simulation.system import System

__all__ = ["Simulated", "System", "datasets", "simulate"]

"""The simulate station: systems with a known graph."""

from forecause.simulate.lorenz96 import lorenz96
from forecause.simulate.result import Simulated
from forecause.simulate.simulator import simulate
from forecause.simulate.system import System

__all__ = ["Simulated", "System", "lorenz96", "simulate"]

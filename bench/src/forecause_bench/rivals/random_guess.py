"""Random graphs: what guessing scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forecause.data import Panel
from forecause.errors import InputError
from forecause.graph import LaggedGraph
from forecause.refine.links import graph_of

EXPECTED_IN_DEGREE = 3  # of the simulated systems that the baselines are compared on


def random_guess(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """Every candidate is an edge with the same probability, three per target on average."""
    candidates = len(panel.variables) * max_lag
    return random_at_density(min(1.0, EXPECTED_IN_DEGREE / candidates))(panel, max_lag, seed)


def random_at_density(density: float) -> Callable[[Panel, int, int], LaggedGraph]:
    """A guesser of edges with this probability.

    Given the density of the true graph it is an oracle baseline: name it so in a table.
    """
    if not 0 <= density <= 1:
        raise InputError(f"A density lies between 0 and 1, found {density}.")

    def guess(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
        variables = len(panel.variables)
        rng = np.random.default_rng(seed)
        scores = rng.uniform(size=(variables, variables, max_lag))
        return graph_of(panel, scores, scores > 1 - density)

    return guess

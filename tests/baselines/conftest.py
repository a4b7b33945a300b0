"""A small simulator of linear systems, for baselines to be tried on."""

import numpy as np
import pytest

from forecause.data import Panel
from forecause.graph import LaggedGraph

EASY = {
    ("a", "a", 1): 0.6,
    ("a", "b", 2): 0.8,
    ("b", "c", 1): -0.8,
    ("d", "d", 1): 0.5,
    ("c", "d", 2): 0.7,
}


def make_values(weights, variables, rows, seed, noise="normal"):
    """Rows of x_t = sum of weight * source_{t - lag} + noise of variance 1."""
    index = {name: i for i, name in enumerate(variables)}
    max_lag = max((lag for _, _, lag in weights), default=1)
    coefficients = np.zeros((max_lag, len(variables), len(variables)))
    for (source, target, lag), weight in weights.items():
        coefficients[lag - 1, index[source], index[target]] = weight
    rng = np.random.default_rng(seed)
    shape = (rows + 100, len(variables))
    values = rng.normal(size=shape) if noise == "normal" else rng.uniform(-1.73, 1.73, shape)
    for t in range(max_lag, len(values)):
        values[t] += sum(values[t - lag - 1] @ coefficients[lag] for lag in range(max_lag))
    return values[100:]


@pytest.fixture(scope="session")
def make_panel():
    """A panel of linear systems with the given weights; one series per entry of `rows`."""

    def make(weights=EASY, variables="abcd", rows=(1000,), seed=0, noise="normal"):
        series = [make_values(weights, variables, n, seed + i, noise) for i, n in enumerate(rows)]
        return Panel.from_arrays(series, list(variables))

    return make


@pytest.fixture(scope="session")
def easy_panel(make_panel):
    """Four variables, five strong edges with lags 1 and 2, 1000 rows."""
    return make_panel()


@pytest.fixture(scope="session")
def easy_truth():
    return LaggedGraph.from_edges("abcd", 2, list(EASY))


@pytest.fixture(scope="session")
def edges_of():
    """The edges of a graph as a set of (source, target, lag)."""

    def edges(graph):
        table = graph.edges
        return set(zip(table["source"], table["target"], table["lag"], strict=True))

    return edges


@pytest.fixture(scope="session")
def f1_of(edges_of):
    """F1 of a graph against the truth."""

    def f1(graph, truth):
        found, true = edges_of(graph), edges_of(truth)
        return 2 * len(found & true) / (len(found) + len(true))

    return f1


@pytest.fixture
def quick(monkeypatch):
    """Shorter training where a test does not depend on it."""
    monkeypatch.setattr("forecause.baselines.tcdf.EPOCHS", 300)
    monkeypatch.setattr("forecause.baselines.cmlp.STEPS", 50)

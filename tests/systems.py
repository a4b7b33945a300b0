"""Small systems that several tests look at."""

import numpy as np

from forecause.data import Panel
from forecause.data.windows import Window, Windows
from forecause.regression.scan import InputGroups


def single_inputs(count: int) -> InputGroups:
    """Every one of so many columns is a candidate of its own and a number."""
    return InputGroups(tuple(np.array([i]) for i in range(count)), np.ones(count, dtype=bool))


def chain(rows: int = 2000, seed: int = 0) -> np.ndarray:
    """a drives b after 1 step and b drives c after 2; c also remembers itself."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows + 50, 3))
    for t in range(2, len(x)):
        x[t, 1] += 0.8 * x[t - 1, 0]
        x[t, 2] += -0.7 * x[t - 2, 1] + 0.4 * x[t - 1, 2]
    return x[50:]


def bent_chain(rows: int = 400) -> np.ndarray:
    """The chain with an edge that no linear model sees."""
    values = chain(rows)
    values[1:, 0] += np.sin(3 * values[:-1, 2])
    return values


LINEAR = {
    ("a", "a", 1): 0.6,
    ("a", "b", 2): 0.8,
    ("b", "c", 1): -0.8,
    ("d", "d", 1): 0.5,
    ("c", "d", 2): 0.7,
}


def linear_rows(weights, variables, rows, seed, noise="normal"):
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


CHAIN_EDGES = {("a", "b", 1), ("b", "c", 2), ("c", "c", 1)}


def edge_set(graph) -> set[tuple[str, str, int]]:
    """The edges of a graph as (source, target, lag)."""
    return set(graph.edges[["source", "target", "lag"]].itertuples(index=False, name=None))


def with_next(past: np.ndarray) -> Window:
    """Windows with this past; the value that follows is zero."""
    return Window(past, np.zeros_like(past[:, 0]))


def windows_of(values: np.ndarray, max_lag: int = 1) -> Windows:
    """The windows of a table whose variables are called v0, v1, ..."""
    names = [f"v{i}" for i in range(values.shape[1])]
    return Windows.of(Panel.from_arrays([values], names), max_lag)

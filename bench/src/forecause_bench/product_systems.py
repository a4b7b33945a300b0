"""Systems in which half of the variables follow the product of two others; nothing can explode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forecause.graph.lagged import LaggedGraph

BURN_IN = 200
OWN, LINK, PRODUCT = (0.2, 0.5), (0.2, 0.4), (0.4, 0.7)  # sizes of coefficients

Array = npt.NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Products:
    """The second half of the variables reads products of the first half, which is linear."""

    weights: Array  # (lag, target, source), the first lag at index 0
    factors: tuple[tuple[int, int, int, int, int, float], ...]  # target, source, lag, source, lag

    @property
    def max_lag(self) -> int:
        """The largest lag."""
        return len(self.weights)

    def step(self, past: Array, noise: Array) -> Array:
        """The next row after a past (row, variable)."""
        following = noise.astype(np.float64)
        for lag, weights in enumerate(self.weights, start=1):
            following += weights @ past[-lag]
        for target, a, lag_a, b, lag_b, size in self.factors:
            following[target] += size * past[-lag_a, a] * past[-lag_b, b]
        return following


@dataclass(frozen=True, eq=False)
class Made:
    """A series of such a system, as `simulate` gives one."""

    values: Array  # (row, variable)
    graph: LaggedGraph
    noise_sd: Array
    systems: tuple[Products, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """Their names."""
        return self.graph.variables


def products(rows: int, seed: int, nodes: int, max_lag: int) -> Made:
    """One system and a series of it."""
    rng = np.random.default_rng([seed, 5])
    half, names = nodes // 2, [f"X{i}" for i in range(nodes)]
    weights = np.zeros((max_lag, nodes, nodes))
    weights[0, range(nodes), range(nodes)] = rng.uniform(*OWN, nodes)
    for target in range(half):
        source = (target + rng.integers(1, half)) % half
        weights[rng.integers(max_lag), target, source] = _size(LINK, rng)
    factors = []
    for target in range(half, nodes):
        a, b = rng.choice(half, 2, replace=False).tolist()
        one, other = rng.integers(1, max_lag + 1, 2).tolist()
        factors.append((target, a, one, b, other, _size(PRODUCT, rng)))
    system = Products(weights, tuple(factors))
    values = np.zeros((rows + BURN_IN, nodes))
    for row in range(max_lag, len(values)):
        values[row] = system.step(values[row - max_lag : row], rng.normal(size=nodes))
    edges = [(names[s], names[t], int(lag) + 1) for lag, t, s in np.argwhere(weights)]
    for target, a, one, b, other, _ in factors:
        edges += [(names[a], names[target], one), (names[b], names[target], other)]
    graph = LaggedGraph.from_edges(names, max_lag, edges)
    return Made(values[BURN_IN:], graph, np.ones(nodes), (system,))


def _size(bounds: tuple[float, float], rng: Rng) -> float:
    return float(rng.uniform(*bounds) * rng.choice([-1, 1]))

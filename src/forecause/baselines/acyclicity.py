"""Acyclic effects at lag 0 as a smooth constraint (Zheng et al. 2018), met by dual ascent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from forecause.baselines.design import FloatArray

MAX_ASCENTS = 100
TOLERANCE = 1e-8  # of the constraint
MAX_WEIGHT = 1e16  # of the quadratic penalty
PROGRESS = 0.25  # the constraint must shrink to this share, or its weight grows tenfold


def cycle_strength(squared: FloatArray) -> tuple[float, FloatArray]:
    """h(S) = tr(exp(S)) - d of non-negative S (source, target), and its gradient.

    It is zero exactly when the graph of the nonzero entries has no cycle.
    """
    from scipy.linalg import expm

    power = expm(squared)
    return float(np.trace(power) - len(squared)), np.asarray(power.T)


def dual_ascent(
    start: FloatArray, minimise: Callable[[FloatArray, float, float], tuple[FloatArray, float]]
) -> FloatArray:
    """The augmented Lagrangian: raise the price of cycles until there are none.

    `minimise(start, weight, price)` minimises the loss + weight/2 h^2 + price h and returns the
    solution with its h.
    """
    solution, strength = start, np.inf
    weight, price = 1.0, 0.0
    for _ in range(MAX_ASCENTS):
        while weight < MAX_WEIGHT:
            solution, found = minimise(solution, weight, price)
            if found <= PROGRESS * strength:
                break
            weight *= 10
        strength = found
        price += weight * strength
        if strength <= TOLERANCE or weight >= MAX_WEIGHT:
            break
    return solution


def without_cycles(weights: FloatArray) -> FloatArray:
    """Weights (source, target) without the weakest ones, as few as leave no cycle.

    Dual ascent ends within a tolerance, so traces of cycles remain.
    """
    sizes = np.abs(weights)
    cuts = np.unique(np.append(sizes, 0.0))  # keeping weights above a cut; higher cuts keep fewer
    low, high = 0, len(cuts) - 1
    while low < high:
        middle = (low + high) // 2
        if has_cycle(sizes > cuts[middle]):
            low = middle + 1
        else:
            high = middle
    return np.where(sizes > cuts[low], weights, 0.0)


def has_cycle(edges: npt.NDArray[np.bool_]) -> bool:
    """Whether some walk along the edges (source, target) has as many steps as there are nodes."""
    walks = edges.astype(np.float64)
    for _ in range(len(edges).bit_length()):
        walks = np.minimum(walks @ walks, 1.0)
    return bool(walks.any())

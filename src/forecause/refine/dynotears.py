"""DYNOTEARS (Pamfil et al. 2020): a sparse linear system with an acyclic part at lag 0.

That there is no cycle is a smooth constraint (Zheng et al. 2018), met by dual ascent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forecause.common.arrays import Array, Mask
from forecause.config.thresholds import thresholds
from forecause.data import Panel
from forecause.errors import InputError
from forecause.graph import LaggedGraph
from forecause.refine.candidates import LaggedProducts
from forecause.refine.links import Links, graph_of, has_cycle

# Tight, so that weights that should be zero reach their bound.
OPTIONS: Any = {"ftol": 1e-12, "gtol": 1e-6, "maxfun": 100_000, "maxiter": 100_000}

# Numerics:
MAX_ASCENTS = 100
TOLERANCE = 1e-8  # of the constraint that nothing drives itself in a circle
MAX_WEIGHT = 1e16  # of the quadratic penalty
PROGRESS = 0.25  # the constraint must shrink to this share, or its weight grows tenfold


def graph_of_links(panel: Panel, max_lag: int, links: Links) -> LaggedGraph:
    """The nonzero weights among these links, lag 0 with them."""
    if panel.labels:
        raise InputError(
            "DYNOTEARS knows numbers alone, and the table holds labels; take the method pcmci+."
        )
    weights = fit_links(panel, max_lag, links)
    chosen = links.completed(np.abs(weights), weights != 0)
    sign = np.sign(weights).astype(int)
    return graph_of(panel, np.abs(weights), chosen, first_lag=0, sign=sign)


def fit_links(panel: Panel, max_lag: int, links: Links) -> Array:
    """Weights (target, source, lag 0 ..) of these links."""
    free = links.allowed.transpose(2, 1, 0)
    penalty = thresholds().hidden.dynotears_penalty
    return fit_weights(LaggedProducts.of(panel, max_lag), penalty, penalty, free).transpose(2, 1, 0)


def fit_weights(
    moments: LaggedProducts,
    penalty_now: float,
    penalty_lagged: float,
    free: Mask | None = None,
) -> Array:
    """Weights (lag 0 .., source, target) that minimise, without cycles at lag 0,

    1/(2n) |X - X W - Y A|^2 + penalty_now |W|_1 + penalty_lagged |A|_1.

    Weights that are not `free` (the same shape) are zero.
    """
    d, lags = moments.variables, moments.max_lag + 1
    covariance = moments.cross / moments.windows
    penalty = np.full((lags, d, d), penalty_lagged)
    penalty[0] = penalty_now
    free = np.ones((lags, d, d), dtype=bool) if free is None else free.copy()
    free[0][np.diag_indices(d)] = False
    identity = np.eye(lags * d, d)  # X = [X Y] identity, so the residual is [X Y](identity - B)
    parts = np.tile(penalty[free], 2)  # weights are split into positive and negative parts

    def joined(split: Array) -> Array:
        weights = np.zeros((lags, d, d))
        positive, negative = np.split(split, 2)
        weights[free] = positive - negative
        return weights

    def minimise(start: Array, weight: float, price: float) -> tuple[Array, float]:
        from scipy.optimize import Bounds, minimize

        def objective(split: Array) -> tuple[float, Array]:
            weights = joined(split)
            error = weights.reshape(-1, d) - identity
            slope = covariance @ error
            h, h_slope = cycle_strength(weights[0] ** 2)
            value = 0.5 * (error * slope).sum() + 0.5 * weight * h * h + price * h
            slope[:d] += (weight * h + price) * h_slope * 2 * weights[0]
            free_slope = slope.reshape(lags, d, d)[free]
            return value + parts @ split, np.concatenate([free_slope, -free_slope]) + parts

        solution = minimize(
            objective, start, (), "L-BFGS-B", jac=True, bounds=Bounds(0, np.inf), options=OPTIONS
        ).x
        return solution, cycle_strength(joined(solution)[0] ** 2)[0]

    weights = joined(dual_ascent(np.zeros(len(parts)), minimise))
    weights[0] = without_cycles(weights[0])
    return weights


def cycle_strength(squared: Array) -> tuple[float, Array]:
    """h(S) = tr(exp(S)) - d of non-negative S (source, target), and its gradient.

    It is zero exactly when the graph of the nonzero entries has no cycle.
    """
    from scipy.linalg import expm

    power = expm(squared)
    return float(np.trace(power) - len(squared)), np.asarray(power.T)


def dual_ascent(
    start: Array, minimise: Callable[[Array, float, float], tuple[Array, float]]
) -> Array:
    """The augmented Lagrangian: raise the price of cycles until there are none.

    `minimise(start, weight, price)` minimises the loss + weight/2 h^2 + price h and returns the
    solution with its h.
    """
    solution, strength = start, np.inf
    weight, price = 1.0, 0.0
    for _ in range(MAX_ASCENTS):
        while weight < MAX_WEIGHT:
            solution, now = minimise(solution, weight, price)
            if now <= PROGRESS * strength:
                break
            weight *= 10
        strength = now
        price += weight * strength
        if strength <= TOLERANCE or weight >= MAX_WEIGHT:
            break
    return solution


def without_cycles(weights: Array) -> Array:
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

"""DYNOTEARS (Pamfil et al. 2020): a sparse linear system with an acyclic part at lag 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.baselines.acyclicity import cycle_strength, dual_ascent, without_cycles
from forecause.baselines.answer import graph_of
from forecause.baselines.design import FloatArray, Moments
from forecause.baselines.links import Links
from forecause.data import Panel
from forecause.edges.knowledge import Knowledge
from forecause.graph import LaggedGraph

PENALTY = 0.1  # the published default for both parts
# Tight, so that weights that should be zero reach their bound.
OPTIONS: Any = {"ftol": 1e-12, "gtol": 1e-6, "maxfun": 100_000, "maxiter": 100_000}
NOTHING = Knowledge()


def dynotears(
    panel: Panel,
    max_lag: int,
    seed: int,
    knowledge: Knowledge = NOTHING,
    *,
    instantaneous: bool = False,
) -> LaggedGraph:
    """The nonzero lagged weights at the published penalties and threshold (0), scored by size.

    Weights refer to standardised variables. `instantaneous` adds the edges at lag 0. The start
    is zero: the seed is not used.
    """
    links = Links.of(panel, max_lag, knowledge)
    if instantaneous:
        return graph_of_links(panel, max_lag, links)
    weights = fit_links(panel, max_lag, links)[:, :, 1:]
    lagged = Links.of(panel, max_lag, knowledge, first_lag=1)
    chosen = lagged.completed(np.abs(weights), weights != 0)
    return graph_of(panel, np.abs(weights), chosen)


def graph_of_links(panel: Panel, max_lag: int, links: Links) -> LaggedGraph:
    """The nonzero weights among these links, lag 0 with them."""
    weights = fit_links(panel, max_lag, links)
    chosen = links.completed(np.abs(weights), weights != 0)
    sign = np.sign(weights).astype(int)
    return graph_of(panel, np.abs(weights), chosen, first_lag=0, sign=sign)


def fit_links(panel: Panel, max_lag: int, links: Links) -> FloatArray:
    """Weights (target, source, lag 0 ..) of these links."""
    free = links.allowed.transpose(2, 1, 0)
    return fit_weights(Moments.of(panel, max_lag), PENALTY, PENALTY, free).transpose(2, 1, 0)


def fit_weights(
    moments: Moments,
    penalty_now: float,
    penalty_lagged: float,
    free: npt.NDArray[np.bool_] | None = None,
) -> FloatArray:
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

    def joined(split: FloatArray) -> FloatArray:
        weights = np.zeros((lags, d, d))
        positive, negative = np.split(split, 2)
        weights[free] = positive - negative
        return weights

    def minimise(start: FloatArray, weight: float, price: float) -> tuple[FloatArray, float]:
        from scipy.optimize import Bounds, minimize

        def objective(split: FloatArray) -> tuple[float, FloatArray]:
            weights = joined(split)
            error = weights.reshape(-1, d) - identity
            slope = covariance @ error
            h, h_slope = cycle_strength(weights[0] ** 2)
            value = 0.5 * (error * slope).sum() + 0.5 * weight * h * h + price * h
            slope[:d] += (weight * h + price) * h_slope * 2 * weights[0]
            free_slope = slope.reshape(lags, d, d)[free]
            return value + parts @ split, np.concatenate([free_slope, -free_slope]) + parts

        found = minimize(
            objective, start, (), "L-BFGS-B", jac=True, bounds=Bounds(0, np.inf), options=OPTIONS
        ).x
        return found, cycle_strength(joined(found)[0] ** 2)[0]

    weights = joined(dual_ascent(np.zeros(len(parts)), minimise))
    weights[0] = without_cycles(weights[0])
    return weights

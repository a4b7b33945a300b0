"""False discovery control of links: self-links and links between variables apart."""

from __future__ import annotations

import numpy as np

from forecause.arrays import Array, Mask
from forecause.config.thresholds import thresholds
from forecause.regression.p_values import adjusted_p_values


def link_q_values(p_values: Array, weights: Array | None = None) -> Array:
    """Adjusted p-values (target, source, ...), of self-links and of links between variables apart.

    Self-links are many and easy to find; adjusted together with them, more than the accepted share
    of the links between variables would be false. Benjamini-Hochberg on p-values over `weights` of
    mean 1 keeps its error rate whatever the weights (Genovese, Roeder and Wasserman 2006), and
    finds more if they lean towards true edges.
    """
    adjusted = np.empty(p_values.shape)
    own = np.eye(len(p_values), dtype=bool)  # (target, source)
    for kind in (own, ~own):
        given = p_values[kind]
        if weights is not None:
            given = given / _of_mean_one(weights[kind], np.isfinite(given))
        adjusted[kind] = adjusted_p_values(given)
    return adjusted


def own_past_weights(shape: tuple[int, ...]) -> Array:
    """Weights (target, source, lag) that favour a variable's own last value over its older ones."""
    weights = np.ones(shape)
    own = np.arange(shape[0])
    weights[own, own, 0] = thresholds().edges.own_past_weight
    return weights


def _of_mean_one(weights: Array, tested: Mask) -> Array:
    return weights / weights[tested].mean() if tested.any() else weights

"""Which candidates become edges: the rules that turn scores into a graph."""

from __future__ import annotations

import numpy as np
import xarray as xr

from forecause.common.arrays import Array
from forecause.config.thresholds import thresholds
from forecause.errors import InputError

# Numerics:
LEAST_KEPT = 1e-6  # of the relevance, so that what chance may explain is still ranked by it


def top_k(scores: xr.DataArray, k: int) -> xr.DataArray:
    """The k highest-scoring candidates of every target."""
    check_k(k, scores[0].size)
    flat = scores.values.reshape(len(scores), -1)
    order = np.argsort(-flat, axis=1, kind="stable")[:, :k]
    chosen = np.zeros(flat.shape, dtype=bool)
    np.put_along_axis(chosen, order, True, axis=1)
    return scores.copy(data=chosen.reshape(scores.shape))


def global_top_k(scores: xr.DataArray, k: int) -> xr.DataArray:
    """The k highest-scoring candidates of all."""
    check_k(k, scores.size)
    chosen = np.zeros(scores.size, dtype=bool)
    chosen[np.argsort(-scores.values, axis=None, kind="stable")[:k]] = True
    return scores.copy(data=chosen.reshape(scores.shape))


def uniform(scores: xr.DataArray) -> xr.DataArray:
    """The paper's uniform threshold: a share of the target's total above 1 / candidates."""
    return target_shares(scores) > 1 / scores[0].size


def false_discovery(
    scores: xr.DataArray,
    q_values: xr.DataArray,
    fdr: float,
    least_share: float | xr.DataArray = 0.0,
) -> xr.DataArray:
    """Candidates whose q-value is at most `fdr` and that matter to the forecast.

    A candidate that explains less than `least_share` of what moves its target is left out even if
    it is significant: with enough rows every small misfit of the tested model is. Not so if it has
    much of what the other variables have together: where a store hardly changes from row to row,
    its own past leaves next to nothing open, and a cause of that is a cause.
    """
    if not 0 < fdr < 1:
        raise InputError(f"The false discovery rate must lie between 0 and 1, found {fdr}.")
    shares, bounds = target_shares(scores), thresholds().edges
    others = scores["source"] != scores["target"]
    is_store = shares.where(~others, 0.0).sum(["source", "lag"]) > bounds.nearly_known
    beside_own_past = target_shares(scores.where(others, 0.0))
    fills_it = is_store & (beside_own_past >= bounds.least_share_beside_own)
    return (q_values <= fdr) & ((shares >= least_share) | fills_it)


def accepted_share(q_values: Array, fdr: float, if_weak: float) -> float:
    """The accepted share of false edges: `fdr`, or `if_weak` where the links found are weak ones.

    Where many of the links between variables that pass at `fdr` would not pass a far stricter
    level, many true ones just fail to. Where nothing passes, the level stays: a table without links
    gets some no more often than `fdr` says. What lies beyond `fdr` has no say in it, so that the
    choice itself does not draw false edges in.
    """
    between = q_values[~np.eye(len(q_values), dtype=bool)]
    passing, firm = (between <= fdr).sum(), (between <= thresholds().edges.firm_q).sum()
    return if_weak if firm < thresholds().edges.firm_share * passing else fdr


def discounted(relevance: xr.DataArray, p_values: xr.DataArray) -> xr.DataArray:
    """Relevance x (min(-log10 p, clear_powers) / clear_powers)^discount.

    Relevance alone ranks an input high that a flexible forecaster only wiggles with; a p-value
    alone does not tell a strong cause from a faint one (`forecause bench ranking`).
    """
    clear, discount = thresholds().edges.clear_powers, thresholds().edges.discount
    powers = -np.log10(p_values.fillna(1.0).clip(10.0**-clear, 1.0))
    return relevance * np.maximum((powers / clear) ** discount, LEAST_KEPT)


def target_shares(scores: xr.DataArray) -> xr.DataArray:
    """Scores as shares of their target's total; what is below zero counts as nothing."""
    positive = scores.clip(min=0)
    total = positive.sum(["source", "lag"])
    return positive / total.where(total > 0, 1.0)


def check_k(k: int, candidates: int) -> None:
    """Refuse more edges than there are candidates."""
    if not 1 <= k <= candidates:
        raise InputError(f"k must lie between 1 and {candidates} (the candidates), found {k}.")

"""What a stored relevance is worth: rules that choose edges, and metrics of the choice.

Arrays are (target, source, lag). Nothing here is fitted, so that every table can be made again from
the store in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rule = Callable[[Array], Mask]

K = 3  # the paper's edges per target


def top_k(scores: Array, k: int = K) -> Mask:
    """The k largest of every target."""
    flat = scores.reshape(len(scores), -1)
    chosen = np.zeros(flat.shape, dtype=bool)
    np.put_along_axis(chosen, np.argsort(-flat, axis=1, kind="stable")[:, :k], True, axis=1)
    return chosen.reshape(scores.shape)


def top_overall(scores: Array, k: int) -> Mask:
    """The k largest of the whole graph."""
    chosen = np.zeros(scores.size, dtype=bool)
    chosen[np.argsort(-scores, axis=None, kind="stable")[:k]] = True
    return chosen.reshape(scores.shape)


def threshold(scores: Array) -> Mask:
    """More than an even share of the target's relevance: the paper's uniform threshold."""
    return of_target(scores) > 1 / scores[0].size


def of_target(scores: Array) -> Array:
    """Every target's relevance, summing to 1."""
    total = scores.sum((1, 2), keepdims=True)
    return np.asarray(scores / np.where(total > 0, total, 1))


def every_lag(chosen: Mask) -> Mask:
    """A linked pair at all lags, as the paper marks the pairs of its Granger tests."""
    return np.broadcast_to(chosen.any(2, keepdims=True), chosen.shape)


def metrics(chosen: Mask, true: Mask) -> dict[str, float]:
    """Precision, recall, F1 and SHD (false and missed edges) of a choice."""
    hits, found, wanted = int((chosen & true).sum()), int(chosen.sum()), int(true.sum())
    return {
        "precision": hits / max(found, 1),
        "recall": hits / max(wanted, 1),
        "f1": 2 * hits / max(found + wanted, 1),
        "shd": found + wanted - 2 * hits,
    }


def best_f1(true: Mask, k: int = K) -> float:
    """The most that k edges for every target can have."""
    causes = true.sum((1, 2))
    return float(2 * np.minimum(causes, k).sum() / (k * len(causes) + causes.sum()))


def auroc(scores: Array, true: Mask) -> float:
    """That a cause has more relevance than a candidate that is none, over the whole graph."""
    ranks, causes = rankdata(scores), int(true.sum())
    others = true.size - causes
    above = ranks.reshape(true.shape)[true].sum() - causes * (causes + 1) / 2
    return float(above / (causes * others))


def own_last_share(scores: Array, true: Mask) -> float:
    """The share of relevance that the own last value has of targets whose cause it is not."""
    own = np.arange(len(scores))
    innocent = ~true[own, own, 0]
    if not innocent.any():
        return float("nan")
    return float(of_target(scores)[own, own, 0][innocent].mean())


def agreement(scores: Array, effects: Array) -> float:
    """The rank correlation with the effects of interventions over all candidates."""
    ranks = [rankdata(values.ravel()) for values in (scores, effects)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def mean_metrics(pairs: Iterable[tuple[Mask, Mask]]) -> dict[str, float]:
    """Metrics averaged over (chosen, true) of segments."""
    each = [metrics(chosen, true) for chosen, true in pairs]
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def overall(k: int) -> Rule:
    """The rule of k edges in the whole graph."""
    return partial(top_overall, k=k)


def per_target(k: int) -> Rule:
    """The rule of k edges for every target."""
    return partial(top_k, k=k)

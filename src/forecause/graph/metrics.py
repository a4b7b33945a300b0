"""Metrics: how well a graph agrees with the truth.

Every metric is computed on four views: the lagged graph and its summary (an edge at any lag),
each with and without self-links. Axes are (target, source, lag) or (target, source).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from forecause.common.bounded import check_candidates
from forecause.errors import InputError
from forecause.graph.axes import AXES
from forecause.graph.edge_table import CAUSAL, WITHOUT_DIRECTION, marks_of
from forecause.graph.lagged import LaggedGraph

Scores = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Metrics = dict[str, Any]


@dataclass(frozen=True, eq=False)
class _View:
    """Two graphs over the same candidates; arrays (target, source, lag) or (target, source)."""

    chosen: Mask
    true: Mask
    scores: Scores | None
    candidates: Mask

    def summary(self) -> _View:
        """An edge at any lag; its score is the largest over the lags."""
        possible = self.candidates
        return _View(
            chosen=np.any(self.chosen & possible, axis=2),
            true=np.any(self.true & possible, axis=2),
            scores=None if self.scores is None else np.where(possible, self.scores, -np.inf).max(2),
            candidates=np.any(possible, axis=2),
        )

    def without_self(self) -> _View:
        """No candidate on the diagonal."""
        others = ~np.eye(len(self.chosen), dtype=bool)
        apart = others if self.candidates.ndim == 2 else others[:, :, None]
        return replace(self, candidates=self.candidates & apart)


def score_graph(predicted: LaggedGraph, truth: LaggedGraph) -> Metrics:
    """Every metric of `predicted` against `truth`, as plain numbers ready for JSON.

    The keys lagged, summary, lagged_no_self and summary_no_self hold precision, recall, f1, shd
    (false plus missing edges), auroc, average_precision, auprc_trapezoid (area under straight
    lines from recall 0, precision 1) and counts, pooled over targets; `null` holds what guessing
    every candidate with the truth's density scores in each view.

    Only causal edges count (`LaggedGraph.causal`): a lag-0 edge without a direction is one that
    was not found, and no false one either. If there are lag-0 edges, `adjacency` has the same
    metrics for the lagged edges and the unordered lag-0 pairs, with or without a direction.

    Variables are matched by name and the larger lag window counts. Lag 0 takes part only if one
    of the graphs has such an edge. Candidates are ranked by `predicted.scores`, or else by the
    scores of its edges, all others below; ranking metrics are None without scores, or when all
    or none of the candidates are true.

    lag_accuracy looks at the (source, target) pairs found in both graphs: the share for which the
    strongest predicted lag is a true one; lag_set_accuracy, for which all lags agree.

    Examples
    --------
    >>> import forecause as fc
    >>> truth = fc.LaggedGraph.from_edges(["a", "b"], 1, [("a", "b", 1)])
    >>> fc.score_graph(truth, truth)["lagged"]["f1"]
    1.0
    """
    lagged = _aligned(predicted.causal, truth.causal, _has_instantaneous(predicted, truth))
    views = _views(lagged)
    if _has_instantaneous(predicted, truth):
        views["adjacency"] = _adjacency(predicted, truth)
    result: Metrics = {name: _metrics(view) for name, view in views.items()}
    result["lagged"] |= _lag_metrics(lagged)
    result["lagged_no_self"] |= _lag_metrics(views["lagged_no_self"])
    result["null"] = {name: _null_metrics(view) for name, view in views.items()}
    return result


def by_domain(predicted: LaggedGraph, truth: LaggedGraph) -> Metrics:
    """The mean over domains of `score_graph`, each domain's graph against its own truth.

    A metric that is None in some domains is averaged over the others.
    """
    if not truth.domains or set(predicted.domains) != set(truth.domains):
        raise InputError(
            f"Both graphs need the same domains; found {sorted(predicted.domains)} predicted "
            f"and {sorted(truth.domains)} true."
        )
    return _mean(
        [score_graph(predicted.domains[name], truth.domains[name]) for name in truth.domains]
    )


def oracle_f1(predicted_scores: xr.DataArray, truth: LaggedGraph) -> float | None:
    """The F1 of the lagged graph at the best threshold on scores (target, source, lag).

    It uses the truth to choose the threshold, so it tells about the ranking alone.
    """
    from sklearn.metrics import precision_recall_curve

    ranked = LaggedGraph.from_scores(predicted_scores, np.zeros(predicted_scores.shape, dtype=bool))
    view = _aligned(ranked, truth.causal, _has_instantaneous(ranked, truth))
    if view.scores is None or not view.true[view.candidates].any():
        return None
    precision, recall, _ = precision_recall_curve(
        view.true[view.candidates], _ranks(view.scores[view.candidates])
    )
    return float((2 * precision * recall / np.maximum(precision + recall, 1e-300)).max())


def _has_instantaneous(*graphs: LaggedGraph) -> bool:
    return any((graph.edges["lag"] == 0).any() for graph in graphs)


def _adjacency(predicted: LaggedGraph, truth: LaggedGraph) -> _View:
    """Lagged edges, and lag-0 pairs in whichever order they are given; confounding is none."""
    view = _aligned(_with_undirected(predicted), _with_undirected(truth), True)
    candidates = view.candidates.copy()
    candidates[:, :, 0] = np.tri(len(candidates), k=-1, dtype=bool)  # one place for each pair
    chosen, true = (_either_way(mask) for mask in (view.chosen, view.true))
    scores = None if view.scores is None else _either_way(view.scores)
    return _View(chosen, true, scores, candidates)


def _with_undirected(graph: LaggedGraph) -> LaggedGraph:
    kept = marks_of(graph.edges).isin((*CAUSAL, *WITHOUT_DIRECTION))
    return replace(graph, edges=graph.edges[kept], domains={})


def _either_way(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The larger of the two entries of each lag-0 pair, at both of its places."""
    joined = values.copy()
    joined[:, :, 0] = np.maximum(values[:, :, 0], values[:, :, 0].T)
    return joined


def _aligned(predicted: LaggedGraph, truth: LaggedGraph, has_instantaneous: bool) -> _View:
    """Both graphs over the truth's variables and the larger lag window."""
    _check_variables(predicted.variables, truth.variables)
    check_candidates(len(truth.variables), max(predicted.max_lag, truth.max_lag) + 1)
    lags = np.arange(0 if has_instantaneous else 1, max(predicted.max_lag, truth.max_lag) + 1)
    chosen, true = (_mask(graph, truth.variables, lags) for graph in (predicted, truth))
    candidates = np.ones(true.shape, dtype=bool)
    if has_instantaneous:
        candidates[:, :, 0] = ~np.eye(len(true), dtype=bool)
    return _View(chosen, true, _scores(predicted, truth.variables, lags), candidates)


def _check_variables(predicted: tuple[str, ...], truth: tuple[str, ...]) -> None:
    if set(predicted) != set(truth):
        only_predicted = sorted(set(predicted) - set(truth))
        only_true = sorted(set(truth) - set(predicted))
        raise InputError(
            "The two graphs must have the same variables; only the predicted one has "
            f"{only_predicted}, only the true one has {only_true}."
        )


def _places(
    graph: LaggedGraph, variables: tuple[str, ...], lags: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], ...]:
    """Where the graph's edges lie in an array (target, source, lag)."""
    place = {name: i for i, name in enumerate(variables)}
    targets, sources = (graph.edges[end].map(place).to_numpy(np.int64) for end in AXES[:2])
    return targets, sources, graph.edges["lag"].to_numpy(np.int64) - int(lags[0])


def _mask(graph: LaggedGraph, variables: tuple[str, ...], lags: npt.NDArray[np.int64]) -> Mask:
    mask = np.zeros((len(variables), len(variables), len(lags)), dtype=bool)
    mask[_places(graph, variables, lags)] = True
    return mask


def _scores(
    graph: LaggedGraph, variables: tuple[str, ...], lags: npt.NDArray[np.int64]
) -> Scores | None:
    """Scores of all candidates; one that has none takes its edge's score, or ranks lowest."""
    of_edges = graph.edges["score"].to_numpy(np.float64)
    if graph.scores is None and (len(of_edges) == 0 or np.isnan(of_edges).any()):
        return None
    scores = np.full((len(variables), len(variables), len(lags)), np.nan)
    scores[_places(graph, variables, lags)] = of_edges
    if graph.scores is not None:
        named = graph.scores.reindex(target=list(variables), source=list(variables), lag=lags)
        scores = np.where(np.isnan(named.values), scores, named.values)
    known = scores[~np.isnan(scores)]
    return np.where(np.isnan(scores), known.min(initial=0.0), scores)


def _views(lagged: _View) -> dict[str, _View]:
    summary = lagged.summary()
    return {
        "lagged": lagged,
        "summary": summary,
        "lagged_no_self": lagged.without_self(),
        "summary_no_self": summary.without_self(),
    }


def _metrics(view: _View) -> Metrics:
    chosen, true = view.chosen[view.candidates], view.true[view.candidates]
    hits, false, missed = (
        int((chosen & true).sum()),
        int((chosen & ~true).sum()),
        int((~chosen & true).sum()),
    )
    empty = 1.0 if hits + false + missed == 0 else 0.0  # two empty graphs agree perfectly
    scores = None if view.scores is None else view.scores[view.candidates]
    return {
        "precision": hits / (hits + false) if hits + false else empty,
        "recall": hits / (hits + missed) if hits + missed else empty,
        "fdr": false / (hits + false) if hits + false else 0.0,  # false among the chosen
        "f1": 2 * hits / (2 * hits + false + missed) if hits + false + missed else empty,
        "shd": false + missed,
        **_ranking_metrics(true, scores),
        "true_edges": hits + missed,
        "predicted_edges": hits + false,
        "candidates": len(true),
    }


def _ranking_metrics(true: Mask, scores: Scores | None) -> Metrics:
    from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score

    if scores is None or true.all() or not true.any():
        return {"auroc": None, "average_precision": None, "auprc_trapezoid": None}
    ranks = _ranks(scores)
    precision, recall, _ = precision_recall_curve(true, ranks)
    return {
        "auroc": float(roc_auc_score(true, ranks)),
        "average_precision": float(average_precision_score(true, ranks)),
        "auprc_trapezoid": float(auc(recall, precision)),
    }


def _ranks(scores: Scores) -> npt.NDArray[np.int64]:
    """The place of each score among the distinct ones, so that infinite scores can be ranked."""
    return np.unique(scores, return_inverse=True)[1]


def _lag_metrics(view: _View) -> Metrics:
    """How often the lag is right, among the pairs found in both graphs."""
    chosen, true = view.chosen & view.candidates, view.true & view.candidates
    in_both = chosen.any(2) & true.any(2)
    if not in_both.any():
        return {"lag_accuracy": None, "lag_set_accuracy": None}
    strength = np.zeros(chosen.shape) if view.scores is None else view.scores
    strongest = np.where(chosen, strength, -np.inf)[in_both].argmax(1)
    right = true[in_both][np.arange(len(strongest)), strongest]
    return {
        "lag_accuracy": float(right.mean()),
        "lag_set_accuracy": float((chosen[in_both] == true[in_both]).all(1).mean()),
    }


def _null_metrics(view: _View) -> Metrics:
    """Expected scores of guessing each candidate with probability d, the truth's density.

    Precision and recall are then both d, so F1 is d too.
    """
    true = view.true[view.candidates]
    density = float(true.mean()) if len(true) else 0.0
    both = 0 < density < 1
    return {
        "precision": density,
        "recall": density,
        "f1": density,
        "shd": 2 * len(true) * density * (1 - density),
        "auroc": 0.5 if both else None,
        "average_precision": density if both else None,
    }


def _mean(results: list[Metrics]) -> Metrics:
    """Average nested metrics of the same layout, None left out."""
    mean: Metrics = {}
    for key, first in results[0].items():
        values = [result[key] for result in results]
        if isinstance(first, Mapping):
            mean[key] = _mean(values)
        else:
            known = [value for value in values if value is not None]
            mean[key] = float(np.mean(known)) if known else None
    return mean

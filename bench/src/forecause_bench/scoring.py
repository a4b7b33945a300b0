"""Scoring: what is kept of a graph once the truth is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.edges.select import global_top_k
from forecause.graph.lagged import LaggedGraph
from forecause.graph.metrics import by_domain, oracle_f1, score_graph

K = 3  # edges per target of the paper's rule
FEWEST_FALSE, LARGEST_FALSE_SHARE = 2, 0.15  # from which on a promise is broken
KEY = ["source", "target", "lag"]
SUMMARY_VIEWS = ("summary", "summary_no_self")


def score_answer(predicted: LaggedGraph, truth: LaggedGraph) -> dict[str, Any]:
    """Metrics of the graph as it is, under `oracle` those that use the truth to choose edges.

    `false_cross` is the share of false links between variables among all links, also those of a
    variable to itself.
    """
    metrics = score_against(predicted, truth)
    every, between = metrics["lagged"], metrics["lagged_no_self"]
    false = between["fdr"] * between["predicted_edges"]
    every["false_cross"] = false / max(every["predicted_edges"], 1)
    every |= coverage(predicted, truth) | reachable(predicted, truth)
    every |= false_links(predicted, truth)
    return {"metrics": metrics, "oracle": oracle_scores(predicted, truth)}


def false_links(predicted: LaggedGraph, truth: LaggedGraph) -> dict[str, float]:
    """True and false links between variables, the firm ones, and whether false ones are too many.

    A promise is broken by at least two false links that are more than 15 % of those drawn.
    """
    found = predicted.edges[predicted.edges["source"] != predicted.edges["target"]]
    true = {tuple(edge) for edge in truth.edges[KEY].itertuples(index=False)}
    edges = [tuple(edge) for edge in found[KEY].itertuples(index=False)]
    is_false = np.array([edge not in true for edge in edges], dtype=bool)
    false = int(is_false.sum())
    broken = false >= FEWEST_FALSE and false > LARGEST_FALSE_SHARE * len(found)
    counted = {"false_links": float(false), "broken": float(broken)}
    counted["true_links"] = float(len(found) - false)
    if "grade" not in found:
        return counted
    firm = found["grade"].to_numpy() == "firm"
    graded = {"firm_links": float(firm.sum()), "firm_false": float((firm & is_false).sum())}
    return {**counted, **graded}


def coverage(predicted: LaggedGraph, truth: LaggedGraph) -> dict[str, float]:
    """The share of the true edges found whose interval holds the true change; and its width."""
    if "change" not in truth.edges or "change_low" not in predicted.edges:
        return {}
    both = predicted.edges.merge(truth.edges[[*KEY, "change"]], on=KEY, suffixes=("", "_true"))
    if not len(both):
        return {}
    held = both["change_true"].between(both["change_low"], both["change_high"])
    width = (both["change_high"] - both["change_low"]) / both["change_true"].abs()
    return {"effect_coverage": float(held.mean()), "effect_width": float(width.median())}


def score_summary(predicted: LaggedGraph, truth: LaggedGraph) -> dict[str, Any]:
    """Metrics where only the summary graph is known; an edge's score is its largest over lags."""
    found = score_graph(replace(predicted, domains={}), truth)
    return {"metrics": {name: found[name] for name in SUMMARY_VIEWS}, "oracle": {}}


def score_against(predicted: LaggedGraph, truth: LaggedGraph) -> dict[str, Any]:
    """`score_graph`, or its mean over the segments if the truth has a graph for each.

    A method that found one graph for all rows is compared, with that graph, with every segment.
    """
    if not truth.domains:
        return score_graph(replace(predicted, domains={}), truth)
    return by_domain(_per_segment(predicted, truth), truth)


def oracle_scores(predicted: LaggedGraph, truth: LaggedGraph) -> dict[str, float | None]:
    """F1 at the best threshold, and of as many best-scored edges as the truth has."""
    segments = truth.domains or {"all": truth}
    graphs = _per_segment(predicted, truth).domains if truth.domains else {"all": predicted}
    best = [_best_threshold(graphs[name], segments[name]) for name in segments]
    true_k = [_true_k(graphs[name], segments[name]) for name in segments]
    return {"best_threshold_f1": _mean(best), "true_k_f1": _mean(true_k)}


def ceiling(truth: LaggedGraph, k: int = K) -> float:
    """The best F1 that a rule with k edges for every target can have, mean over segments."""
    graphs = list(truth.domains.values()) or [truth]
    return float(np.mean([_ceiling(graph, k) for graph in graphs]))


def _ceiling(truth: LaggedGraph, k: int) -> float:
    degrees = _in_degrees(truth)
    hits = np.minimum(degrees, k).sum()
    return float(2 * hits / (k * len(degrees) + degrees.sum()))


def reachable(predicted: LaggedGraph, truth: LaggedGraph) -> dict[str, float]:
    """The best F1 with as many edges as were found, for every target or overall.

    It is the ceiling of a rule that keeps a fixed number of edges.
    """
    found = _per_segment(predicted, truth).domains if truth.domains else {"all": predicted}
    per_target, overall = [], []
    for name, true in (truth.domains or {"all": truth}).items():
        kept, causes = _in_degrees(found[name]), _in_degrees(true)
        total = max(kept.sum() + causes.sum(), 1)
        per_target.append(2 * np.minimum(kept, causes).sum() / total)
        overall.append(2 * min(kept.sum(), causes.sum()) / total)
    return {
        "reachable_per_target": float(np.mean(per_target)),
        "reachable_overall": float(np.mean(overall)),
    }


def _in_degrees(graph: LaggedGraph) -> npt.NDArray[np.int64]:
    return np.asarray(graph.adjacency.sum(("source", "lag")).values, dtype=np.int64)


def _per_segment(predicted: LaggedGraph, truth: LaggedGraph) -> LaggedGraph:
    """The graph with one graph per segment: its own, or the pooled one for each."""
    if set(predicted.domains) == set(truth.domains):
        return predicted
    pooled = replace(predicted, domains={})
    return replace(pooled, domains=dict.fromkeys(truth.domains, pooled))


def _best_threshold(graph: LaggedGraph, truth: LaggedGraph) -> float | None:
    return None if graph.scores is None else oracle_f1(graph.scores, truth)


def _true_k(graph: LaggedGraph, truth: LaggedGraph) -> float | None:
    if graph.scores is None or not len(truth):
        return None
    chosen = global_top_k(graph.scores, min(len(truth), graph.scores.size)).values
    targets, sources, lags = np.nonzero(chosen)
    names = graph.variables
    found = {
        (names[j], names[i], int(graph.scores["lag"].values[lag]))
        for i, j, lag in zip(targets, sources, lags, strict=True)
    }
    edges = truth.edges
    true = set(zip(edges["source"], edges["target"], edges["lag"], strict=True))
    return 2 * len(found & true) / (len(found) + len(true))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None

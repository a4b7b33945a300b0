"""What is kept of a graph: per segment where the truth has segments, oracles apart."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from forecause.graph import LaggedGraph, empty_scores
from forecause.graph.metrics import score_graph
from forecause_bench.scoring import (
    ceiling,
    oracle_scores,
    reachable,
    score_against,
    score_answer,
)

NAMES = ("a", "b", "c")
FIRST = LaggedGraph.from_edges(NAMES, 2, [("a", "b", 1), ("b", "c", 2)])
SECOND = LaggedGraph.from_edges(NAMES, 2, [("a", "b", 1), ("c", "a", 1), ("c", "c", 1)])
SEGMENTED = replace(
    LaggedGraph.from_edges(NAMES, 2, [("a", "b", 1), ("b", "c", 2), ("c", "a", 1), ("c", "c", 1)]),
    domains={"segment 1": FIRST, "segment 2": SECOND},
)


def test_a_stationary_truth_is_scored_as_it_is():
    assert score_against(FIRST, SECOND) == score_graph(FIRST, SECOND)


def test_one_graph_for_all_rows_is_compared_with_every_segment():
    found = score_against(FIRST, SEGMENTED)
    # Right in the first segment; in the second 1 hit, 1 false and 2 missed edges: F1 = 2 / 5.
    assert found["lagged"]["f1"] == pytest.approx((1 + 0.4) / 2)
    assert found["lagged"]["shd"] == pytest.approx((0 + 3) / 2)


def test_a_graph_per_segment_is_compared_with_its_own_segment():
    assert score_against(SEGMENTED, SEGMENTED)["lagged"]["f1"] == 1.0
    swapped = replace(SEGMENTED, domains={"segment 1": SECOND, "segment 2": FIRST})
    assert score_against(swapped, SEGMENTED)["lagged"]["f1"] == pytest.approx(0.4)


def _ranked(order):
    """A graph without edges whose scores rank these (source, target, lag) first."""
    scores = empty_scores(NAMES, 2)
    for place, (source, target, lag) in enumerate(order):
        scores.loc[{"source": source, "target": target, "lag": lag}] = 1.0 - 0.1 * place
    return LaggedGraph.from_scores(scores, np.zeros(scores.shape, dtype=bool))


def test_oracles_use_the_ranking_alone():
    graph = _ranked([("a", "b", 1), ("a", "a", 1), ("b", "c", 2)])
    found = oracle_scores(graph, FIRST)
    assert found["best_threshold_f1"] == pytest.approx(0.8)  # all three: precision 2/3, recall 1
    assert found["true_k_f1"] == pytest.approx(0.5)  # the best two: one is right
    assert score_against(graph, FIRST)["lagged"]["f1"] == 0.0


def test_oracles_are_averaged_over_segments():
    graph = _ranked([("a", "b", 1), ("b", "c", 2)])
    alone = [oracle_scores(graph, truth)["true_k_f1"] for truth in (FIRST, SECOND)]
    assert oracle_scores(graph, SEGMENTED)["true_k_f1"] == pytest.approx(np.mean(alone))


def test_a_graph_without_scores_has_no_oracle():
    assert oracle_scores(FIRST, SECOND) == {"best_threshold_f1": None, "true_k_f1": None}


def test_the_ceiling_of_three_edges_per_target_is_that_of_the_best_such_graph():
    edges = [("a", "a", 1), ("b", "a", 1), ("c", "a", 1), ("d", "a", 1), ("a", "b", 1)]
    truth = LaggedGraph.from_edges(["a", "b", "c", "d"], 1, edges)
    best = [*edges[:3], edges[4], ("b", "b", 1), ("c", "b", 1)]
    best += [(source, target, 1) for target in "cd" for source in "abc"]
    graph = LaggedGraph.from_edges(truth.variables, 1, best)
    assert ceiling(truth) == pytest.approx(score_answer(graph, truth)["metrics"]["lagged"]["f1"])


def test_what_a_number_of_edges_can_reach_is_the_best_f1_over_all_graphs_with_it():
    variables = ["a", "b"]
    every = [(source, target, 1) for source in variables for target in variables]
    truth = LaggedGraph.from_edges(variables, 1, [every[0], every[2]])  # a <- a and a <- b
    found = LaggedGraph.from_edges(variables, 1, [every[0], every[1]])  # one edge for each target
    pairs = list(combinations(every, 2))
    scores = {
        pair: score_against(LaggedGraph.from_edges(variables, 1, pair), truth)["lagged"]["f1"]
        for pair in pairs
    }
    one_each = [pair for pair in pairs if pair[0][1] != pair[1][1]]
    assert reachable(found, truth) == {
        "reachable_per_target": pytest.approx(max(scores[pair] for pair in one_each)),
        "reachable_overall": pytest.approx(max(scores.values())),
    }

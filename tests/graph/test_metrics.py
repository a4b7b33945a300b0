import json

import numpy as np
import pytest
import sklearn.metrics as skm
from hypothesis import given, settings
from hypothesis import strategies as st

from forecause.errors import InputError
from forecause.graph import LaggedGraph, empty_scores
from forecause.graph.metrics import by_domain, oracle_f1, score_graph

VIEWS = ("lagged", "summary", "lagged_no_self", "summary_no_self")
ABC = ("A", "B", "C")
TRUTH = LaggedGraph.from_edges(ABC, 2, [("A", "B", 1), ("B", "C", 2), ("A", "A", 1)])
PREDICTED = LaggedGraph.from_edges(
    ABC, 2, [("A", "B", 1, 0.9), ("B", "C", 1, 0.8), ("A", "A", 1, 0.7), ("C", "A", 2, 0.1)]
)


def ring_truth(nodes: int) -> LaggedGraph:
    names = [f"X{i}" for i in range(nodes)]
    edges = [(names[(i + k) % nodes], names[i], 1) for i in range(nodes) for k in (-2, -1, 0, 1)]
    return LaggedGraph.from_edges(names, 1, edges)


def random_pair(seed: int) -> tuple[LaggedGraph, LaggedGraph]:
    rng = np.random.default_rng(seed)
    nodes, lags = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    scores = empty_scores([f"X{i}" for i in range(nodes)], lags)
    scores.values[:] = rng.integers(0, 8, scores.shape) / 4 - 0.5  # ties and negative scores
    predicted = LaggedGraph.from_scores(scores, rng.random(scores.shape) < 0.4)
    truth = LaggedGraph.from_scores(scores * 0 + 1, rng.random(scores.shape) < 0.3)
    return predicted, truth


def test_a_hand_computed_lagged_graph():
    found = score_graph(PREDICTED, TRUTH)["lagged"]
    assert found["precision"] == pytest.approx(2 / 4)
    assert found["recall"] == pytest.approx(2 / 3)
    assert found["f1"] == pytest.approx(4 / 7)
    assert found["shd"] == 3
    assert (found["true_edges"], found["predicted_edges"], found["candidates"]) == (3, 4, 18)
    # ranked: true .9, false .8, true .7, false .1, then one true among fourteen at 0
    assert found["average_precision"] == pytest.approx((1 + 2 / 3 + 3 / 18) / 3)
    assert found["auroc"] == pytest.approx((15 + 14 + 6.5) / 45)
    # (recall, precision): (0,1) (1/3,1) (1/3,1/2) (2/3,2/3) (2/3,1/2) (1,1/6)
    trapezoid = 1 / 3 + (1 / 2 + 2 / 3) / 2 / 3 + (1 / 2 + 1 / 6) / 2 / 3
    assert found["auprc_trapezoid"] == pytest.approx(trapezoid)


def test_a_hand_computed_summary_graph_and_lag_accuracy():
    found = score_graph(PREDICTED, TRUTH)
    assert found["summary"]["precision"] == pytest.approx(3 / 4)
    assert found["summary"]["recall"] == 1
    assert found["summary"]["shd"] == 1
    assert found["lagged"]["lag_accuracy"] == pytest.approx(2 / 3)  # B -> C has the wrong lag
    assert found["lagged_no_self"]["lag_accuracy"] == pytest.approx(1 / 2)
    assert found["lagged_no_self"]["recall"] == pytest.approx(1 / 2)
    assert found["summary_no_self"]["candidates"] == 6


def test_the_strongest_lag_decides_lag_accuracy_and_all_lags_the_set_accuracy():
    truth = LaggedGraph.from_edges(ABC, 3, [("A", "B", 1), ("A", "C", 2)])
    edges = [("A", "B", 1, 0.9), ("A", "B", 3, 0.2), ("A", "C", 1, 0.9), ("A", "C", 2, 0.3)]
    found = score_graph(LaggedGraph.from_edges(ABC, 3, edges), truth)["lagged"]
    assert found["lag_accuracy"] == 0.5
    assert found["lag_set_accuracy"] == 0.0


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_metrics_agree_with_scikit_learn(seed):
    predicted, truth = random_pair(seed)
    found = score_graph(predicted, truth)
    others = ~np.eye(len(truth.variables), dtype=bool)
    scores, chosen, true = predicted.scores, predicted.adjacency, truth.adjacency
    cases = {
        "lagged": (scores.values, chosen.values, true.values),
        "summary": (scores.max("lag").values, chosen.any("lag").values, true.any("lag").values),
    }
    for name, arrays in cases.items():
        check_against_scikit_learn(found[name], *(a.reshape(-1) for a in arrays))
        check_against_scikit_learn(
            found[f"{name}_no_self"], *(a[others].reshape(-1) for a in arrays)
        )


def check_against_scikit_learn(found, scores, chosen, true):
    assert found["shd"] == (chosen != true).sum()
    assert found["fdr"] == pytest.approx((1 - found["precision"]) if chosen.any() else 0.0)
    if true.any() and chosen.any():
        assert found["precision"] == pytest.approx(skm.precision_score(true, chosen))
        assert found["recall"] == pytest.approx(skm.recall_score(true, chosen))
        assert found["f1"] == pytest.approx(skm.f1_score(true, chosen, zero_division=0))
    if true.any() and not true.all():
        assert found["auroc"] == pytest.approx(skm.roc_auc_score(true, scores))
        assert found["average_precision"] == pytest.approx(
            skm.average_precision_score(true, scores)
        )
        precision, recall = curve_by_hand(scores, true)
        area = np.diff(recall) @ (precision[:-1] + precision[1:]) / 2
        assert found["auprc_trapezoid"] == pytest.approx(area)
    else:
        assert found["auroc"] is None
        assert found["average_precision"] is None
        assert found["auprc_trapezoid"] is None


def curve_by_hand(scores, true):
    precision, recall = [1.0], [0.0]
    for threshold in sorted(set(scores), reverse=True):
        kept = scores >= threshold
        precision.append(true[kept].mean())
        recall.append(true[kept].sum() / true.sum())
    return np.array(precision), np.array(recall)


@given(st.integers(0, 10_000))
@settings(max_examples=15)
def test_the_order_of_the_variables_does_not_matter(seed):
    predicted, truth = random_pair(seed)
    order = np.random.default_rng(seed).permutation(len(truth.variables))
    names = [truth.variables[i] for i in order]
    shuffled = LaggedGraph(
        tuple(names),
        predicted.max_lag,
        predicted.edges,
        predicted.scores.sel(target=names, source=names),
    )
    assert score_graph(shuffled, truth) == score_graph(predicted, truth)


def test_different_variables_are_refused_by_name():
    other = LaggedGraph.from_edges(("A", "B", "D"), 2, [])
    with pytest.raises(InputError, match=r"predicted one has \['D'\].*true one has \['C'\]"):
        score_graph(other, TRUTH)


def test_the_larger_lag_window_counts_and_lags_never_considered_rank_last():
    scores = empty_scores(ABC, 1) + 1.0
    scores.loc[{"target": "B", "source": "A"}] = 2.0
    short = LaggedGraph.from_scores(scores, scores > 1.5)
    found = score_graph(short, TRUTH)["lagged"]
    assert found["candidates"] == 18
    assert found["recall"] == pytest.approx(1 / 3)
    # positives: A -> B 1 is first, A -> A 1 ties with 8 - 1 others at 1, B -> C 2 is among the last
    assert found["auroc"] == pytest.approx((15 + (8 + 0.5 * 7) + 0.5 * 8) / 45)


def test_a_prediction_beyond_the_true_lags_is_a_false_edge():
    far = LaggedGraph.from_edges(ABC, 5, [("A", "B", 1), ("A", "B", 5)])
    found = score_graph(far, TRUTH)["lagged"]
    assert found["precision"] == 0.5
    assert found["candidates"] == 9 * 5


def test_edges_with_negative_scores_still_rank_above_no_edge():
    edges = [("A", "B", 1, -1.0), ("B", "C", 2, -2.0), ("A", "A", 1, -3.0), ("C", "C", 1, -4.0)]
    found = score_graph(LaggedGraph.from_edges(ABC, 2, edges), TRUTH)["lagged"]
    assert found["auroc"] == 1.0


def test_scores_of_every_candidate_are_used_before_those_of_the_edges():
    scores = empty_scores(ABC, 2)
    for source, target, lag in [("A", "B", 1), ("B", "C", 2), ("A", "A", 1)]:
        scores.loc[{"target": target, "source": source, "lag": lag}] = 5.0
    nothing_chosen = LaggedGraph.from_scores(scores, np.zeros(scores.shape, dtype=bool))
    found = score_graph(nothing_chosen, TRUTH)["lagged"]
    assert found["f1"] == 0.0
    assert found["auroc"] == found["average_precision"] == found["auprc_trapezoid"] == 1.0


def test_instantaneous_edges_take_part_only_when_a_graph_has_them():
    assert score_graph(PREDICTED, TRUTH)["lagged"]["candidates"] == 9 * 2
    with_instant = LaggedGraph.from_edges(ABC, 2, [("A", "B", 0), ("A", "B", 1)])
    found = score_graph(PREDICTED, with_instant)
    assert found["lagged"]["candidates"] == 9 * 2 + 6  # a variable is no lag-0 parent of itself
    assert found["lagged"]["recall"] == 0.5
    assert found["summary"]["recall"] == 1.0


def test_an_empty_prediction_has_no_ranking_and_no_hits():
    found = score_graph(LaggedGraph.from_edges(ABC, 2, []), TRUTH)["lagged"]
    assert (found["precision"], found["recall"], found["f1"], found["shd"]) == (0, 0, 0, 3)
    assert found["auroc"] is found["average_precision"] is found["lag_accuracy"] is None


def test_two_empty_graphs_agree_perfectly():
    empty = LaggedGraph.from_edges(ABC, 2, [])
    found = score_graph(empty, empty)["lagged"]
    assert (found["precision"], found["recall"], found["f1"], found["shd"]) == (1, 1, 1, 0)


def test_infinite_scores_are_ranked():
    edges = [("A", "B", 1, np.inf), ("B", "C", 2, 3.0), ("C", "A", 2, 1.0), ("A", "A", 1, 0.5)]
    found = score_graph(LaggedGraph.from_edges(ABC, 2, edges), TRUTH)["lagged"]
    assert found["average_precision"] == pytest.approx((1 + 1 + 3 / 4) / 3)


def test_every_metric_can_be_written_as_strict_json():
    text = json.dumps(score_graph(PREDICTED, TRUTH), allow_nan=False)
    assert set(json.loads(text)) == {*VIEWS, "null"}


def test_self_links_alone_inflate_the_summary_auroc_of_a_ring():
    truth = ring_truth(10)
    diagonal = LaggedGraph.from_edges(truth.variables, 1, [(n, n, 1) for n in truth.variables])
    found = score_graph(diagonal, truth)
    assert found["summary"]["auroc"] == pytest.approx(0.625)
    assert found["summary_no_self"]["auroc"] == pytest.approx(0.5)
    assert found["summary_no_self"]["predicted_edges"] == 0


def test_the_null_baseline_is_what_random_guessing_scores_on_average():
    truth = ring_truth(8)
    null = score_graph(truth, truth)["null"]["lagged"]
    rng = np.random.default_rng(0)
    guesses = []
    for _ in range(40):
        scores = empty_scores(truth.variables, 1) + rng.random((8, 8, 1))
        guess = LaggedGraph.from_scores(scores, scores > 1 - null["precision"])
        guesses.append(score_graph(guess, truth)["lagged"])
    assert null["precision"] == 0.5
    for name, expected in null.items():
        mean = np.mean([guess[name] for guess in guesses])
        assert mean == pytest.approx(expected, rel=0.08), name


def test_oracle_f1_is_the_best_over_all_thresholds():
    for seed in range(4):
        predicted, truth = random_pair(seed)
        best = max(
            score_graph(LaggedGraph.from_scores(predicted.scores, predicted.scores >= cut), truth)[
                "lagged"
            ]["f1"]
            for cut in np.unique(predicted.scores)
        )
        assert oracle_f1(predicted.scores, truth) == pytest.approx(best)


def test_oracle_f1_matches_variables_by_name_and_is_none_without_a_true_edge():
    scores = empty_scores(("C", "A", "B"), 2)
    for source, target, lag in [("A", "B", 1), ("B", "C", 2), ("A", "A", 1)]:
        scores.loc[{"target": target, "source": source, "lag": lag}] = 1.0
    assert oracle_f1(scores, TRUTH) == 1.0
    assert oracle_f1(scores, LaggedGraph.from_edges(ABC, 2, [])) is None


def test_by_domain_averages_each_domain_against_its_own_truth():
    empty = LaggedGraph.from_edges(ABC, 2, [])
    truth = LaggedGraph(ABC, 2, TRUTH.edges, domains={"one": TRUTH, "two": PREDICTED})
    guess = LaggedGraph(ABC, 2, TRUTH.edges, domains={"two": empty, "one": TRUTH})
    found = by_domain(guess, truth)
    assert found["lagged"]["f1"] == pytest.approx((1 + 0) / 2)
    assert found["lagged"]["shd"] == pytest.approx((0 + 4) / 2)
    assert found["lagged"]["auroc"] == 1.0  # unknown in domain two
    assert found["null"]["lagged"]["precision"] == pytest.approx((3 / 18 + 4 / 18) / 2)


def test_by_domain_refuses_graphs_with_different_domains():
    truth = LaggedGraph(ABC, 2, TRUTH.edges, domains={"one": TRUTH})
    with pytest.raises(InputError, match=r"found \[\] predicted and \['one'\] true"):
        by_domain(TRUTH, truth)
    with pytest.raises(InputError, match="same domains"):
        by_domain(TRUTH, TRUTH)


@pytest.mark.parametrize("ask", [lambda g: score_graph(g, g), lambda g: g.adjacency])
def test_a_lag_window_beyond_all_memory_is_refused(ask):
    graph = LaggedGraph.from_edges(["a", "b"], 10**9, [("a", "b", 10**9)])
    with pytest.raises(InputError, match="2 variables and 1000000001 lags"):
        ask(graph)


@pytest.mark.parametrize(("true_lag", "accuracy"), [(2, 1.0), (1, 0.0)])
def test_the_lag_that_counts_is_the_strongest_of_a_pair(true_lag, accuracy):
    truth = LaggedGraph.from_edges(ABC, 2, [("A", "B", true_lag)])
    predicted = LaggedGraph.from_edges(ABC, 2, [("A", "B", 1, 0.1), ("A", "B", 2, 0.9)])
    found = score_graph(predicted, truth)["lagged"]
    assert found["lag_accuracy"] == accuracy
    assert found["lag_set_accuracy"] == 0.0

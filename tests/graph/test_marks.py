"""Marks: which edges count as causes, in metrics and in every format."""

import pandas as pd
import pytest

from forecause.graph import LaggedGraph
from forecause.graph.edge_table import marks_of, mirrored
from forecause.graph.metrics import score_graph
from graph_readers import from_dot, from_graphml, from_networkx, from_tigramite, read_csv

ABC = ("a", "b", "c")


def marked(*edges, max_lag=2) -> LaggedGraph:
    table = pd.DataFrame(edges, columns=["source", "target", "lag", "mark"]).assign(score=1.0)
    return LaggedGraph(ABC, max_lag, table)


def edges_of(graph):
    return set(zip(graph.edges["source"], graph.edges["target"], graph.edges["lag"], strict=True))


MIXED = marked(
    ("a", "b", 1, "-->"),
    ("b", "c", 1, "o->"),
    ("a", "c", 2, "<->"),
    ("a", "b", 0, "o-o"),
    ("b", "c", 0, "x-x"),
    ("c", "c", 1, None),
)


def test_causes_and_possible_causes_are_causal_and_an_edge_without_mark_is_a_cause():
    assert edges_of(MIXED.causal) == {("a", "b", 1), ("b", "c", 1), ("c", "c", 1)}
    plain = LaggedGraph.from_edges(ABC, 2, [("a", "b", 1)])
    assert plain.causal == plain
    assert marks_of(plain.edges).tolist() == ["-->"]


def test_the_graphs_of_domains_are_cut_to_their_causes_too():
    graph = LaggedGraph(ABC, 2, MIXED.edges, None, {"winter": MIXED})
    assert len(graph.causal.domains["winter"]) == 3


@pytest.mark.parametrize(("mark", "other"), [("-->", "<--"), ("o->", "<-o"), ("<?-", "-?>")])
def test_a_link_is_mirrored_from_its_other_end(mark, other):
    assert (mirrored(mark), mirrored(other)) == (other, mark)
    assert mirrored("x-x") == "x-x"


def test_marks_survive_every_format():
    assert LaggedGraph.from_json(MIXED.to_json()) == MIXED
    assert from_networkx(MIXED.to_networkx()) == MIXED
    assert from_graphml(MIXED.to_graphml()) == MIXED
    assert from_dot(MIXED.to_dot()) == MIXED
    assert read_csv(MIXED.to_csv(), ABC, 2) == MIXED
    links = from_tigramite(MIXED.to_tigramite(), ABC)
    assert links.to_tigramite().tolist() == MIXED.to_tigramite().tolist()


def test_dot_draws_the_ends_that_a_mark_says():
    text = marked(("a", "b", 1, "<->"), ("b", "c", 0, "o-o"), ("c", "a", 1, "-->")).to_dot()
    assert 'n0 -> n1 [label="1", dir=both, arrowtail=normal, arrowhead=normal, lag=1' in text
    assert 'n1 -> n2 [label="0", dir=both, arrowtail=odot, arrowhead=odot, lag=0' in text
    assert 'n2 -> n0 [label="1", lag=1' in text


def test_confounding_is_neither_a_hit_nor_a_false_edge():
    truth = LaggedGraph.from_edges(ABC, 2, [("a", "b", 1)])
    found = score_graph(marked(("a", "b", 1, "-->"), ("b", "c", 2, "<->")), truth)["lagged"]
    assert (found["precision"], found["recall"], found["predicted_edges"]) == (1.0, 1.0, 1)
    wrong = score_graph(marked(("a", "b", 1, "<->")), truth)["lagged"]
    assert (wrong["recall"], wrong["predicted_edges"]) == (0.0, 0)


def test_an_edge_without_direction_is_an_adjacency_and_no_directed_edge():
    truth = LaggedGraph.from_edges(ABC, 1, [("b", "a", 0), ("a", "c", 1)])
    guess = marked(("a", "b", 0, "o-o"), ("a", "c", 1, "-->"), ("b", "c", 0, "<->"), max_lag=1)
    found = score_graph(guess, truth)
    assert (found["lagged"]["precision"], found["lagged"]["recall"]) == (1.0, 0.5)
    assert (found["adjacency"]["precision"], found["adjacency"]["recall"]) == (1.0, 1.0)
    assert found["adjacency"]["candidates"] == 9 + 3
    assert found["null"]["adjacency"]["precision"] == pytest.approx(2 / 12)


def test_a_lag_0_edge_that_points_the_wrong_way_is_false_but_an_adjacency():
    truth = LaggedGraph.from_edges(ABC, 1, [("b", "a", 0)])
    found = score_graph(LaggedGraph.from_edges(ABC, 1, [("a", "b", 0)]), truth)
    assert (found["lagged"]["f1"], found["adjacency"]["f1"]) == (0.0, 1.0)
    assert found["adjacency"]["auroc"] == 1.0


def test_lagged_graphs_have_no_adjacency_of_their_own():
    graph = LaggedGraph.from_edges(ABC, 1, [("a", "b", 1)])
    assert "adjacency" not in score_graph(graph, graph)

"""Effects within a row: found, oriented where they can be, and lagged stand-ins removed."""

import sys

import networkx as nx
import numpy as np
import pytest

from forecause.data import Panel
from forecause.edges.knowledge import Knowledge
from forecause.errors import InputError, MissingExtra
from forecause.graph import LaggedGraph
from forecause.graph.metrics import score_graph
from forecause.refine.candidates import screen_instantaneous
from forecause.refine.dynotears import graph_of_links
from forecause.refine.links import Links
from forecause.refine.run import refine_instantaneous
from graph_readers import from_tigramite

NAMES = ("a", "b", "c", "d")
TRUTH = LaggedGraph.from_edges(NAMES, 2, [("a", "a", 1), ("a", "b", 0), ("c", "c", 2)])
# a -> b at once makes a's past forecast b: the reduced form has an edge too many
DISCOVERED = LaggedGraph.from_edges(NAMES, 2, [("a", "a", 1), ("a", "b", 1), ("c", "c", 2)])


def edges_of(graph):
    return set(zip(graph.edges["source"], graph.edges["target"], graph.edges["lag"], strict=True))


@pytest.fixture(scope="module")
def panel():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 4))
    for t in range(2, 2000):
        x[t, 0] += 0.7 * x[t - 1, 0]
        x[t, 1] += 0.8 * x[t, 0]
        x[t, 2] += 0.6 * x[t - 2, 2]
    return Panel.from_arrays([x], NAMES)


def test_the_screen_names_the_pair_that_moves_together(panel):
    (pair,) = screen_instantaneous(panel, DISCOVERED)
    assert (pair.first, pair.second) == ("a", "b")
    assert pair.correlation == pytest.approx(0.8 / np.hypot(0.8, 1), abs=0.05)


def test_the_screen_is_silent_on_independent_noise():
    found = 0
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(size=(500, 8))
        panel = Panel.from_arrays([noise], list("abcdefgh"))
        found += bool(screen_instantaneous(panel, LaggedGraph.from_edges("abcdefgh", 1, [])))
    assert found <= 4  # 5 % of the data sets, not of the pairs


@pytest.mark.parametrize("method", ["pcmci+", "dynotears"])
def test_the_edge_at_lag_0_takes_the_place_of_the_lagged_stand_in(method, panel):
    graph = refine_instantaneous(panel, DISCOVERED, method=method)
    assert edges_of(graph) == edges_of(TRUTH)
    assert score_graph(graph, TRUTH)["lagged"]["f1"] == 1.0


def test_a_pair_that_could_point_either_way_is_one_edge_without_direction():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1000, 3))
    x[:, 1] += x[:, 0]
    panel = Panel.from_arrays([x], ("a", "b", "c"))
    graph = refine_instantaneous(panel, LaggedGraph.from_edges("abc", 1, []))
    assert edges_of(graph) == {("a", "b", 0)}
    assert graph.edges["mark"].tolist() == ["o-o"]
    back = from_tigramite(graph.to_tigramite(), graph.variables)
    assert edges_of(back) == edges_of(graph)
    truth = LaggedGraph.from_edges("abc", 1, [("b", "a", 0)])
    found = score_graph(graph, truth)
    assert (found["lagged"]["predicted_edges"], found["adjacency"]["f1"]) == (0, 1.0)


def test_knowledge_gives_a_pair_its_direction():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1000, 3))
    x[:, 1] += x[:, 0]
    panel = Panel.from_arrays([x], ("a", "b", "c"))
    empty = LaggedGraph.from_edges("abc", 1, [])
    graph = refine_instantaneous(panel, empty, Knowledge.of(forbid=["a -> b @ 0"]))
    assert edges_of(graph.causal) == {("b", "a", 0)}


@pytest.mark.parametrize("method", ["pcmci+", "dynotears"])
def test_forbidden_edges_never_appear_and_required_ones_always_do(method, panel):
    knowledge = Knowledge.of(
        forbid=["a -> b @ 0", "c -> c"], require=["d -> b @ 0", "b -> c @ 2", "d -> a"]
    )
    graph = refine_instantaneous(panel, DISCOVERED, knowledge, method)
    found = edges_of(graph.causal)
    assert ("a", "b", 0) not in found
    assert not any(edge[:2] == ("c", "c") for edge in edges_of(graph))
    assert {("d", "b", 0), ("b", "c", 2)} <= found
    assert any(edge[:2] == ("d", "a") for edge in found)


@pytest.mark.parametrize("method", ["pcmci+", "dynotears"])
def test_required_edges_at_lag_0_must_not_form_a_circle(method, panel):
    knowledge = Knowledge.of(require=["a -> b @ 0", "b -> a @ 0"])
    with pytest.raises(InputError, match="in a circle"):
        refine_instantaneous(panel, DISCOVERED, knowledge, method)


def test_dynotears_within_all_links_is_dynotears(panel):
    graph = LaggedGraph.from_edges(
        NAMES, 2, [(s, t, k) for s in NAMES for t in NAMES for k in (1, 2)]
    )
    alone = graph_of_links(panel, 2, Links.of(panel, 2, Knowledge()))
    refined = refine_instantaneous(panel, graph, method="dynotears")
    assert edges_of(refined) == edges_of(alone)


def test_edges_at_lag_0_have_no_circle(panel):
    rng = np.random.default_rng(3)
    mixed = panel.values @ (np.eye(4) + 0.5 * np.triu(rng.normal(size=(4, 4)), 1))
    graph = refine_instantaneous(
        Panel.from_arrays([mixed], NAMES), DISCOVERED, method="dynotears"
    ).edges
    now = graph[graph["lag"] == 0]
    assert len(now) >= 2
    assert nx.is_directed_acyclic_graph(nx.DiGraph(list(zip(now.source, now.target, strict=True))))


def test_known_details_of_an_edge_are_kept(panel):
    detailed = LaggedGraph(NAMES, 2, DISCOVERED.edges.assign(share=0.5))
    edges = refine_instantaneous(panel, detailed).edges.set_index(["source", "target", "lag"])
    assert edges["share"]["a", "a", 1] == 0.5
    assert np.isnan(edges["share"]["a", "b", 0])


def test_an_unknown_method_is_refused(panel):
    with pytest.raises(InputError, match=r"choose pcmci\+ or dynotears"):
        refine_instantaneous(panel, DISCOVERED, method="pc")


def test_only_pcmci_plus_needs_tigramite(panel, monkeypatch):
    monkeypatch.setitem(sys.modules, "tigramite", None)
    for module in [m for m in sys.modules if m.startswith("tigramite.")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingExtra, match=r"tigramite.*\.\[refine\]"):
        refine_instantaneous(panel, DISCOVERED)
    assert len(refine_instantaneous(panel, DISCOVERED, method="dynotears")) == 3

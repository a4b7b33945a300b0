"""Hidden common causes: confounding is told from causes, and marks survive."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from tigramite.lpcmci import LPCMCI

from forecause.data import Panel
from forecause.edges.knowledge import Knowledge
from forecause.errors import InputError, MissingExtra
from forecause.graph import LaggedGraph
from forecause.graph.metrics import score_graph
from forecause.refine.latent import instrument_p_values, refine_latent

NAMES = ("a", "b", "c", "d")
CAUSES = [("d", "a", 1, 0.5), ("a", "b", 1, 0.4), ("c", "c", 1, 0.3)]


def edges_of(graph):
    return set(zip(graph.edges["source"], graph.edges["target"], graph.edges["lag"], strict=True))


@pytest.fixture(scope="module")
def panel():
    """d -> a -> b, and a hidden cause of a and, a row later, of c."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(3000, 5))
    x = np.zeros((3000, 4))
    for t in range(2, 3000):
        hidden = noise[t - 1, 4], noise[t - 2, 4]
        x[t, 3] = noise[t, 3]
        x[t, 0] = 0.8 * x[t - 1, 3] + hidden[0] + noise[t, 0]
        x[t, 1] = 0.8 * x[t - 1, 0] + noise[t, 1]
        x[t, 2] = 0.7 * x[t - 1, 2] + 0.5 * hidden[1] + noise[t, 2]
    return Panel.from_arrays([x[50:]], NAMES)


@pytest.fixture(scope="module")
def discovered():
    """What a forecaster finds: the causes, and a -> c, which the hidden variable explains."""
    return LaggedGraph.from_edges(NAMES, 2, [*CAUSES, ("a", "c", 1, 0.02)])


@pytest.fixture(scope="module")
def refined(panel, discovered):
    return refine_latent(panel, discovered)


def test_confounding_is_marked_and_is_no_cause(refined):
    marks = refined.edges.set_index(["source", "target", "lag"])["mark"]
    assert marks["a", "c", 1] == "<->"
    assert edges_of(refined.causal) == {edge[:3] for edge in CAUSES}


def test_refinement_raises_precision_and_keeps_recall(refined, discovered):
    truth = LaggedGraph.from_edges(NAMES, 2, CAUSES)
    before, after = (score_graph(g, truth)["lagged"] for g in (discovered, refined))
    assert before["precision"] == 0.75
    assert (after["precision"], after["recall"]) == (1.0, 1.0)
    assert after["auroc"] == 1.0  # the score of what was explained is taken back


def test_a_strong_edge_is_never_called_confounding(panel, discovered):
    strong = discovered.edges.assign(score=1.0)
    graph = refine_latent(panel, replace(discovered, edges=strong))
    assert graph.edges.set_index(["source", "target"])["mark"]["a", "c"] == "o->"


def test_instruments_reach_the_target_of_a_cause_only(panel):
    # places are (target, source, lag): d -> a, then a -> b (a cause) and a -> c (confounding)
    p = instrument_p_values(panel, [(0, 3, 1), (1, 0, 1), (2, 0, 1)], max_lag=2)
    assert p[1, 0, 1] < 1e-6
    assert p[2, 0, 1] > 0.05
    assert p[0, 3, 1] == 1.0  # nothing is known to drive d


def test_a_hidden_cause_of_both_at_once_is_an_edge_at_lag_0_that_is_no_cause():
    rng = np.random.default_rng(1)
    hidden, x = rng.normal(size=(2000, 1)), rng.normal(size=(2000, 3))
    x[:, :2] += hidden
    panel = Panel.from_arrays([x], ("a", "b", "c"))
    graph = refine_latent(panel, LaggedGraph.from_edges("abc", 1, []))
    assert edges_of(graph) == {("a", "b", 0)}
    assert graph.edges["mark"].tolist() == ["<->"]
    assert len(graph.causal) == 0
    links = graph.to_tigramite()
    assert (links[0, 1, 0], links[1, 0, 0]) == ("<->", "<->")


def test_known_details_of_an_edge_are_kept(panel, discovered):
    detailed = replace(discovered, edges=discovered.edges.assign(sign=1))
    assert refine_latent(panel, detailed).edges["sign"].tolist() == [1, 1, 1, 1]


def test_what_is_known_decides(panel, discovered):
    knowledge = Knowledge.of(forbid=["d -> a"], require=["a -> c @ 1", "b -> d", "d -> c @ 0"])
    graph = refine_latent(panel, discovered, knowledge)
    found = edges_of(graph.causal)
    assert not any(edge[:2] == ("d", "a") for edge in edges_of(graph))
    assert {("a", "c", 1), ("d", "c", 0)} <= found
    assert any(edge[:2] == ("b", "d") and edge[2] > 0 for edge in found)


def test_only_discovered_edges_are_searched(panel, discovered, monkeypatch):
    asked = {}

    def run(self, link_assumptions, **options):
        asked.update(link_assumptions)
        return original(self, link_assumptions=link_assumptions, **options)

    original = LPCMCI.run_lpcmci
    monkeypatch.setattr(LPCMCI, "run_lpcmci", run)
    refine_latent(panel, discovered)
    links = {(i, *cell) for i, own in asked.items() for cell, link in own.items() if link}
    assert links == {(0, 3, -1), (1, 0, -1), (2, 2, -1), (2, 0, -1)}


def test_other_data_are_refused(discovered):
    other = Panel.from_arrays([np.random.default_rng(0).normal(size=(100, 2))], ("a", "x"))
    with pytest.raises(InputError, match=r"found \['a', 'x'\]"):
        refine_latent(other, discovered)


def test_a_missing_package_is_named_with_its_extra(panel, discovered, monkeypatch):
    monkeypatch.setitem(sys.modules, "tigramite", None)
    for module in [m for m in sys.modules if m.startswith("tigramite.")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingExtra, match=r"tigramite.*\.\[refine\]"):
        refine_latent(panel, discovered)

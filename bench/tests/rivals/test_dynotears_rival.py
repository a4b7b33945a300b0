"""DYNOTEARS as a rival: what its answer shows."""

import networkx as nx

from forecause_bench.rivals.dynotears import dynotears


def test_effects_at_lag_zero_are_acyclic_and_shown_on_request(make_panel, edges_of):
    panel = make_panel({("a", "a", 1): 0.8, ("c", "c", 1): 0.5}, "abc", rows=(1000,))
    panel.values[:, 1] += 2 * panel.values[:, 0]
    panel.values[:, 2] += panel.values[:, 1]
    graph = dynotears(panel, 1, 0, instantaneous=True)
    now = graph.edges[graph.edges["lag"] == 0]
    assert len(now) >= 2
    assert nx.is_directed_acyclic_graph(nx.DiGraph(list(zip(now.source, now.target, strict=True))))
    lagged = dynotears(panel, 1, 0)
    assert edges_of(lagged) == {edge for edge in edges_of(graph) if edge[2] > 0}
    assert lagged.scores.sizes["lag"] == 1

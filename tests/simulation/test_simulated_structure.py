import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecause.simulation import Simulated, simulate


def in_degrees(simulated: Simulated) -> np.ndarray:
    counts = simulated.graph.edges.query("lag > 0")["target"].value_counts()
    return counts.reindex(list(simulated.variables), fill_value=0).to_numpy()


def mean_in_degree(**options) -> float:
    return float(
        np.mean([in_degrees(simulate(rows=60, seed=s, **options)).mean() for s in range(12)])
    )


def test_the_mean_in_degree_is_the_requested_one():
    # 12 graphs of 30 nodes: the standard error is sqrt(3 / 360) = 0.09
    assert mean_in_degree(nodes=30, in_degree=3) == pytest.approx(3, abs=0.3)


def test_under_a_cap_the_mean_is_still_the_requested_one():
    found = mean_in_degree(nodes=30, in_degree=2.7, max_in_degree=3)
    assert found == pytest.approx(2.7, abs=0.12)
    assert max(in_degrees(simulate(nodes=30, rows=60, in_degree=2.7, max_in_degree=3))) == 3


def test_an_expectation_equal_to_the_cap_gives_every_variable_exactly_that_many():
    for seed in range(4):
        simulated = simulate(nodes=8, rows=60, in_degree=3, max_in_degree=3, seed=seed)
        assert (in_degrees(simulated) == 3).all()


@given(st.integers(1, 8), st.integers(1, 6), st.floats(0, 1), st.integers(0, 99))
@settings(max_examples=30)
def test_edges_are_within_the_lags_and_self_edges_at_lag_one(nodes, max_lag, share, seed):
    simulated = simulate(
        nodes=nodes,
        max_lag=max_lag,
        rows=60,
        autoregression=0.3,
        in_degree=0.3 + share * (nodes - 1),
        seed=seed,
    )
    edges = simulated.graph.edges
    assert edges["lag"].between(1, max_lag).all()
    self_lags = edges.loc[edges["source"] == edges["target"], "lag"]
    assert (self_lags == 1).all()


def test_lag_one_self_edges_appear_with_the_given_probability():
    simulated = simulate(nodes=400, max_lag=1, rows=600, autoregression=0.3, in_degree=1)
    edges = simulated.graph.edges
    share = (edges["source"] == edges["target"]).mean() * len(edges) / 400
    assert share == pytest.approx(0.3, abs=0.08)
    never = simulate(rows=60, autoregression=0).graph.edges
    assert (never["source"] != never["target"]).all()


def test_instantaneous_edges_are_acyclic_and_as_many_as_requested():
    counts = []
    for seed in range(10):
        graph = simulate(nodes=12, rows=60, instantaneous=2, seed=seed).graph
        instant = graph.edges.query("lag == 0")
        pairs = nx.DiGraph(list(zip(instant["source"], instant["target"], strict=True)))
        assert nx.is_directed_acyclic_graph(pairs)
        counts.append(len(instant) / 12)
    assert np.mean(counts) == pytest.approx(2, abs=0.4)
    assert (simulate(rows=60).graph.edges["lag"] > 0).all()


def test_each_latent_is_hidden_and_has_two_observed_children_or_more():
    for seed in range(5):
        simulated = simulate(nodes=6, latents=3, in_degree=1, rows=60, seed=seed)
        assert simulated.values.shape == (60, 6)
        assert set(simulated.variables).isdisjoint(simulated.systems[0].latents)
        edges = simulated.systems[0].edges
        hidden = edges[edges["source"].isin(simulated.systems[0].latents)]
        assert set(hidden["source"]) == {"U1", "U2", "U3"}
        for _, children in hidden.groupby("source"):
            assert children["target"].nunique() >= 2
            first, second = children["target"].iloc[:2]
            assert {(first, second), (second, first)} & set(simulated.confounded)


def test_latent_edges_leave_the_observed_in_degree_alone():
    simulated = simulate(nodes=6, latents=4, in_degree=2, max_in_degree=2, rows=60)
    assert (in_degrees(simulated) == 2).all()


def test_the_graph_depends_on_the_seed_but_not_on_the_mechanism_or_noise():
    keys = ["source", "target", "lag"]

    def edges(**options):
        return simulate(rows=60, **options).graph.edges[keys].sort_values(keys).values.tolist()

    assert edges(seed=3) == edges(seed=3, mechanism="mlp-add", noise="mixed")
    assert edges(seed=3) != edges(seed=4)

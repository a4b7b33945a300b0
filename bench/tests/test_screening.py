"""The study of the screen: its graph is what a network reads, and holds the causes."""

import pytest

from fitted import fit_forecaster
from forecause.data.windows import Windows
from forecause.forecast.selection import MOST_INPUTS
from forecause.graph.metrics import score_graph
from forecause.method import discover
from forecause.resources.cost import Plan, Share
from forecause.simulation import simulate
from forecause_bench.studies import inputs_screened_in_rounds, screened_inputs


@pytest.fixture(scope="module")
def many():
    """12 variables times 9 lags are more inputs than a network is given."""
    return simulate(nodes=12, max_lag=9, rows=800, in_degree=2.0, seed=3)


@pytest.fixture(scope="module")
def graph(many):
    (found,) = screened_inputs(many.panel, 9, 0)
    return found.graph


def test_the_screened_inputs_hold_every_true_cause(many, graph):
    assert len(graph) == 12 * MOST_INPUTS
    assert score_graph(graph, many.graph)["lagged"]["recall"] == 1.0


def test_the_screen_in_rounds_holds_all_that_tests_of_all_inputs_find(many):
    (found,) = inputs_screened_in_rounds(many.panel, 9, 0)
    tested = discover(many.panel, 9, forecaster="linear").graph
    true = tested.adjacency & many.graph.adjacency
    assert true.sum() > 15
    assert not (true & ~found.graph.adjacency).any()
    assert len(found.graph) < 12 * MOST_INPUTS / 2


def test_they_are_what_a_network_reads(many, graph):
    windows = Windows.of(many.panel, 9)
    plan = Plan({"mlp": Share(seconds=60.0, steps=1)})
    network = fit_forecaster("mlp", windows, plan=plan).forecaster
    by_lag = network.module.read_mask.flip(1).transpose(1, 2)  # (target, source, lag)
    assert (graph.adjacency.values == by_lag.numpy()).all()


def test_with_few_inputs_all_are_read():
    system = simulate(nodes=3, max_lag=2, rows=100, seed=0)
    assert len(screened_inputs(system.panel, 2, 0)[0].graph) == 3 * 3 * 2

"""The cycle constraint is zero exactly for acyclic graphs, and its gradient is right."""

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import approx_fprime

from forecause.refine.dynotears import cycle_strength, dual_ascent, without_cycles

graphs = arrays(np.bool_, (4, 4))


@given(graphs)
def test_it_is_zero_exactly_without_cycles(edges):
    strength, _ = cycle_strength(edges.astype(float))
    acyclic = nx.is_directed_acyclic_graph(nx.from_numpy_array(edges, create_using=nx.DiGraph))
    assert (abs(strength) < 1e-9) == acyclic


@given(arrays(np.float64, (3, 3), elements=st.floats(0, 2)))
def test_its_gradient_is_that_of_finite_differences(squared):
    _, slope = cycle_strength(squared)
    numeric = approx_fprime(squared.ravel(), lambda s: cycle_strength(s.reshape(3, 3))[0], 1e-6)
    np.testing.assert_allclose(slope.ravel(), numeric, rtol=1e-3, atol=1e-3)


@given(arrays(np.float64, (4, 4), elements=st.integers(-9, 9).map(float)))
def test_the_weakest_weights_are_dropped_until_no_cycle_is_left(weights):
    kept = without_cycles(weights)
    assert nx.is_directed_acyclic_graph(nx.from_numpy_array(kept, create_using=nx.DiGraph))
    dropped = np.abs(weights[(kept == 0) & (weights != 0)])
    if len(dropped):
        one_more = np.where(np.abs(weights) >= dropped.max(), weights, 0)
        graph = nx.from_numpy_array(one_more, create_using=nx.DiGraph)
        assert not nx.is_directed_acyclic_graph(graph)
    else:
        assert (kept == weights).all()


def test_dual_ascent_meets_a_constraint_by_its_price_not_by_sheer_weight():
    """min (x - 2)^2 with h(x) = |x - 1|, so the solution is 1."""
    weights = []

    def minimise(start, weight, price):
        weights.append(weight)
        best = max(1.0, (4 + weight - price) / (2 + weight))  # where the derivative vanishes
        return np.array([best]), best - 1

    np.testing.assert_allclose(dual_ascent(np.array([2.0]), minimise), 1, atol=1e-7)
    assert max(weights) <= 100

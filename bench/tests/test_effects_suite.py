"""The true effects that intervals are compared with, and the comparison."""

import numpy as np
import pytest

from forecause.graph.lagged import LaggedGraph
from forecause.simulation import simulate
from forecause_bench.effects import true_changes, with_true_effects
from forecause_bench.scoring import coverage


def test_the_effect_of_a_linear_edge_is_its_weight():
    made = simulate(nodes=5, max_lag=2, rows=400, seed=1)
    weights = made.graph.edges.set_index(["source", "target", "lag"])["score"]
    found = true_changes(made)
    assert set(found) == set(weights.index)
    sd = dict(zip(made.variables, made.values.std(axis=0), strict=True))
    for key, change in found.items():
        assert abs(change) == pytest.approx(weights[key] * sd[key[0]], rel=1e-6)


@pytest.mark.parametrize("mechanism", ["monotonic", "mlp-add", "mlp-concat"])
def test_the_effect_is_how_the_next_row_moves_on_average(mechanism):
    made = simulate(nodes=4, max_lag=1, rows=300, mechanism=mechanism, seed=2)
    (system,) = made.systems
    (source, target, lag), told = next(iter(true_changes(made).items()))
    at, to = made.variables.index(source), made.variables.index(target)
    rng, step = np.random.default_rng(0), 1e-3
    moved = []
    for row in made.values[:-1]:
        for _ in range(30):
            noise = rng.normal(size=len(made.variables)) * made.noise_sd
            ends = []
            for sign in (1, -1):
                past = row.copy()
                past[at] += sign * step
                ends.append(system.step(past[None], noise)[to])
            moved.append((ends[0] - ends[1]) / (2 * step))
    assert lag == 1
    expected = np.mean(moved) * made.values[:, at].std()
    assert told == pytest.approx(expected, rel=0.05, abs=0.01)


def test_coverage_counts_true_edges_that_were_found():
    _, truth = with_true_effects(300, 3000, 3, "linear")
    edges = truth.edges.assign(
        change_low=truth.edges["change"] - 0.1, change_high=truth.edges["change"] + 0.1
    )
    held = LaggedGraph(truth.variables, 3, edges.iloc[:4])
    assert coverage(held, truth)["effect_coverage"] == 1.0
    edges.loc[edges.index[0], "change_low"] += 0.15
    missed = LaggedGraph(truth.variables, 3, edges.iloc[:4])
    assert coverage(missed, truth)["effect_coverage"] == 0.75
    assert coverage(truth, held) == {}

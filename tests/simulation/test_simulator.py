"""The series as a whole: latents, segments, seeds, files and refusals."""

import os
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause.simulation import simulate


def significant(values: np.ndarray, names: tuple[str, ...], max_lag: int) -> set:
    """Edges of an ordinary least squares vector autoregression with |t| above 5."""
    design = np.column_stack([values[max_lag - k : -k] for k in range(1, max_lag + 1)])
    design = np.column_stack([design, np.ones(len(design))])
    target = values[max_lag:]
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ target
    variance = ((target - design @ weights) ** 2).mean(0)
    t = weights / np.sqrt(np.outer(np.diag(inverse), variance))
    found = np.argwhere(np.abs(t[:-1]) > 5)
    return {(names[k % len(names)], names[i], k // len(names) + 1) for k, i in found}


def edge_set(graph: LaggedGraph) -> set:
    edges = graph.edges
    return set(zip(edges["source"], edges["target"], edges["lag"], strict=True))


def test_the_same_seed_gives_the_same_data_and_another_seed_other_data():
    one, same, other = (simulate(rows=200, mechanism="monotonic", seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.values, same.values)
    assert one.graph == same.graph
    assert not np.allclose(one.values, other.values)


def test_least_squares_recovers_the_graph_of_a_linear_system():
    simulated = simulate(rows=30_000, nodes=6, max_lag=3, seed=1)
    assert significant(simulated.values, simulated.variables, 3) == edge_set(simulated.graph)


def test_a_latent_makes_its_children_depend_on_each_other():
    simulated = simulate(
        nodes=4, max_lag=3, rows=30_000, latents=1, in_degree=0, autoregression=0, seed=6
    )
    assert len(simulated.graph) == 0
    lags = simulated.systems[0].edges.set_index("target")["lag"]
    for first, second in simulated.confounded:
        x = simulated.frame()
        shift = int(lags[second] - lags[first])
        assert abs(x[first].corr(x[second].shift(-shift))) > 0.1
    apart = set(simulated.variables) - set(lags.index)
    for name in apart:
        assert (
            simulated.frame().drop(columns=name).corrwith(simulated.frame()[name]).abs().max()
            < 0.03
        )


def test_an_autocorrelated_latent_reaches_over_more_lags_with_the_same_variance():
    options = {"nodes": 2, "max_lag": 2, "rows": 40_000, "latents": 1, "in_degree": 0}
    spread, variance = {}, {}
    for coefficient in (0.0, 0.9):
        simulated = simulate(autoregression=0, latent_autoregression=coefficient, **options)
        x = simulated.frame()
        spread[coefficient] = x["X1"].corr(x["X2"].shift(6))
        variance[coefficient] = simulated.values.var(0)
    assert abs(spread[0.0]) < 0.02
    assert abs(spread[0.9]) > 0.03
    assert variance[0.9] == pytest.approx(variance[0.0], rel=0.06)


def test_segments_switch_where_they_say_and_each_has_its_own_graph():
    simulated = simulate(nodes=5, max_lag=2, rows=40_000, segments=2, seed=3)
    assert list(simulated.graph.domains) == ["segment 1", "segment 2"]
    assert (np.flatnonzero(np.diff(simulated.domain)) + 1).tolist() == [20_000]
    union = set()
    for number, graph in enumerate(simulated.graph.domains.values()):
        own = simulated.values[simulated.domain == number]
        assert significant(own, simulated.variables, 2) == edge_set(graph)
        union |= edge_set(graph)
    assert edge_set(simulated.graph) == union


def test_the_state_carries_over_at_a_switch():
    simulated = simulate(nodes=4, rows=3000, segments=3, noise_variance=1e-12, seed=1)
    lag = simulated.systems[0].max_lag
    for row in (999, 1000, 1001, 2000):
        system = simulated.systems[simulated.domain[row]]
        expected = system.step(simulated.values[row - lag : row], np.zeros(4))
        assert simulated.values[row] == pytest.approx(expected, abs=1e-4)
    # the fixed points differ, so the right system was asked
    assert np.ptp(simulated.values[[998, 1998, 2998]], axis=0).max() > 1e-2


def test_low_drift_rewires_a_small_share_and_keeps_the_rest():
    simulated = simulate(rows=600, segments=4, drift=0.1, seed=1)
    graphs = [g.edges for g in simulated.graph.domains.values()]
    keys = ["source", "target", "lag"]
    for before, after in pairwise(graphs):
        kept = before.merge(after, on=keys)
        cross = (before["source"] != before["target"]).sum()
        assert len(before) - len(kept) == round(0.1 * cross)
        assert (kept["score_x"] == kept["score_y"]).all()
        assert (before["target"].value_counts() == after["target"].value_counts()).all()


def test_fresh_segments_share_few_edges():
    first, second = simulate(rows=600, segments=2).graph.domains.values()
    assert len(edge_set(first) & edge_set(second)) < 0.3 * len(first)


def test_segments_may_have_their_own_largest_lag():
    graphs = simulate(rows=900, segments=9, vary_lag=True, mechanism="monotonic").graph.domains
    largest = {int(graph.edges["lag"].max()) for graph in graphs.values()}
    assert len(largest) > 2
    assert max(largest) <= 5


def test_panel_and_frame_carry_the_segments():
    simulated = simulate(rows=400, segments=2)
    panel, frame = simulated.panel, simulated.frame()
    assert panel.domain_names == ("segment 1", "segment 2")
    assert panel.variables == simulated.variables
    assert len(panel.starts) == 1
    assert [panel.domain_names[d] for d in panel.domain] == frame["domain"].tolist()
    plain = simulate(rows=400)
    assert plain.panel.domain is None
    assert list(plain.frame().columns) == list(plain.variables)


@pytest.mark.parametrize("segments", [1, 3])
def test_saved_data_and_graph_can_be_read_back(tmp_path, segments):
    simulated = simulate(rows=300, segments=segments, mechanism="linear+mlp-add", latents=1)
    simulated.save(tmp_path / "new" / "folder")
    table = pd.read_csv(tmp_path / "new" / "folder" / "data.csv")
    np.testing.assert_array_equal(table[list(simulated.variables)].to_numpy(), simulated.values)
    assert (tmp_path / "new/folder/data.csv").read_text() == simulated.frame().to_csv(index=False)
    assert ("domain" in table) == (segments > 1)
    assert LaggedGraph.from_json(tmp_path / "new" / "folder" / "graph.json") == simulated.graph


def test_saving_below_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="Cannot write into"):
        simulate(rows=60).save(tmp_path / "taken")


def test_a_full_disk_leaves_no_new_folder(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        simulate(rows=60).save(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_the_start_is_left_in_the_first_row():
    # with almost no noise a linear system rests at its fixed point once the start is forgotten
    options = {"max_lag": 20, "rows": 500, "in_degree": 1.5, "max_in_degree": 2, "seed": 3}
    values = simulate(noise_variance=1e-16, **options).values
    assert np.abs(values[-1]).max() > 0.05
    np.testing.assert_allclose(values[0], values[-1], atol=1e-5)


# Self edges with a slope above 1 somewhere: some draws of this kind run away.
RUNAWAY = {"nodes": 3, "max_lag": 1, "rows": 200, "mechanism": "piecewise-linear"}
RUNAWAY |= {"in_degree": 1, "max_in_degree": 1, "autoregression": 1.0, "seed": 11}


def test_an_exploding_draw_is_replaced_by_a_tame_one_always_the_same():
    simulated = simulate(**RUNAWAY)
    assert np.abs(simulated.values).max() < 1000
    np.testing.assert_array_equal(simulated.values, simulate(**RUNAWAY).values)


def test_when_every_draw_explodes_the_request_is_refused(monkeypatch):
    monkeypatch.setattr("forecause.simulation.simulator.DRAWS", 1)
    with pytest.raises(InputError, match=r"All 1 piecewise-linear systems .* exploded"):
        simulate(**RUNAWAY)


def test_small_noise_is_no_explosion_and_large_noise_neither():
    for variance in (1e-10, 1e6):
        assert np.isfinite(simulate(rows=60, noise_variance=variance).values).all()


REFUSED = {
    "nodes=0: it should be greater than or equal to 1": {"nodes": 0},
    "max_lag=0: it should be greater": {"max_lag": 0},
    "seed=-1: it should be greater": {"seed": -1},
    "nodes=2.5: it should be a valid integer": {"nodes": 2.5},
    "rows='many': it should be a valid integer": {"rows": "many"},
    r"4,000,000,000 numbers\); use fewer": {"rows": 10**14},
    r"500,000,000 possible edges\); use fewer": {"nodes": 10**5},
    "Unknown mechanism 'cubic'; choose from linear, piecewise-linear": {
        "mechanism": "linear+cubic"
    },
    "noise='cauchy': it should be 'gaussian', 'laplace'": {"noise": "cauchy"},
    "in_degree .*counts self edges": {"in_degree": 0.1},
    "is above 3, the most that": {"in_degree": 4, "max_in_degree": 3},
    "is above 5.3, the most that 2 nodes": {"in_degree": 6, "nodes": 2},
    "max_in_degree=0: it should be greater": {"max_in_degree": 0},
    "autoregression=1.5: it should be less than or equal to 1": {"autoregression": 1.5},
    "latent_autoregression=1.0: it should be less than 1": {"latent_autoregression": 1.0},
    "noise_variance must be a positive": {"noise_variance": 0.0},
    "noise_variance must be a positive number or a range": {"noise_variance": (5.0, 1.0)},
    "too few for 50 segment": {"rows": 100, "segments": 50},
    "drift=0.0: it should be greater than 0": {"segments": 2, "drift": 0.0},
    "drift and vary_lag describe several segments": {"drift": 0.1},
    "A latent needs two observed children": {"nodes": 1, "latents": 1, "in_degree": 0.3},
    "instantaneous is the mean number": {"instantaneous": 5.0},
    "variance_edges must be within 0 and 10": {"variance_edges": 11},
    "variance_edges scale additive noise": {"variance_edges": 1, "mechanism": "mlp-concat"},
    "no variance edge fits": {"nodes": 2, "max_lag": 1, "in_degree": 1.3, "variance_edges": 2},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_impossible_requests_are_refused_with_a_reason(reason):
    with pytest.raises(InputError, match=reason):
        simulate(**REFUSED[reason])


def test_a_step_needs_the_whole_past():
    with pytest.raises(InputError, match=r"past of shape \(5, 10\).*found \(4, 10\)"):
        simulate(rows=60).systems[0].step(np.zeros((4, 10)), np.zeros(10))

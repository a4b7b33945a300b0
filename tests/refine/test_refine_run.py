"""Refinement of a run: through the library and the command, with the data found again."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from systems import edge_set


def with_a_hidden_cause(rows=3000, seed=0):
    """h is not recorded: it moves b one row and c two rows later, so b seems to drive c."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    h = np.zeros(rows)
    for t in range(2, rows):
        h[t] = 0.9 * h[t - 1] + 0.5 * rng.normal()
        x[t, 0] += 0.6 * x[t - 1, 0]
        x[t, 1] += 1.0 * h[t - 1] + 0.8 * x[t - 1, 0]
        x[t, 2] += 1.0 * h[t - 2]
    return pd.DataFrame(x, columns=list("abc"))


def within_a_row(rows=3000, seed=0):
    """a drives b within the row; a remembers itself, so its past forecasts b."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    for t in range(1, rows):
        x[t, 0] += 0.6 * x[t - 1, 0]
        x[t, 1] += 0.8 * x[t, 0]
        x[t, 2] += 0.5 * x[t - 1, 1]
    return pd.DataFrame(x, columns=list("abc"))


@pytest.fixture(scope="module")
def instantaneous():
    return fc.discover(within_a_row(), 2, forecaster="linear")


def test_what_stood_in_for_an_effect_within_the_row_goes(instantaneous):
    assert ("a", "b", 1) in edge_set(instantaneous.graph)
    refined = instantaneous.refine(instantaneous=True)
    edges = edge_set(refined.graph)
    assert ("a", "b", 1) not in edges
    assert {("a", "a", 1), ("b", "c", 1)} <= edges
    now = refined.graph.edges[refined.graph.edges["lag"] == 0]
    assert {frozenset(pair) for pair in now[["source", "target"]].to_numpy()} == {frozenset("ab")}
    assert "Refined for lag 0 by pcmci+" in refined.data.notes[-1]


def test_a_refined_run_is_saved_and_loaded(instantaneous, tmp_path):
    refined = instantaneous.refine(instantaneous=True)
    assert fc.load(refined.save(tmp_path / "run")).graph == refined.graph


def test_confounded_edges_are_marked():
    found = fc.discover(with_a_hidden_cause(), 3, forecaster="linear")
    refined = found.refine(latent=True)
    assert ("a", "b", 1) in edge_set(refined.graph.causal)
    assert len(refined.graph.causal) < len(found.graph)
    assert "<->" in set(refined.graph.edges["mark"])


def test_rules_hold_in_the_refined_graph():
    found = fc.discover(
        within_a_row(), 2, forecaster="linear", forbid=["b <- a", "a <- b"], require=["c -> a @ 2"]
    )
    for asked in ({"latent": True}, {"instantaneous": True}):
        edges = edge_set(found.refine(**asked).graph)
        assert not {(s, t) for s, t, _ in edges} & {("a", "b"), ("b", "a")}
        assert ("c", "a", 2) in edges


@pytest.mark.parametrize("asked", [{}, {"latent": True, "instantaneous": True}])
def test_one_refinement_at_a_time(instantaneous, asked):
    with pytest.raises(fc.InputError, match="one refinement"):
        instantaneous.refine(**asked)


def test_the_command_finds_the_data_again(command, tmp_path):
    data = tmp_path / "d.csv"
    within_a_row().to_csv(data, index=False)
    start = ("discover", data, "--max-lag", 2, "--forecaster", "linear", "-q")
    assert command(*start, "--out", tmp_path / "run")[0] == 0
    code, out, _ = command("refine", tmp_path / "run", "--instantaneous", "-q")
    assert code == 0
    assert "new at lag 0: 1" in out
    graph = json.loads((tmp_path / "run-refined" / "graph.json").read_text())
    assert any(edge["lag"] == 0 for edge in graph["edges"])
    moved = data.rename(tmp_path / "moved.csv")
    assert command("refine", tmp_path / "run", "--instantaneous", "-q")[0] == 2
    assert command("refine", tmp_path / "run", "--instantaneous", "-q", "--data", moved)[0] == 0


def test_other_data_is_refused(command, tmp_path):
    data = tmp_path / "d.csv"
    within_a_row(400).to_csv(data, index=False)
    start = ("discover", data, "--max-lag", 1, "--forecaster", "linear", "-q")
    assert command(*start, "--out", tmp_path / "run")[0] == 0
    within_a_row(400, seed=1).to_csv(data, index=False)
    code, _, err = command("refine", tmp_path / "run", "--latent", "-q")
    assert code == 2
    assert "not the data that the run was made of" in err


def test_without_tigramite_the_message_says_what_to_install(instantaneous, monkeypatch):
    monkeypatch.setitem(sys.modules, "tigramite.lpcmci", None)
    with pytest.raises(fc.InputError, match=r"pip install tigramite \(or .*\.\[refine\]"):
        instantaneous.refine(latent=True)


def with_a_mode(rows=2500, seed=0):
    """a sets the mode within the row; a remembers itself, so its past forecasts the mode."""
    rng = np.random.default_rng(seed)
    a, y = rng.normal(size=(2, rows))
    mode = np.zeros(rows, dtype=int)
    for t in range(1, rows):
        a[t] += 0.6 * a[t - 1]
        mode[t] = np.digitize(a[t] + 0.5 * rng.normal(), [-0.7, 0.7])
        y[t] += 1.2 * (mode[t - 1] == 2)
    return pd.DataFrame({"a": a, "mode": np.array(["low", "mid", "high"])[mode], "y": y})


def test_labels_are_refined_as_variables_of_several_columns():
    found = fc.discover(fc.read(with_a_mode(), labels=["mode"]), 2, forecaster="linear")
    assert ("a", "mode", 1) in edge_set(found.graph)
    edges = found.refine(instantaneous=True).graph.edges
    kept = set(zip(edges["source"], edges["target"], edges["lag"], strict=True))
    assert ("a", "mode", 1) not in kept
    assert {("a", "a", 1), ("mode", "y", 1)} <= kept
    assert {"a", "mode"} in [{source, target} for source, target, lag in kept if lag == 0]
    believed = edge_set(found.refine(latent=True).graph)
    assert {("a", "a", 1), ("mode", "y", 1)} <= believed
    with pytest.raises(fc.InputError, match=r"pcmci\+"):
        found.refine(instantaneous=True, method="dynotears")

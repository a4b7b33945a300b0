"""Forbidden edges never appear, required ones always do."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from fitted import build, fit_forecaster
from forecause.data import Windows
from forecause.data.windows import Window
from forecause.edges.knowledge import Knowledge, Rule, read_knowledge
from forecause.edges.reading import allowed_inputs
from systems import CHAIN_EDGES, chain, edge_set

NAMES = ["rain", "river", "dam"]


def allowed(*rules, max_lag=3, first_lag=1):
    found = Knowledge.of(forbid=rules).allowed(NAMES, max_lag, first_lag)
    return {
        (str(found["source"].values[j]), str(found["target"].values[i]), int(found["lag"][k]))
        for i, j, k in np.argwhere(~found.values)
    }


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("rain -> river @ 2", {("rain", "river", 2)}),
        ("river<-rain@1-2", {("rain", "river", 1), ("rain", "river", 2)}),
        ("dam -> rain @ 1, 3", {("dam", "rain", 1), ("dam", "rain", 3)}),
        ("r* -> dam @ 1", {("rain", "dam", 1), ("river", "dam", 1)}),
        ("rain <- * @ 1", {(n, "rain", 1) for n in NAMES}),
        ("rain <- others @ 1", {("river", "rain", 1), ("dam", "rain", 1)}),
        ("* <- self @ 2-3", {(n, n, lag) for n in NAMES for lag in (2, 3)}),
    ],
)
def test_a_rule_forbids_exactly_what_it_says(rule, expected):
    assert allowed(rule) == expected


def test_a_rule_without_lags_is_about_all_of_them():
    assert allowed("rain -> dam") == {("rain", "dam", lag) for lag in (1, 2, 3)}
    assert ("rain", "dam", 0) in allowed("rain -> dam", first_lag=0)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("rain river", "Cannot read the rule"),
        ("-> river", "Cannot read the rule"),
        ("snow -> river", "'snow', which is not a variable"),
        ("rain -> river @ 9", "largest lag is 3"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(rule, sentence):
    with pytest.raises(fc.InputError, match=sentence):
        allowed(rule)


def test_tuples_mean_the_same_as_text():
    told = Knowledge.of(forbid=[("rain", "river", 2), ("dam", "rain")])
    written = Knowledge.of(forbid=["rain -> river @ 2", "dam -> rain"])
    assert told.allowed(NAMES, 3).equals(written.allowed(NAMES, 3))


def test_an_edge_cannot_be_both():
    knowledge = Knowledge.of(forbid=["rain <- *"], require=["dam -> rain @ 1"])
    with pytest.raises(fc.InputError, match="both required and forbidden"):
        knowledge.required(knowledge.allowed(NAMES, 3))


def test_a_name_with_brackets_is_taken_literally():
    assert Rule.parse("a[1] -> b").pairs(["a[1]", "a1", "b"]) == [(2, 0)]


def test_rules_from_a_file(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text(
        "# what is known\nforbid rain <- *  # exogenous\n\nrequire: rain -> river @ 1\n"
    )
    assert read_knowledge(path) == (("rain <- *",), ("rain -> river @ 1",))
    path.write_text("perhaps rain -> dam\n")
    with pytest.raises(fc.InputError, match="must start with 'forbid' or 'require'"):
        read_knowledge(path)


TABLE = pd.DataFrame(chain(1500), columns=list("abc"))


@pytest.mark.parametrize("forecaster", ["linear", "additive", "mlp"])
def test_a_forbidden_input_never_reaches_the_forecast(forecaster):
    windows = Windows.of(fc.Panel.of(TABLE), 2)
    rules = Knowledge.of(forbid=["a -> b", "c <- self @ 1"]).allowed(list("abc"), 2)
    fitted = fit_forecaster(forecaster, windows, preset="quick", allowed=allowed_inputs(rules))
    model, losses = fitted.forecaster, fitted.losses
    past = windows.draw(np.arange(20)).past
    changed = past.copy()
    changed[:, :, 0] += 5.0
    np.testing.assert_array_equal(model(past)[:, 1], model(changed)[:, 1])
    assert not np.allclose(model(past)[:, 2], model(past * 0.5)[:, 2])
    slopes = model.jacobian(past)
    assert (slopes[:, ~allowed_inputs(rules)] == 0).all()
    assert (slopes[:, 2, 0, 1] != 0).any()  # b -> c at lag 2 is allowed
    assert losses[forecaster]["b"] > 0.9  # its only cause is hidden from it


def rule(select, k):
    """A rule with its number of edges, where it has one."""
    rules = {"top-k": fc.TopK(k), "global-top-k": fc.TopK(k, overall=True)}
    return {"select": rules.get(select, select)}


@pytest.mark.parametrize(
    ("kind", "settings"), [("transformer", {}), ("deep-transformer", {"layers": 2}), ("cnn", {})]
)
def test_nor_that_of_a_network_whose_targets_share_their_inputs(kind, settings):
    model = build(kind, (2, 3), settings)
    rules = Knowledge.of(forbid=["a -> b", "c <- self @ 1"]).allowed(list("abc"), 2)
    model.constrain(allowed_inputs(rules))
    window = Window.of(np.random.default_rng(0).normal(size=(8, 3, 3)).astype(np.float32))
    slopes = model.jacobian(window.past)
    assert (slopes[:, ~allowed_inputs(rules)] == 0).all()
    assert (slopes[:, allowed_inputs(rules)] != 0).any(0).mean() > 0.9
    changed = window.past.copy()
    changed[:, :, 0] += 5.0
    errors = model.errors(replace(window, past=changed))
    np.testing.assert_array_equal(errors[:, 1], model.errors(window)[:, 1])


@pytest.mark.parametrize("select", ["auto", "top-k", "global-top-k", "uniform"])
def test_a_forbidden_edge_is_never_chosen(select):
    found = fc.discover(TABLE, 2, forecaster="linear", forbid=["b <- *"], **rule(select, 4))
    assert "b" not in set(found.graph.edges["target"])
    assert (found.scores.sel(target="b") == 0).all()
    assert ("b", "c", 2) in edge_set(found.graph)


@pytest.mark.parametrize("select", ["auto", "top-k", "global-top-k", "uniform"])
def test_a_required_edge_is_always_there(select):
    required = [("c", "a", 2), ("a", "a")]
    found = fc.discover(TABLE, 2, forecaster="linear", require=required, **rule(select, 1))
    edges = edge_set(found.graph)
    assert ("c", "a", 2) in edges
    assert {("a", "a", 1), ("a", "a", 2)} & edges


def test_rules_hold_in_every_domain():
    table = TABLE.assign(half=np.where(np.arange(len(TABLE)) < 750, "first", "second"))
    found = fc.discover(
        table, 2, domain="half", forecaster="linear", forbid=["a -> b"], require=["c -> a @ 1"]
    )
    for graph in (found.graph, *found.graph.domains.values()):
        assert ("a", "b", 1) not in edge_set(graph)
        assert ("c", "a", 1) in edge_set(graph)


def test_a_forbidden_edge_is_not_tested_and_does_not_count_among_the_tests():
    free = fc.discover(TABLE, 2, forecaster="linear")
    bound = fc.discover(TABLE, 2, forecaster="linear", forbid=["a <- *"])
    assert np.isnan(bound.relevance["p_value"].sel(target="a")).all()
    assert edge_set(bound.graph) == CHAIN_EDGES == edge_set(free.graph)


def test_rules_through_the_command(tmp_path, command):
    data, rules, out = tmp_path / "d.csv", tmp_path / "rules.txt", tmp_path / "run"
    TABLE.to_csv(data, index=False)
    rules.write_text("require c -> a @ 2\n")
    arguments = [
        "discover", data, "--max-lag", 2, "--forecaster", "linear", "--quiet", "--out", out,
        "--forbid", "b <- *", "--knowledge", rules,
    ]  # fmt: skip
    assert command(*arguments)[0] == 0
    edges = edge_set(fc.load(out).graph)
    assert ("c", "a", 2) in edges
    assert not {edge for edge in edges if edge[1] == "b"}
    settings = json.loads((out / "run.json").read_text())["settings"]
    assert settings["forbid"] == ["b <- *"]


def test_a_wrong_rule_ends_the_command_with_one_sentence(tmp_path, command):
    data = tmp_path / "d.csv"
    TABLE.to_csv(data, index=False)
    code, _, said = command("discover", data, "--forbid", "snow -> a")
    assert code == 2
    assert "'snow', which is not a variable" in said

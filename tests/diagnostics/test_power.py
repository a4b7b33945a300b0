"""Power: what a run would find again in data simulated from what it learnt."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.diagnostics.along_graph import BOUND, AlongGraph, Model, simulate_along
from forecause.diagnostics.power import Power, edge_factors, noise_sd
from forecause.graph.axes import by_step
from mixed import MIXED_EDGES, mixed
from systems import chain


def discover(values, max_lag=2, forecaster="linear", **settings):
    table = pd.DataFrame(values, columns=list("abcdefgh")[: values.shape[1]])
    return fc.discover(table, max_lag, forecaster=forecaster, **settings)


@pytest.fixture(scope="module")
def strong():
    return discover(chain(2000))


@pytest.fixture(scope="module")
def power(strong):
    return strong.power()


def along(found, weight=None):
    factor = found.graph.adjacency.values.astype(np.float32) if weight is None else weight
    return AlongGraph(Model(found.forecaster), by_step(factor))


def test_strong_edges_are_all_recovered(power):
    assert power.recovered == 1
    assert power.false <= 0.1  # one of 15
    table = power.table.set_index("from")
    assert table.loc[0.4, "recovered"] == 1
    assert table["edges"].sum() == 3 * 5  # every edge in every repetition
    assert table["found"].sum() == pytest.approx((table["edges"] * table["recovered"]).sum(), abs=2)


def test_more_rows_show_weaker_edges():
    seen = []
    for rows in (60, 2000):
        table = discover(chain(rows)).power(repeats=6).table
        weak = table[(table["from"] >= 0.05) & (table["to"] <= 0.4) & (table["edges"] > 0)]
        seen.append((weak["recovered"] * weak["edges"]).sum() / weak["edges"].sum())
    assert seen[0] < 0.5
    assert seen[1] > 0.9


def test_the_sentence_names_the_strength_below_which_most_edges_are_missed():
    table = pd.DataFrame(
        {
            "from": [0.0, 0.05, 0.1, 0.4],
            "to": [0.05, 0.1, 0.4, np.inf],
            "edges": [10, 10, 30, 10],
            "recovered": [0.0, 0.4, 0.9, 1.0],
            "found": [0, 5, 30, 10],
            "false": [np.nan, 0.2, 0.1, 0.0],
        }
    )
    assert Power(800, 1, 0, 0.9, 0.08, 0.0, table).sentence == (
        "With 800 windows of data like this, edges below strength 0.1 are mostly invisible, and "
        "92% of the stronger ones are found; 8% of the edges found are false."
    )


def test_weak_edges_are_said_to_be_invisible():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(100, 2))
    x[1:, 1] += 0.15 * x[:-1, 0]
    found = discover(x, max_lag=1, select=fc.TopK(1))  # edges there is no evidence for
    strict = replace(found, config=found.config.with_options(select="fdr", k=None))
    sentence = strict.power(repeats=5).sentence
    assert sentence.startswith("With 99 windows of data like this, ")
    assert "mostly invisible" in sentence or "most edges are invisible" in sentence


@pytest.mark.parametrize("forecaster", ["linear", "additive", "mlp"])
def test_what_is_no_edge_has_no_effect(forecaster):
    found = discover(chain(600), forecaster=forecaster, preset="quick")
    system, edges = along(found), found.graph.adjacency.values
    past = np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32)
    before = system.forecast(past)
    for source in range(3):
        for lag in (1, 2):
            changed = past.copy()
            changed[:, -lag, source] += 2.0
            moved = np.abs(system.forecast(changed) - before).max(0) > 0
            assert (moved == edges[:, source, lag - 1]).all()


def test_strength_is_the_size_of_the_linear_effect(strong):
    strengths = along(strong).strengths(np.random.default_rng(0).normal(size=(50, 2, 3)))
    effect = strong.relevance["effect"].values
    expected = np.abs(effect) * strong.graph.adjacency.values
    np.testing.assert_allclose(strengths, expected, atol=1e-6)
    strong_edges = strong.graph.edges
    assert np.sqrt(strong_edges["score"].max()) == pytest.approx(strengths.max(), rel=1e-4)


def test_half_of_the_edges_keep_their_strength(strong):
    factor = edge_factors(strong.graph, np.random.default_rng(0))
    edges = strong.graph.adjacency.values
    assert (factor[~edges] == 0).all()
    assert (factor[edges] == 1).sum() == 2
    assert ((factor[edges] > 0) & (factor[edges] <= 1)).all()


def test_simulated_series_resemble_the_data_and_hold_as_many_windows(strong):
    series, clipped = simulate_along(
        along(strong), noise_sd(strong.losses), 1998, np.random.default_rng(0)
    )
    chains, rows, _ = series.shape
    assert clipped == 0
    assert 1998 <= chains * (rows - 2) < 1998 + chains
    assert np.allclose(series.reshape(-1, 3).std(0), 1, atol=0.08)


def test_values_that_explode_are_cut_off_and_said_to_be(strong):
    grown = 3 * strong.graph.adjacency.values.astype(np.float32)
    series, clipped = simulate_along(
        along(strong, grown), noise_sd(strong.losses), 500, np.random.default_rng(0)
    )
    assert clipped > 0
    assert np.abs(series).max() <= BOUND
    power = Power(500, 1, 0, 1.0, 0.0, clipped, strong.power(repeats=1).table)
    assert "of the simulated values were cut off at 10 sd" in power.sentence


def test_the_same_seed_gives_the_same_power(strong, power):
    pd.testing.assert_frame_equal(strong.power().table, power.table)
    assert not strong.power(seed=1).table.equals(power.table)


def test_a_graph_without_edges_has_nothing_to_recover():
    found = discover(np.random.default_rng(5).normal(size=(300, 3)))
    assert len(found.graph) == 0
    power = found.power()
    assert power.recovered is None
    assert "there is no edge to recover" in power.sentence


def test_plain_values_and_back(power):
    again = Power.from_dict(json.loads(json.dumps(power.to_dict(), allow_nan=False)))
    pd.testing.assert_frame_equal(again.table, power.table)
    assert again.sentence == power.sentence


def test_repeats_must_be_a_number_of_times(strong):
    with pytest.raises(fc.InputError, match="between 1 and 10000, found 0"):
        strong.power(repeats=0)


def test_the_command_measures_and_keeps_the_power_of_a_saved_run(strong, power, tmp_path, command):
    folder = strong.save(tmp_path / "run")
    code, out, _ = command("power", folder, "--quiet")
    assert code == 0
    assert power.sentence in out
    assert json.loads((folder / "power.json").read_text()) == power.to_dict()
    kept = fc.load(folder).measured_power
    pd.testing.assert_frame_equal(kept.table, power.table)
    code, out, _ = command("power", folder, "--json", "--repeats", 1, "--quiet")
    assert json.loads(out)["repeats"] == 1
    strong.save(folder)  # a run without power must not keep another's
    assert not (folder / "power.json").exists()


def test_discover_measures_power_when_asked(tmp_path, command):
    data = tmp_path / "data.csv"
    pd.DataFrame(chain(300), columns=list("abc")).to_csv(data, index=False)
    code, out, _ = command("discover", data, "--max-lag", 2, "--forecaster", "linear", "--power",
        "--out", tmp_path / "run", "--quiet",
    )  # fmt: skip
    assert code == 0
    sentence = fc.load(tmp_path / "run").measured_power.sentence
    assert sentence in " ".join(out.split())


@pytest.fixture(scope="module")
def with_label():
    return fc.discover(fc.read(mixed(), labels=["weather"]), 2, forecaster="additive")


def test_labels_are_simulated_and_their_links_found_again(with_label):
    power = with_label.power(repeats=3)
    assert power.recovered == 1
    assert power.table["edges"].sum() == 3 * len(MIXED_EDGES)
    assert power.false <= 0.15  # one of about seven


def test_the_strength_of_a_label_is_that_of_its_score(with_label):
    owner = with_label.data.coding.of_column
    edges = with_label.graph.adjacency.values.astype(np.float32)[owner][:, owner]
    system = AlongGraph(Model(with_label.forecaster), by_step(edges))
    read = system.strengths(with_label.data.sampled.past)
    found = with_label.graph.edges.set_index(["source", "target", "lag"])["score"]
    names = with_label.data.variables
    for source, target, lag in MIXED_EDGES:
        own = read[names.index(target), names.index(source), lag - 1]
        assert own == pytest.approx(np.sqrt(found[source, target, lag]), rel=0.2)


def test_simulated_levels_hold_as_often_as_in_the_data(with_label):
    owner = with_label.data.coding.of_column
    edges = with_label.graph.adjacency.values.astype(np.float32)[owner][:, owner]
    system = AlongGraph(Model(with_label.forecaster), by_step(edges))
    noise, rng = noise_sd(with_label.losses), np.random.default_rng(0)
    series, clipped = simulate_along(system, noise, 4000, rng)
    own = with_label.data.labels[0].columns
    levels = series[..., own] * with_label.data.sd[own] + with_label.data.mean[own]
    assert clipped == 0
    assert np.allclose(np.sort(levels, axis=-1), [0, 0, 1], atol=1e-5)  # one level at a time
    np.testing.assert_allclose(levels.mean((0, 1)), with_label.data.mean[own], atol=0.05)

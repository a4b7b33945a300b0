"""Known domains, series and regimes: one forecaster, a graph for each."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

import forecause as fc
from fitted import fit_forecaster
from forecause.data import Panel, Windows
from systems import edge_set

CALM = {("a", "b", 1), ("c", "c", 1)}
STORM = {("a", "c", 2), ("c", "c", 1)}


def two_domains(rows=4000, seed=3, shuffled=False):
    """In calm rows a drives b, in storm rows a drives c; c always remembers itself."""
    rng = np.random.default_rng(seed)
    storm = np.arange(rows) >= rows // 2
    if shuffled:
        storm = (np.arange(rows) // 50) % 2 == 1
    x = rng.normal(size=(rows, 3))
    for t in range(2, rows):
        x[t, 2] += 0.5 * x[t - 1, 2]
        if storm[t]:
            x[t, 2] += 0.7 * x[t - 2, 0]
        else:
            x[t, 1] += 0.8 * x[t - 1, 0]
    table = pd.DataFrame(x, columns=list("abc"))
    return table.assign(weather=np.where(storm, "storm", "calm"))


@pytest.fixture(scope="module")
def found():
    return fc.discover(two_domains(), max_lag=2, domain="weather", forecaster="linear")


def test_every_domain_has_its_own_graph(found):
    domains = found.graph.domains
    assert list(domains) == ["calm", "storm"]
    assert edge_set(domains["calm"]) == CALM
    assert edge_set(domains["storm"]) == STORM


def test_all_data_together_have_the_edges_of_any_domain_and_say_where(found):
    assert edge_set(found.graph) == CALM | STORM
    where = found.graph.edges.set_index(["source", "target", "lag"])["domains"].to_dict()
    assert where == {("a", "b", 1): "calm", ("a", "c", 2): "storm", ("c", "c", 1): "all"}


def test_what_stays_and_what_changes(found):
    assert edge_set(found.graph.invariant) == CALM & STORM
    changes = found.graph.changes
    assert set(changes.index) == CALM ^ STORM
    assert np.isnan(changes.loc[("a", "b", 1), "storm"])
    assert changes.loc[("a", "b", 1), "calm"] > 0


def test_a_domain_that_comes_and_goes_is_one_domain():
    table = two_domains(shuffled=True)
    found = fc.discover(table, max_lag=2, domain="weather", forecaster="additive")
    assert edge_set(found.graph.domains["calm"]) == CALM
    assert edge_set(found.graph.domains["storm"]) == STORM


@pytest.mark.parametrize("forecaster", ["mlp"])
def test_the_index_helps_a_network_where_the_past_does_not_tell_the_domain(forecaster):
    windows = Windows.of(Panel.of(two_domains(1500, shuffled=True), domain="weather"), 2)
    losses = {
        known: fit_forecaster(forecaster, windows, preset="quick", domain_input=known).losses
        for known in (True, False)
    }
    told, untold = losses[True][forecaster], losses[False][forecaster]
    assert told["b"] < untold["b"] - 0.03
    assert told["c"] < untold["c"] - 0.03


@pytest.mark.parametrize("forecaster", ["linear", "additive", "mlp", "transformer"])
def test_gradients_of_a_domain_show_its_own_parents_only(forecaster):
    found = fc.discover(
        two_domains(2000),
        max_lag=2,
        domain="weather",
        forecaster=forecaster,
        preset="quick",
        select=fc.TopK(2, overall=True),
    )
    assert edge_set(found.graph.domains["calm"]) == CALM
    assert edge_set(found.graph.domains["storm"]) == STORM


def test_without_the_index_as_input_the_domains_are_still_read_apart():
    table = two_domains()
    found = fc.discover(
        table,
        max_lag=2,
        domain="weather",
        forecaster="linear",
        config=fc.Config(domain_input=False),
    )
    assert found.forecaster.domains == 0
    assert edge_set(found.graph.domains["storm"]) == STORM  # by the tests
    assert found.losses["linear"]["b"] > 0.8  # one line for both domains


def test_a_jacobian_is_of_the_variables_alone(found):
    windows = Windows.of(Panel.of(two_domains(), domain="weather"), 2)
    window = windows.draw(np.arange(5))
    assert found.forecaster.jacobian(window.past, domain=window.domain).shape == (5, 3, 2, 3)


def test_a_domain_with_a_handful_of_rows_is_named_and_gets_no_graph():
    table = two_domains()
    table.loc[:9, "weather"] = "fog"
    found = fc.discover(table, max_lag=2, domain="weather", forecaster="linear")
    assert list(found.graph.domains) == ["calm", "storm"]
    (alert,) = [a for a in found.alerts if a.code == "few-rows-in-domain"]
    assert "fog (8)" in alert.sentence


def test_a_single_domain_is_no_domain():
    table = two_domains().assign(weather="calm")
    found = fc.discover(table, max_lag=2, domain="weather", forecaster="linear")
    assert found.graph.domains == {}
    assert found.forecaster.domains == 0


def test_a_run_with_domains_comes_back_from_disk(found, tmp_path):
    back = fc.load(found.save(tmp_path / "run"))
    assert back.graph == found.graph
    assert back.data.domain_windows == found.data.domain_windows
    pd.testing.assert_frame_equal(back.forecast(3), found.forecast(3))


def test_an_older_run_with_the_domain_as_a_last_column_of_its_windows_still_loads(found, tmp_path):
    folder = found.save(tmp_path / "run")
    tensors = load_file(folder / "model.safetensors")
    about = json.loads((folder / "run.json").read_text())
    del about["files"], about["id"]  # which came later
    domain = torch.tensor(about["data"].pop("sample_domain")).double()
    sample = tensors["data.sample"]
    mark = domain[:, None, None].expand(-1, sample.shape[1], 1)
    save_file(
        {**tensors, "data.sample": torch.cat([sample, mark], 2)}, folder / "model.safetensors"
    )
    (folder / "run.json").write_text(json.dumps(about))
    back = fc.load(folder)
    assert back.data.sample_domain == found.data.sample_domain
    assert np.array_equal(back.data.sample, found.data.sample)
    now, before = (one.effect("a", "b", 1).samples for one in (back, found))
    assert np.array_equal(now, before)


def test_the_forecast_goes_on_in_the_last_domain(found):
    table = two_domains()
    table["weather"] = np.where(table["weather"] == "storm", "calm", "storm")
    other = fc.discover(table, max_lag=2, domain="weather", forecaster="linear")
    values = table[["a", "b", "c"]].to_numpy()
    # the last rows are storm: c follows a two rows back, b does not follow a
    expected = 0.5 * values[-1, 2] + 0.7 * values[-2, 0]
    assert found.forecast(1)["c"].iloc[0] == pytest.approx(expected, abs=0.2)
    assert abs(found.forecast(1)["b"].iloc[0]) < 0.2
    pd.testing.assert_frame_equal(found.forecast(1), other.forecast(1), atol=1e-4)


def test_every_series_can_have_its_graph():
    table = two_domains().rename(columns={"weather": "station"})
    found = fc.discover(
        table, max_lag=2, series="station", forecaster="linear", config=fc.Config(per_series=True)
    )
    assert edge_set(found.graph.domains["calm"]) == CALM
    assert edge_set(found.graph.domains["storm"]) == STORM


@pytest.mark.parametrize("asked", [{"regimes": "auto"}, {"per_series": True}])
def test_known_domains_and_looking_for_them_exclude_each_other(asked):
    with pytest.raises(fc.InputError, match="domains are known"):
        fc.discover(two_domains(), max_lag=2, config=fc.Config(domain="weather", **asked))


def test_unknown_regimes_get_the_graphs_that_known_ones_would():
    table = two_domains().drop(columns="weather")
    found = fc.discover(table, max_lag=2, regimes="auto", forecaster="linear")
    assert found.regimes.names == ("regime 1", "regime 2")
    assert abs(found.regimes.changes["row"].iloc[0] - 2000) < 80
    assert edge_set(found.graph.domains["regime 1"]) == CALM
    assert edge_set(found.graph.domains["regime 2"]) == STORM
    assert any("mechanism changes at row" in note for note in found.data.notes)


def test_regimes_come_back_from_disk(tmp_path):
    table = two_domains(2000).drop(columns="weather")
    found = fc.discover(table, max_lag=2, regimes=2, forecaster="linear")
    back = fc.load(found.save(tmp_path / "run")).regimes
    np.testing.assert_array_equal(back.of_row, found.regimes.of_row)
    pd.testing.assert_frame_equal(back.changes, found.regimes.changes)


def test_the_power_of_a_run_with_domains_is_that_of_its_domains(found):
    power = found.power(repeats=2)
    assert power.recovered > 0.9
    assert power.table["edges"].sum() == 2 * (len(CALM) + len(STORM))


def test_windows_know_the_domain_of_their_target_row():
    panel = Panel.of(two_domains(100), domain="weather")
    windows = Windows.of(panel, 2)
    drawn = windows.draw(np.array([47, 48]))
    assert drawn.domain.tolist() == [0, 1]
    assert drawn.past.shape == (2, 2, 3)
    assert len(windows.in_domain(0)) + len(windows.in_domain(1)) == len(windows)


def test_regimes_must_be_a_number_or_auto():
    with pytest.raises(fc.InputError, match="regimes must be 'auto' or a whole number"):
        fc.discover(two_domains(200), max_lag=1, regimes="many")


def test_a_label_that_changes_once_warns_of_nothing():
    table = two_domains(400)
    found = fc.discover(fc.read(table, labels=["weather"]), max_lag=1, forecaster="linear")
    assert "weather" in found.graph.variables

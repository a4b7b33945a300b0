"""Tables of numbers and labels from end to end: one variable, one node, whatever its columns."""

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.data import Windows
from forecause.forecast.attribution import READOUTS, relevance
from forecause.report.terminal import show_discovery
from mixed import MIXED_EDGES, mixed
from systems import edge_set


@pytest.fixture(scope="module")
def auto():
    return fc.discover(fc.read(mixed(), labels=["weather"]), 2, preset="quick")


@pytest.fixture(scope="module")
def additive():
    return fc.discover(fc.read(mixed(), labels=["weather"]), 3, forecaster="additive")


def test_a_mixed_system_is_found_by_the_default(auto):
    assert edge_set(auto.graph) == MIXED_EDGES
    assert auto.graph.variables == ("x", "weather", "y", "z")


@pytest.mark.parametrize(
    "options",
    [
        {"forecaster": "linear"},
        {"forecaster": "additive"},
        {"forecaster": "mlp", "preset": "quick"},
    ],
    ids=["linear", "additive", "mlp"],
)
def test_a_mixed_system_is_found_by_every_forecaster(options):
    found = fc.discover(fc.read(mixed(seed=1), labels=["weather"]), 3, **options)
    assert edge_set(found.graph) == MIXED_EDGES


def test_labels_that_nothing_drives_get_no_edges():
    rng = np.random.default_rng(0)
    to_itself, to_others = 0, 0  # the error rate holds for each of the two kinds of links
    for _ in range(8):
        data = pd.DataFrame({"a": rng.normal(size=1000), "b": rng.normal(size=1000)})
        data["c"], data["d"] = rng.choice(list("pqrs"), 1000), rng.choice(list("uv"), 1000)
        edges = fc.discover(fc.read(data, labels=["c", "d"]), 2, forecaster="linear").graph.edges
        own = int((edges["source"] == edges["target"]).sum())
        to_itself, to_others = to_itself + own, to_others + len(edges) - own
    assert to_others <= 1  # of 192 candidates
    assert to_itself <= 1  # of 64 candidates


def test_a_label_that_remembers_itself_has_a_self_link():
    rng = np.random.default_rng(0)
    level = np.zeros(1500, dtype=int)
    for t in range(1, 1500):
        level[t] = level[t - 1] if rng.random() < 0.6 else rng.integers(4)
    data = pd.DataFrame({"mode": np.array(list("abcd"))[level], "x": rng.normal(size=1500)})
    found = fc.discover(fc.read(data, labels=["mode"]), 2, forecaster="linear")
    assert edge_set(found.graph) == {("mode", "mode", 1)}


def test_the_effect_of_a_label_of_several_levels_has_no_sign(additive):
    edges = additive.graph.edges.set_index(["source", "target"])
    assert np.isnan(edges.loc[("x", "weather"), "effect"])
    assert edges.loc[("weather", "y"), "sign"] == 0
    assert edges.loc[("x", "x"), "sign"] == 1


def test_other_names_for_the_levels_change_nothing(additive):
    renamed = mixed(names=("q", "p", "r"))
    again = fc.discover(fc.read(renamed, labels=["weather"]), 3, forecaster="additive")
    assert again.graph == additive.graph
    assert again.relevance.equals(additive.relevance)
    pd.testing.assert_frame_equal(again.losses, additive.losses)


def two_levels(rows=1500, seed=0):
    """x makes `on` likely, and `on` raises y."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, rows))
    on = np.zeros(rows)
    for t in range(1, rows):
        on[t] = rng.random() < 1 / (1 + np.exp(-1.5 * x[t - 1]))
        y[t] += 0.8 * on[t - 1]
    return pd.DataFrame({"x": x, "on": on, "y": y})


@pytest.mark.parametrize("forecaster", ["linear", "additive", "mlp"])
def test_two_levels_agree_with_the_numbers_0_and_1(forecaster):
    data = two_levels()
    as_number = fc.discover(data, 2, forecaster=forecaster, preset="quick")
    as_label = fc.discover(fc.read(data, labels=["on"]), 2, forecaster=forecaster, preset="quick")
    assert edge_set(as_label.graph) == edge_set(as_number.graph) == {("x", "on", 1), ("on", "y", 1)}
    assert as_label.graph.edges["sign"].tolist() == as_number.graph.edges["sign"].tolist() == [1, 1]
    close = 0.02 if forecaster != "mlp" else 0.15
    np.testing.assert_allclose(as_label.scores, as_number.scores, atol=close)
    if forecaster != "mlp":  # whose suspects decide which products are tested
        p_values = (found.relevance["p_value"] for found in (as_label, as_number))
        np.testing.assert_allclose(*p_values, rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("readout", [r for r in READOUTS if r not in ("attention", "rollout")])
def test_every_readout_sees_the_label(auto, readout):
    windows = Windows.of(fc.Panel.of(mixed(), labels=["weather"]), 2)
    sample = windows.sample(300, np.random.default_rng(0))
    scores = relevance(auto.forecaster, sample, readout)["relevance"]
    for source, target, lag in MIXED_EDGES:
        of_target = scores.sel(target=target)
        assert float(of_target.sel(source=source, lag=lag)) == float(of_target.max())


def test_a_shift_common_to_all_levels_means_nothing():
    windows = Windows.of(fc.Panel.of(mixed(500), labels=["weather"]), 2)
    model = fc.discover(windows.panel, 2, forecaster="linear").forecaster
    before = relevance(model, windows)["relevance"]
    sd = windows.scale.sd[1:4]
    model.weight[..., 1:4] += 0.7 * sd  # the levels add up to 1: a constant
    np.testing.assert_allclose(relevance(model, windows)["relevance"], before, atol=1e-5)


def test_cross_fitting_works_with_labels():
    found = fc.discover(
        fc.read(mixed(), labels=["weather"]),
        3,
        forecaster="additive",
        config=fc.Config(cross_fit=2),
    )
    assert edge_set(found.graph) == MIXED_EDGES
    assert float(found.scores.sel(target="z").max()) < 0.05


@pytest.fixture(scope="module")
def wide():
    return fc.discover(
        fc.read(mixed(), labels=["weather"]),
        2,
        forecaster="mlp",
        preset="quick",
        config=fc.Config(head="gaussian"),
    )


def test_a_distribution_is_learned_with_labels(wide):
    assert edge_set(wide.graph) == MIXED_EDGES
    assert wide.config.edges.readout == "score"
    assert wide.nll.loc["weather", "mlp-gaussian"] < wide.nll.loc["weather", "mean"]


def test_rules_speak_of_variables():
    data = mixed(1500)
    found = fc.discover(
        fc.read(data, labels=["weather"]),
        2,
        preset="quick",
        forecaster="mlp",
        forbid=["weather -> y"],
        require=["weather -> z @ 1"],
    )
    assert ("weather", "y", 2) not in edge_set(found.graph)
    assert ("weather", "z", 1) in edge_set(found.graph)
    past = np.random.default_rng(0).normal(size=(20, 2, 6)).astype(np.float32)
    slopes = found.forecaster.jacobian(past)  # of the columns x, three levels, y, z
    assert float(np.abs(slopes[:, 4, :, 1:4]).max()) == 0
    assert float(np.abs(slopes[:, 5, :, 1:4]).max()) > 0
    with pytest.raises(fc.InputError, match="'weather=sun', which is not a variable"):
        fc.discover(fc.read(data, labels=["weather"]), 2, forbid=["weather=sun -> y"])


def test_domains_have_graphs_of_variables():
    calm, storm = mixed(1200, seed=3), mixed(1200, seed=4)
    storm["y"] = np.random.default_rng(0).normal(size=1200)  # the weather does nothing here
    data = pd.concat([calm, storm]).assign(part=["calm"] * 1200 + ["storm"] * 1200)
    found = fc.discover(fc.read(data, labels=["weather"], domain="part"), 2, forecaster="additive")
    assert edge_set(found.graph.domains["calm"]) == MIXED_EDGES
    assert edge_set(found.graph.domains["storm"]) == MIXED_EDGES - {("weather", "y", 2)}


def test_a_run_with_labels_is_saved_and_loaded(auto, tmp_path):
    again = fc.load(auto.save(tmp_path / "run"))
    assert again.graph == auto.graph
    assert again.relevance.equals(auto.relevance)
    assert again.data.labels == auto.data.labels
    pd.testing.assert_frame_equal(again.forecast(5), auto.forecast(5))
    page = (tmp_path / "run" / "report.html").read_text()
    assert "the chance of weather being" in page
    assert "weather=" not in (tmp_path / "run" / "graph.json").read_text()


def test_the_surprise_is_saved_and_shown(wide, tmp_path, capsys):
    folder = wide.save(tmp_path / "run")
    pd.testing.assert_frame_equal(fc.load(folder).nll, wide.nll)
    assert "surprise" in (folder / "report.html").read_text()
    show_discovery(wide, folder, verbose=True)
    shown = " ".join(capsys.readouterr().out.split())  # lines are broken
    assert "negative log-likelihood" in shown
    assert "Brier score" in shown


def test_a_label_is_forecast_by_the_chance_of_each_level(auto):
    ahead = auto.forecast(4)
    levels = ["weather=sun", "weather=snow", "weather=rain"]
    assert sorted(set(ahead) - set(levels)) == ["x", "y", "z"]
    np.testing.assert_allclose(ahead[levels].sum(axis=1), 1, atol=1e-6)
    assert (ahead[levels] > 0).all(axis=None)


def test_a_label_can_be_held_and_drawn(auto):
    held = auto.simulate_do({"weather": "sun"}, 6)
    other = auto.simulate_do({"weather": ["snow"] * 6}, 6)
    np.testing.assert_allclose(held["weather=sun"], 1, atol=1e-6)
    # two rows later y follows, by 0.9 up or not at all or down
    assert held["y"].iloc[2:].mean() - other["y"].iloc[2:].mean() > 0.6
    drawn = auto.simulate_do({}, 3, draws=50, seed=1)
    levels = drawn[[name for name in drawn if name.startswith("weather=")]]
    assert set(np.unique(levels.round(6))) == {0, 1}
    with pytest.raises(fc.InputError, match="must be held at one of"):
        auto.simulate_do({"weather": "fog"}, 3)
    with pytest.raises(fc.InputError, match="'weather' holds labels"):
        auto.effect("weather", "y", 2)


def test_alerts_speak_of_variables_and_not_of_the_levels_of_one_label(auto):
    assert not [a for a in auto.alerts if a.code in ("within-a-row", "near-duplicates")]
    named = {name for alert in auto.alerts for name in alert.variables}
    assert named <= set(auto.graph.variables)


def test_plots_of_a_mixed_run(auto):
    import matplotlib.pyplot as plt

    for draw in (auto.plot.interventions, auto.plot.heatmap, auto.plot.graph):
        plt.close(draw().figure)
    plt.close(auto.plot.forecast("weather").figure)

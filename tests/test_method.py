import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.config import Config
from forecause.data import Windows
from forecause.edges.knowledge import Knowledge
from forecause.edges.select import global_top_k
from forecause.forecast.attribution import relevance
from forecause.networks.settings import DeepTransformer, Transformer
from forecause.regression import p_values
from systems import CHAIN_EDGES, chain, edge_set

EDGE = ["source", "target", "lag"]
SMALL = Transformer(width=8).trained_with(max_steps=40)


def table(values, names="abc"):

    return pd.DataFrame(values, columns=list(names))


def test_a_chain_is_found_without_being_told_anything_whatever_the_order_of_columns():
    found = fc.discover(table(chain()[:, [2, 0, 1]], "cab"), max_lag=3, preset="quick")
    assert edge_set(found.graph) == CHAIN_EDGES
    edges = found.graph.edges.set_index(["source", "target"])
    assert edges.loc[("a", "b"), "sign"] == 1
    assert edges.loc[("b", "c"), "sign"] == -1
    # effects are in standard deviations: 0.8 sd(a) / sd(b)
    assert edges.loc[("a", "b"), "effect"] == pytest.approx(0.8 / 1.64**0.5, abs=0.05)


@pytest.mark.parametrize("forecaster", ["linear", "additive", "mlp", "cnn"])
def test_every_forecaster_finds_the_chain(forecaster):
    found = fc.discover(table(chain()), max_lag=2, forecaster=forecaster, preset="quick")
    assert edge_set(found.graph) == CHAIN_EDGES


@pytest.fixture(scope="module")
def transformer():
    return fc.discover(table(chain()), max_lag=2, forecaster="transformer", preset="quick")


@pytest.mark.parametrize("readout", ["gradient", "input-gradient", "lrp", "cp-lrp", "intervention"])
def test_every_readout_ranks_the_chains_edges_first(transformer, readout):
    windows = Windows.of(fc.Panel.of(table(chain())), 2)
    scores = relevance(transformer.forecaster, windows, readout)["relevance"]
    strongest = fc.LaggedGraph.from_scores(scores, global_top_k(scores, 3))
    assert edge_set(strongest) == CHAIN_EDGES


def test_the_transformer_finds_the_chain(transformer):
    assert edge_set(transformer.graph) == CHAIN_EDGES


@pytest.mark.parametrize("forecaster", ["linear", "additive"])
def test_permuting_the_columns_permutes_the_graph(forecaster):
    values, order = chain(), [2, 0, 1]
    straight = fc.discover(table(values), max_lag=2, forecaster=forecaster)
    turned = fc.discover(table(values[:, order], "cab"), max_lag=2, forecaster=forecaster)
    assert edge_set(turned.graph) == edge_set(straight.graph)
    aligned = turned.scores.sel(target=list("abc"), source=list("abc"))
    np.testing.assert_allclose(aligned, straight.scores, rtol=1e-3, atol=1e-6)


def test_rescaling_a_variable_changes_nothing():
    values = chain()
    scaled = values * [1e-3, 1.0, 1e4] + [5.0, 0.0, -1e5]
    before = fc.discover(table(values), max_lag=2, forecaster="additive")
    after = fc.discover(table(scaled), max_lag=2, forecaster="additive")
    np.testing.assert_allclose(after.scores, before.scores, rtol=1e-3, atol=1e-6)
    assert edge_set(after.graph) == edge_set(before.graph)


@pytest.mark.parametrize("seed", range(5))
def test_a_pure_noise_variable_gets_no_edges(seed):
    noise = np.random.default_rng(100 + seed).normal(size=(2000, 1))
    values = np.hstack([chain(seed=seed), noise])
    found = fc.discover(table(values, "abcn"), max_lag=2, forecaster="linear")
    assert edge_set(found.graph) == CHAIN_EDGES


def test_the_same_seed_gives_the_same_graph_bit_for_bit():
    one, again = (
        fc.discover(table(chain(300)), 2, forecaster=SMALL, select=fc.TopK(1)) for _ in range(2)
    )
    assert len(one.graph) == 3
    assert again.graph == one.graph


def test_another_seed_gives_other_scores():
    one, two = (
        fc.discover(table(chain(300)), 2, forecaster=SMALL, select=fc.TopK(1), seed=s)
        for s in (0, 1)
    )
    assert not one.scores.equals(two.scores)


def test_windows_do_not_cross_series():
    pieces = [chain(400, seed) + 20 * seed for seed in range(3)]
    pieces = [piece - piece.mean(0) for piece in pieces]
    found = fc.discover([table(piece) for piece in pieces], max_lag=2, forecaster="linear")
    assert found.data.windows == 3 * 398
    assert edge_set(found.graph) == CHAIN_EDGES


def test_missing_values_are_filled_or_cost_windows_but_not_the_graph():
    values = chain(3000)
    values[np.random.default_rng(0).random(values.shape) < 0.02] = np.nan
    filled = fc.discover(table(values), max_lag=2, forecaster="linear")
    assert filled.data.lost_share == 0
    assert edge_set(filled.graph) == CHAIN_EDGES
    count = int(np.isnan(values).sum())
    assert any(note.startswith(f"{count} missing values") for note in filled.data.notes)
    found = fc.discover(fc.read(table(values), gaps="drop"), max_lag=2, forecaster="linear")
    expected = 1 - 0.98**9  # a window of three rows and three variables must be complete
    assert found.data.lost_share == pytest.approx(expected, abs=0.03)
    assert edge_set(found.graph) == CHAIN_EDGES


def test_selection_rules_and_their_limits():
    values = table(chain(500))
    by_rank = fc.discover(values, 2, forecaster="additive", select=fc.TopK(1, by="rank"))
    assert edge_set(by_rank.graph) >= {("a", "b", 1), ("b", "c", 2)}
    assert len(by_rank.graph) == 3
    steady = fc.discover(
        values, 2, forecaster="additive", select=fc.TopK(4, by="rank/sd", overall=True)
    )
    ratio = steady.relevance["mean_rank"] / steady.relevance["sd_rank"]
    least = ratio.values.ravel()[ratio.values.argsort(axis=None)[-4]]
    assert steady.graph.adjacency.equals(ratio >= least)
    strict = fc.discover(values, 2, forecaster="linear", select="fdr", fdr=1e-12)
    assert edge_set(strict.graph) <= CHAIN_EDGES
    with pytest.raises(fc.InputError, match=r"setting fdr=2: it should be less than 1"):
        fc.discover(values, 2, fdr=2)
    with pytest.raises(fc.InputError, match="There is no option 'speed'"):
        fc.discover(values, 2, speed=9)


def test_the_paper_preset_brings_the_papers_rules():
    settings = Config.of(preset="paper")
    assert settings.forecasting.forecaster == "transformer"
    assert (settings.edges.readout, settings.edges.select, settings.edges.k) == ("lrp", "top-k", 3)
    assert Config.of(preset="paper", readout="gradient").edges.readout == "gradient"


def test_a_head_that_learns_the_distribution_brings_the_score_readout():
    assert Config.of().edges.readout == "gradient"
    assert Config.of(head="gaussian").edges.readout == "score"
    assert Config.of(head="gaussian", readout="lrp").edges.readout == "lrp"
    assert Config.of(head="mixture", preset="paper").edges.readout == "score"
    with pytest.raises(fc.InputError, match="setting head='poisson'"):
        Config.of(head="poisson")


def test_a_run_with_learned_variance_is_saved_and_loaded(tmp_path):
    values = table(chain(600))
    found = fc.discover(
        values,
        2,
        forecaster="mlp",
        preset="quick",
        select=fc.TopK(1),
        config=fc.Config(head="auto"),
    )
    assert edge_set(found.graph) >= {("a", "b", 1), ("b", "c", 2)}
    again = fc.load(found.save(tmp_path / "run"))
    assert again.config == found.config
    windows = Windows.of(fc.Panel.of(values), 2).at(np.arange(50))
    expected = relevance(found.forecaster, windows, "score")
    assert relevance(again.forecaster, windows, "score").equals(expected)


def test_without_enough_rows_for_tests_top_k_still_works():
    values = table(chain(40))
    with pytest.raises(fc.InputError, match='choose edges by select="top-k"'):
        fc.discover(values, max_lag=12, forecaster="linear")
    found = fc.discover(values, max_lag=12, forecaster="linear", select=fc.TopK(2, overall=True))
    assert found.graph.edges["q_value"].isna().all()


def test_a_forecast_continues_the_series():
    values = chain(2000)
    found = fc.discover(table(values + 10), max_lag=2, forecaster="linear")
    ahead = found.forecast(steps=2)
    assert ahead.columns.tolist() == ["a", "b", "c"]
    assert ahead.loc[1, "b"] == pytest.approx(10 + 0.8 * values[-1, 0], abs=0.15)
    expected = 10 - 0.7 * values[-2, 1] + 0.4 * values[-1, 2]
    assert ahead.loc[1, "c"] == pytest.approx(expected, abs=0.15)
    # b follows a, and nothing is known of a's next value
    assert ahead.loc[2, "b"] == pytest.approx(10, abs=0.15)


def test_a_forecast_needs_a_complete_end():
    values = chain(500)
    values[-1, 0] = np.nan
    assert len(fc.discover(table(values), max_lag=2, forecaster="linear").forecast(3)) == 3
    found = fc.discover(fc.read(table(values), gaps="drop"), max_lag=2, forecaster="linear")
    with pytest.raises(fc.InputError, match="last 2 rows of the series hold missing values"):
        found.forecast(3)
    with pytest.raises(fc.InputError, match="Unknown series 'x'"):
        found.forecast(1, series="x")


def test_the_device_must_exist():
    with pytest.raises(fc.InputError, match="device 'gpu9' is unknown"):
        fc.discover(table(chain(200)), 1, device="gpu9", forecaster="linear")


def test_the_usual_error_rate_is_stricter_where_rows_are_plenty_and_is_kept_with_the_run():
    few = fc.discover(table(chain(400)), 1, forecaster="linear").config.edges.fdr
    many = fc.discover(table(chain(2000)), 1, forecaster="linear").config.edges.fdr
    asked = fc.discover(table(chain(400)), 1, forecaster="linear", fdr=0.1).config.edges.fdr
    assert (few, many, asked) == (0.05, 0.02, 0.1)


def test_where_links_are_weak_more_is_accepted_and_the_run_says_how_much():
    values = fc.simulate(nodes=8, max_lag=3, in_degree=2.5, rows=250, seed=1).frame()
    usual = fc.discover(values, 3, forecaster="linear")
    assert usual.config.edges.fdr == 0.09  # less the more windows an input has
    strict = fc.discover(values, 3, forecaster="linear", fdr=0.05)
    assert strict.config.edges.fdr == 0.05
    told = [
        any("links found are weak" in note for note in run.data.notes) for run in (usual, strict)
    ]
    assert told == [True, False]
    assert len(strict.graph) < len(usual.graph)
    again = fc.discover(values, config=usual.config)
    assert (again.graph.adjacency == usual.graph.adjacency).all()


def test_a_run_works_nothing_out_twice(monkeypatch):
    """What is split, adjusted by Benjamini-Hochberg and allowed: each once, then passed on."""
    done = []

    def counted(owner, name, key):
        original = getattr(owner, name)

        def wrapper(*asked):
            done.append((name, key(*asked)))
            return original(*asked)

        monkeypatch.setattr(owner, name, wrapper)

    counted(Windows, "_split", lambda windows, share: (windows.rows.tobytes(), share))
    counted(p_values, "_benjamini_hochberg", lambda p: np.sort(p).tobytes())
    counted(Knowledge, "allowed", lambda *_: "of this run")
    fc.discover(table(chain()), max_lag=2, forecaster="linear")
    assert len(done) == len(set(done))
    assert {name for name, _ in done} == {"_split", "_benjamini_hochberg", "allowed"}


def test_the_paper_preset_recovers_a_chain_end_to_end(tmp_path):
    values = table(chain(800))
    brief = DeepTransformer.of_preset("paper").trained_with(max_steps=60, cooldown=10, rounds=0)
    run = fc.discover(values, 2, preset="paper", forecaster=brief, select=fc.TopK(2), seed=3)
    settings = run.forecaster.settings
    assert (settings.width, settings.heads, settings.layers) == (64, 4, 4)
    assert settings.teacher_forcing
    edges = run.config.edges
    assert (edges.readout, edges.select, edges.by) == ("lrp", "top-k", "score")
    assert edge_set(run.graph) >= {("a", "b", 1), ("b", "c", 2)}
    assert len(run.graph) == 6
    run.save(tmp_path / "run")
    assert edge_set(fc.load(tmp_path / "run").graph) == edge_set(run.graph)


def test_the_presets_of_the_paper_are_its_deep_and_its_shallow_transformer():
    for preset, layers in {"paper": 4, "paper-shallow": 1}.items():
        config = fc.Config.of(preset=preset)
        spec = Transformer.of_preset(config.forecasting.preset)
        assert (spec.kind, spec.layers) == ("deep-transformer", layers)
        assert config.edges.k == 3


@pytest.mark.parametrize("rows", [400, 1500], ids=["few rows", "many rows"])
@pytest.mark.parametrize("rule", ["a <- *", "* <- *"])
def test_a_variable_that_nothing_may_drive_has_no_cause(rows, rule):
    noise = np.random.default_rng(0).normal(size=(rows, 4))
    noise[1:, 2] += 0.8 * noise[:-1, 1]
    found = fc.discover(pd.DataFrame(noise, columns=list("abcd")), max_lag=2, forbid=[rule])
    edges = found.graph.edges
    assert "a" not in set(edges["target"])
    assert (("b", "c") in zip(edges["source"], edges["target"], strict=True)) == (rule != "* <- *")


@pytest.fixture(scope="module")
def chain_run():
    return fc.discover(table(chain(600)), 2, forecaster="linear")


def test_a_run_is_read_again_as_discover_would_read_it_without_training(chain_run, monkeypatch):
    rule, asked = fc.TopK(2), {"forecaster": "linear", "readout": "input-gradient"}
    whole = fc.discover(table(chain(600)), 2, select=rule, **asked)
    monkeypatch.setattr("forecause.method.fit_all", None)  # nothing is fitted from here on
    again = chain_run.reread(readout="input-gradient", select=rule)
    pd.testing.assert_frame_equal(again.graph.edges[EDGE], whole.graph.edges[EDGE])
    np.testing.assert_allclose(again.relevance["relevance"], whole.relevance["relevance"])
    assert again.causal is None
    assert "read anew" in again.simulate_do({"a": 1.0}, 2).attrs["caveat"]


def test_another_error_rate_is_read_from_the_same_tests(chain_run):
    strict = chain_run.reread(fdr=1e-12)
    assert (strict.graph.edges["q_value"] <= 1e-12).all()
    assert len(strict.graph) < len(chain_run.reread(fdr=0.5).graph)
    assert strict.config.edges.fdr == 1e-12


def test_edges_without_tests_cannot_be_read_by_tests(chain_run):
    with pytest.raises(fc.InputError, match="tested no input"):
        chain_run.reread(select=fc.TopK(1)).reread(select="fdr")


def test_lrp_of_a_closed_form_says_what_it_is():
    run = fc.discover(table(chain(300)), 2, forecaster="linear", readout="lrp")
    (said,) = (note for note in run.data.notes if "the readout lrp is input x gradient" in note)
    again = run.reread(readout="gradient")
    assert said not in again.data.notes
    assert said in again.reread(readout="lrp").data.notes


def test_lrp_of_a_network_is_not_called_something_else():
    small = Transformer(width=8).trained_with(max_steps=5)
    for asked in ({"forecaster": small}, {"forecaster": "mlp", "preset": "quick"}):
        run = fc.discover(table(chain(300)), 2, readout="lrp", **asked)
        assert not any("input x gradient" in note for note in run.data.notes)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: fc.forecasters.MLP(hiden=64), "no setting of MLP: 'hiden'; did you mean 'hidden'"),
        (lambda: fc.forecasters.MLP(hidden="wide"), "The setting hidden='wide'"),
    ],
)
def test_a_misspelt_setting_of_a_forecaster_is_told_with_the_nearest_name(wrong, said):
    with pytest.raises(fc.InputError, match=said):
        wrong()


def test_a_torch_module_is_told_where_it_goes():
    with pytest.raises(fc.InputError, match=r"torch module goes to fc.drivers\(model, data\)"):
        fc.discover(np.zeros((50, 2)), forecaster=object())


def test_what_is_held_is_shown_as_given_and_must_be_given_by_name(chain_run):
    held = chain_run.simulate_do({"a": 0, "b": [0.1, 0.2, 0.3]}, 3)
    assert held["a"].tolist() == [0.0] * 3
    assert held["b"].tolist() == [0.1, 0.2, 0.3]
    drawn = chain_run.simulate_do({"b": [0.1, 0.2, 0.3]}, 3, draws=4)
    assert drawn["b"].tolist() == [0.1, 0.2, 0.3] * 4
    with pytest.raises(fc.InputError, match=r"must be given by name, as \{'a': 3\}; found 'a=3'"):
        chain_run.simulate_do("a=3")
    with pytest.raises(fc.InputError, match=r"must be given by name, as \{'oil': 3\}"):
        chain_run.simulate_do(["a"])
    with pytest.raises(fc.InputError, match="'a' must be held at numbers"):
        chain_run.simulate_do({"a": "much"})

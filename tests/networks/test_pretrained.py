"""The pretrained forecaster on a tiny network made here: causality, identity, fitting, files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.linear_model import Ridge

import forecause as fc
from fitted import fit_forecaster
from forecause.config import Config
from forecause.data import Panel, Windows
from forecause.errors import InputError
from forecause.forecast.attribution import relevance
from forecause.forecast.attribution.readouts import CP_LRP
from forecause.forecast.forecaster import FitData, squared_errors
from forecause.networks.network import Network
from forecause.networks.pretrained import PretrainedModel
from forecause.networks.pretrained.context import PENALTIES, TERMS, Context, terms
from forecause.networks.pretrained.network import ContextNetwork, load_network, save_network
from forecause.networks.settings import ContextSettings, Pretrained, TrainingSettings
from systems import CHAIN_EDGES, chain, edge_set
from tensors import drawn

TINY = ContextSettings(width=8, heads=2, layers=1, node_width=3)
A_FEW_STEPS = TrainingSettings(
    learning_rate=1e-2, batch_size=1024, max_steps=30, look_every=10, warmup_steps=1
)


def make_network(seed: int = 0) -> ContextNetwork:
    """A random network whose gates depend on what it reads."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ContextNetwork(TINY)
    network.gates.weight.data *= 5
    return network


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "weights.safetensors"
    save_network(make_network(), path, {"rounds": 0})
    return path


def fitted(windows: Windows, weights: Path, **changes) -> PretrainedModel:
    settings = Pretrained.zero_shot().model_copy(update={"weights": str(weights), **changes})
    torch.manual_seed(0)
    model = PretrainedModel(windows.shape, settings)
    early, late = windows.split(0.2)
    model.fit(FitData(early, late))
    return model


def test_terms_are_uncorrelated_under_a_standard_normal():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=200_000))
    assert np.allclose(np.corrcoef(terms(x).T), np.eye(TERMS), atol=0.01)
    assert np.allclose(terms(x).std(0), 1, atol=0.01)


def test_the_solutions_in_context_are_ridge_regressions(chain_windows):
    window = drawn(chain_windows, 300).rows
    solutions = Context.of(window[None]).read().solutions[0]  # (target, token, solution, term)
    past, target = window[:, :-1].double(), window[:, -1].double()
    curved, straight = terms(past).flatten(1), past.flatten(1)
    for place, penalty in enumerate(PENALTIES):
        oracle = Ridge(alpha=penalty).fit(curved, target).coef_
        assert np.allclose(solutions[:, :, place].flatten(1), oracle, atol=1e-4)
        oracle = Ridge(alpha=penalty).fit(straight, target).coef_
        assert np.allclose(solutions[:, :, place + len(PENALTIES), 0], oracle, atol=1e-4)
        assert not solutions[:, :, place + len(PENALTIES), 1:].any()


def test_a_context_is_the_sum_of_its_parts(chain_windows):
    window = drawn(chain_windows, 100).rows[None]
    whole, parts = Context.of(window), Context.of(window[:, :30]) + Context.of(window[:, 30:])
    assert torch.allclose(whole.read().about, parts.read().about, atol=1e-3)


def test_a_network_that_believes_one_solution_forecasts_as_it_does(chain_windows):
    network = ContextNetwork(TINY)
    network.gates.weight.data.zero_()
    network.gates.bias.data.unflatten(0, (-1, TERMS))[-2] = 50.0  # the last one; then comes none
    window = drawn(chain_windows, 300).rows
    equations = network(Context.of(window[None]), torch.zeros(1, 3, 3))
    past = window[:, :-1].flatten(1).double()
    oracle = Ridge(alpha=PENALTIES[-1]).fit(past, window[:, -1].double()).predict(past)
    assert np.allclose(equations.forecast(window[None, :, :-1])[0].detach(), oracle, atol=1e-3)


def test_rows_after_the_training_part_change_no_equation(weights):
    """No forecast sees its target or later rows: what is held out never enters the context."""
    before = chain(400)
    after = before.copy()
    after[330:] = np.random.default_rng(1).normal(size=after[330:].shape)
    scale = Windows.of(Panel.from_arrays([before], list("abc")), 2).scale
    models = []
    for values in (before, after):
        windows = Windows.of(Panel.from_arrays([values], list("abc")), 2)
        models.append(fitted(Windows(windows.panel, 2, scale, windows.rows), weights))
    assert torch.equal(models[0].get_buffer("weight"), models[1].get_buffer("weight"))
    assert models[0].get_buffer("weight").abs().max() > 0.05


def test_a_forecast_reads_its_own_past_alone(chain_windows, weights):
    model = fitted(chain_windows, weights)
    past = drawn(chain_windows, 4).past.requires_grad_()
    model(past)[1].sum().backward()
    assert past.grad[1].abs().min() > 0
    assert not past.grad[[0, 2, 3]].any()


def test_permuted_variables_with_their_node_vectors_give_the_permuted_graph(weights):
    order = [2, 0, 1]
    values = chain(500)
    node = torch.randn(3, TINY.node_width)
    found = []
    for columns, own in (([0, 1, 2], node), (order, node[order])):
        names = ["abc"[c] for c in columns]
        windows = Windows.of(Panel.from_arrays([values[:, columns]], names), 2)
        settings = Pretrained.zero_shot().model_copy(update={"weights": str(weights)})
        model = PretrainedModel(windows.shape, settings)
        model.node.data.copy_(own)
        model.fit(FitData(*windows.split(0.2)))
        found.append(relevance(Network(model), windows)["relevance"])
    permuted = found[1].sel(target=list("abc"), source=list("abc"))
    assert np.allclose(found[0], permuted, rtol=1e-3)


def test_node_vectors_are_what_tells_equal_variables_apart():
    one = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 300, 3, 1)).astype(np.float32))
    twice = Context.of(one.expand(-1, -1, -1, 2))
    network = make_network()

    def difference(node: torch.Tensor) -> float:
        weight = network(twice, node[None]).weight[0].detach()
        return float((weight[0, :, 0] - weight[1, :, 1]).abs().max())

    assert difference(torch.zeros(2, TINY.node_width)) < 1e-5
    assert difference(torch.eye(2, TINY.node_width)) > 1e-3


def test_relevance_propagation_conserves_the_forecast(chain_windows, weights):
    model = fitted(chain_windows, weights)
    past = drawn(chain_windows, 20).past
    shares = model.jacobian(past, CP_LRP) * past[:, None]
    at_zero = model(torch.zeros_like(past[:1]))
    expected = model(past) - model.get_buffer("intercept")
    assert torch.allclose(shares.sum((2, 3)), expected, atol=1e-4)
    assert at_zero.abs().max() > 0  # a bell is not 0 where its input is


def test_forbidden_inputs_do_not_reach_their_target(chain_windows, weights):
    allowed = torch.ones(3, 2, 3, dtype=torch.bool)
    allowed[1, :, 0] = False  # a must not drive b
    settings = Pretrained.zero_shot().model_copy(update={"weights": str(weights)})
    model = PretrainedModel(chain_windows.shape, settings)
    model.constrain(allowed)
    model.fit(FitData(*chain_windows.split(0.2)))
    weight = model.get_buffer("weight")[0]
    assert not weight[1, :, 0].any()
    assert weight[0, :, 0].abs().min() > 0


def test_every_domain_has_equations_of_its_own(weights):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(800, 2))
    values[1:, 1] += np.where(np.arange(1, 800) < 400, 1.0, -1.0) * values[:-1, 0]
    panel = Panel.from_arrays([values], ["a", "b"])
    panel = panel.with_domain((np.arange(800) >= 400).astype(np.int64), ("early", "late"))
    windows = Windows.of(panel, 1)
    network = ContextSettings(width=8, heads=2, layers=1)
    settings = Pretrained.zero_shot().model_copy(update={"network": network, "domains": 2})
    model = PretrainedModel(windows.shape, settings)
    model.fit(FitData(*windows.split(0.2)))
    window = windows.draw(np.array([10, 790]))
    slopes = Network(model).jacobian(window.past, domain=window.domain)[:, 1, 0, 0]
    assert slopes[0] > 0.3
    assert slopes[1] < -0.3


def test_fine_tuning_changes_norms_and_node_vectors_and_lowers_the_loss(chain_windows, weights):
    zero_shot = fitted(chain_windows, weights)
    tuned = fitted(chain_windows, weights, training=A_FEW_STEPS)
    kept = load_network(weights).state_dict()
    for name, weight in tuned.network.state_dict().items():
        assert torch.equal(weight, kept[name]) == ("norm" not in name), name
    assert not torch.equal(tuned.node, zero_shot.node)
    late = chain_windows.split(0.2)[1]
    losses = [squared_errors(Network(model), late).mean() for model in (tuned, zero_shot)]
    assert losses[0] < losses[1]


def test_zero_shot_changes_nothing_and_seeds_reproduce(chain_windows, weights):
    model, again = (
        fit_forecaster("pretrained", chain_windows, weights=str(weights), seed=3).forecaster
        for _ in range(2)
    )
    kept = load_network(weights).state_dict()
    assert all(torch.equal(w, kept[name]) for name, w in model.module.network.state_dict().items())
    for name, values in again.state().items():
        np.testing.assert_array_equal(values, model.state()[name])


def test_a_saved_run_comes_back_without_the_weights(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_network(ContextNetwork(TINY), path, {})
    found = fc.discover(
        Panel.from_arrays([chain(800)], list("abc")),
        2,
        preset="quick",
        config=fc.Config(forecaster="pretrained", weights=str(path)),
    )
    assert edge_set(found.graph) == CHAIN_EDGES
    found.save(tmp_path / "run")
    path.unlink()
    again = fc.load(tmp_path / "run")
    past = np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32)
    np.testing.assert_array_equal(again.forecaster(past), found.forecaster(past))


def test_weights_come_back_from_a_file_and_from_a_folder(weights):
    for place in (weights, weights.parent):
        found = load_network(place)
        expected = make_network().state_dict()
        assert found.settings == TINY
        assert all(torch.equal(w, expected[n]) for n, w in found.state_dict().items())


def test_wrong_weights_are_an_input_error(tmp_path, weights):
    other, text, part = tmp_path / "other.safetensors", tmp_path / "text", tmp_path / "part"
    save_file({"a": torch.zeros(1)}, other)
    text.write_text("hello")
    about = {"format": "forecause.pretrained/1", "network": TINY.model_dump_json()}
    tensors = load_file(weights)
    tensors.pop("norm.weight")
    save_file(tensors, part, metadata=about)
    cases = {
        tmp_path / "nowhere": "found no file",
        other: "found the format none",
        text: "found another file",
        part: "damaged",
    }
    for path, sentence in cases.items():
        with pytest.raises(InputError, match=sentence) as refused:
            load_network(path)
        assert "\n" not in str(refused.value)


def test_it_comes_with_weights_that_need_no_training(chain_windows):
    zero_shot = fit_forecaster("pretrained", chain_windows)
    straight = fit_forecaster("linear", chain_windows)
    ours, theirs = zero_shot.losses["pretrained"], straight.losses["linear"]
    assert (ours < 1.02 * theirs).all()
    assert ours["b"] < 0.7


def test_its_own_tests_find_the_chain_as_it_is_and_fine_tuned():
    table = pd.DataFrame(chain(700), columns=list("abc"))
    config = fc.Config(max_lag=2, fdr=0.01, trend="none")  # asked for by name, it decides
    as_it_is = fc.discover(table, forecaster="pretrained", config=config)
    assert edge_set(as_it_is.graph) == CHAIN_EDGES
    fine_tuned = fc.discover(table, forecaster=Pretrained(training=A_FEW_STEPS), config=config)
    assert edge_set(fine_tuned.graph) == CHAIN_EDGES
    own = as_it_is.relevance["p_value"]
    assert not np.allclose(own, fine_tuned.relevance["p_value"])


def test_its_own_p_values_of_series_without_links_are_not_too_small():
    p_values = []
    for seed in range(4):
        rows = np.random.default_rng(seed).normal(size=(500, 5))
        for t in range(1, len(rows)):
            rows[t] += np.linspace(0, 0.9, 5) * rows[t - 1]
        table = pd.DataFrame(rows, columns=list("abcde"))
        run = fc.discover(
            table,
            2,
            forecaster="pretrained",
            select="fdr",
            season="none",
            config=fc.Config(trend="none"),
        )
        p_values.append(run.relevance["p_value"].values[~np.eye(5, dtype=bool)])
    assert (np.concatenate(p_values) < 0.05).mean() < 0.07


def test_only_some_forecasters_take_weights():
    with pytest.raises(InputError, match="no other forecaster takes them"):
        Config.of(forecaster="mlp", weights="somewhere")

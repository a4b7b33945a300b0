from dataclasses import replace

import numpy as np
import pytest
import torch

from fitted import fit_forecaster
from forecause.data import Panel, Windows
from forecause.data.windows import Window
from forecause.forecast.additive import Additive, AdditiveModel
from forecause.forecast.attribution import READOUTS, relevance
from forecause.forecast.forecaster import FitData
from forecause.forecast.linear import Linear, LinearModel
from forecause.networks.mlp_and_cnn import MLPModel
from forecause.networks.network import Network, NetworkModule, TensorWindow
from forecause.networks.settings import CNN, MLP, Transformer
from forecause.simulation import simulate

SHAPE = (2, 3)
MODELS = {
    "linear": lambda: LinearModel(SHAPE, Linear()),
    "additive": lambda: AdditiveModel(SHAPE, Additive()),
    "mlp mse": lambda: MLP(hidden=8).build(SHAPE),
    "mlp gaussian": lambda: MLP(hidden=8, head="gaussian").build(SHAPE),
    "mlp mixture": lambda: MLP(hidden=8, head="mixture").build(SHAPE),
    "transformer mse": lambda: Transformer(width=8).build(SHAPE),
    "transformer mixture": lambda: Transformer(width=8, head="mixture").build(SHAPE),
    "cnn gaussian": lambda: CNN(channels=8, head="gaussian").build(SHAPE),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    made = MODELS[request.param]()
    if isinstance(made, Network):
        made.module.double()
    rng = np.random.default_rng(0)
    state = {name: values.astype(np.float64) for name, values in made.state().items()}
    for name, values in state.items():
        if name not in ("allowed", "reads"):
            values += 0.3 * rng.normal(size=values.shape)
        if name == "noise_variance":
            values[:] = rng.uniform(0.2, 2.0, values.shape)
        if name == "knots":
            values[:] = np.linspace(-1, 1, values.shape[1])
    made.load_state(state)
    return made


@pytest.fixture(scope="module")
def window():
    return Window.of(np.random.default_rng(1).normal(size=(6, 3, 3)))


def test_the_score_agrees_with_finite_differences(model, window):
    found = READOUTS["score"].per_sample(model, window)
    assert found.shape == (6, 3, 2, 3)
    h = 1e-6
    for step in range(2):
        for source in range(3):
            shift = np.zeros_like(window.past)
            shift[:, step, source] = h
            above, below = (
                model.log_likelihood(replace(window, past=past))
                for past in (window.past + shift, window.past - shift)
            )
            slope = (above - below) / (2 * h)
            np.testing.assert_allclose(found[:, :, step, source], slope, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("head", ["gaussian", "mixture"])
def test_one_backward_pass_gives_the_scores_of_all_targets(head, window):
    torch.manual_seed(0)
    model = MLPModel(SHAPE, MLP(hidden=8, head=head)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    tensors = TensorWindow.drawn(window, dtype=torch.float64)
    torch.testing.assert_close(model.score(tensors), NetworkModule.score(model, tensors))
    past = tensors.past
    torch.testing.assert_close(model.jacobian(past), NetworkModule.jacobian(model, past))


def test_with_fixed_variance_its_energy_is_the_gradients_divided_by_the_variance(chain_windows):
    early, late = chain_windows.split(0.2)
    model = LinearModel(chain_windows.shape, Linear())
    model.fit(FitData(early, late))
    found = relevance(model, chain_windows, "score")
    gradient = relevance(model, chain_windows, "gradient")
    variance = model.noise_variance[:, None, None]
    expected = gradient["relevance"] / variance
    large = expected.values > 0.05
    ratio = (found["relevance"] / expected).values[large]
    np.testing.assert_allclose(ratio, 1.0, atol=0.1)
    # weight^2 var(source) / var(noise), whatever the units: 0.64, and 0.49 * 1.64
    energy = found["relevance"]
    assert float(energy.sel(target="b", source="a", lag=1)) == pytest.approx(0.64, abs=0.1)
    assert float(energy.sel(target="c", source="b", lag=2)) == pytest.approx(0.80, abs=0.12)


def test_effect_and_sign_are_those_of_the_gradient(chain_windows):
    early, late = chain_windows.split(0.2)
    model = LinearModel(chain_windows.shape, Linear())
    model.fit(FitData(early, late))
    found = relevance(model, chain_windows, "score")
    gradient = relevance(model, chain_windows, "gradient")
    np.testing.assert_allclose(found["effect"], gradient["effect"])
    np.testing.assert_allclose(found["sign_consistency"], gradient["sign_consistency"])


@pytest.mark.parametrize("seed", [2, 3])
def test_only_a_learned_variance_shows_the_parent_that_drives_the_variance(seed):
    system = simulate(nodes=5, max_lag=2, rows=4000, in_degree=2.0, variance_edges=1, seed=seed)
    edges = system.graph.edges
    hidden = edges[edges["mechanism"] == "variance"].iloc[0]
    parents = int((edges["target"] == hidden["target"]).sum())
    windows = Windows.of(Panel.from_arrays([system.values], list(system.graph.variables)), 2)
    ranks = {}
    for head, readout in (("mse", "gradient"), ("gaussian", "score")):
        model = fit_forecaster("mlp", windows, preset="quick", head=head).forecaster
        scores = relevance(model, windows, readout)["relevance"].sel(target=hidden["target"])
        its_own = scores.sel(source=hidden["source"], lag=hidden["lag"])
        ranks[head] = 1 + int((scores > its_own).sum())
    assert ranks["gaussian"] <= parents
    assert ranks["mse"] > parents

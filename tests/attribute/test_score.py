from dataclasses import replace

import numpy as np
import pytest
import torch

from fitted import fit_forecaster
from forecause.attribute import READOUTS, relevance
from forecause.data import Panel, Windows
from forecause.data.windows import Window
from forecause.forecast.forecaster import FitData, Forecaster
from forecause.forecast.models.additive import Additive, AdditiveModel
from forecause.forecast.models.cnn import CNN, CNNModel
from forecause.forecast.models.linear import Linear, LinearModel
from forecause.forecast.models.mlp import MLP, MLPModel
from forecause.forecast.models.transformer import Transformer, TransformerModel
from forecause.simulation import simulate

SHAPE = (2, 3)
MODELS = {
    "linear": lambda: LinearModel(SHAPE, Linear()),
    "additive": lambda: AdditiveModel(SHAPE, Additive()),
    "mlp mse": lambda: MLPModel(SHAPE, MLP(hidden=8)),
    "mlp gaussian": lambda: MLPModel(SHAPE, MLP(hidden=8, head="gaussian")),
    "mlp mixture": lambda: MLPModel(SHAPE, MLP(hidden=8, head="mixture")),
    "transformer mse": lambda: TransformerModel(SHAPE, Transformer(width=8)),
    "transformer mixture": lambda: TransformerModel(SHAPE, Transformer(width=8, head="mixture")),
    "cnn gaussian": lambda: CNNModel(SHAPE, CNN(channels=8, head="gaussian")),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    made = MODELS[request.param]().double().requires_grad_(False)
    for name, tensor in made.state_dict().items():
        if name in ("allowed", "reads"):
            continue
        tensor += 0.3 * torch.randn_like(tensor)
        if name == "noise_variance":
            tensor.uniform_(0.2, 2.0)
        if name == "knots":
            tensor.copy_(torch.linspace(-1, 1, tensor.shape[1]))
    return made


@pytest.fixture(scope="module")
def window():
    return Window.of(torch.randn(6, 3, 3, generator=torch.Generator().manual_seed(1)).double())


def test_the_score_agrees_with_finite_differences(model, window):
    found = READOUTS["score"].per_sample(model, window)
    assert found.shape == (6, 3, 2, 3)
    h = 1e-6
    for step in range(2):
        for source in range(3):
            shift = torch.zeros_like(window.past)
            shift[:, step, source] = h
            above, below = (
                model.log_likelihood(replace(window, past=past))
                for past in (window.past + shift, window.past - shift)
            )
            slope = (above - below) / (2 * h)
            torch.testing.assert_close(found[:, :, step, source], slope, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("head", ["gaussian", "mixture"])
def test_one_backward_pass_gives_the_scores_of_all_targets(head, window):
    torch.manual_seed(0)
    model = MLPModel(SHAPE, MLP(hidden=8, head=head)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    torch.testing.assert_close(model.score(window), Forecaster.score(model, window))
    torch.testing.assert_close(model.jacobian(window.past), Forecaster.jacobian(model, window.past))


def test_with_fixed_variance_its_energy_is_the_gradients_divided_by_the_variance(chain_windows):
    early, late = chain_windows.split(0.2)
    model = LinearModel(chain_windows.shape, Linear())
    model.fit(FitData(early, late))
    found = relevance(model, chain_windows, "score")
    gradient = relevance(model, chain_windows, "gradient")
    variance = model.noise_variance.numpy()[:, None, None]
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

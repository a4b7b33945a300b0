import captum.attr
import numpy as np
import pytest
import torch

from forecause.forecast.attribution import relevance
from forecause.networks.mlp_and_cnn import CNNModel, MLPModel
from forecause.networks.network import Network
from forecause.networks.settings import CNN, MLP, Transformer
from forecause.networks.transformer import TransformerModel
from tensors import drawn, read

MODELS = {
    "transformer": lambda: TransformerModel((2, 3), Transformer(width=8, heads=2)),
    "mlp": lambda: MLPModel((2, 3), MLP(hidden=8)),
    "cnn": lambda: CNNModel((2, 3), CNN(channels=8)),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    made = MODELS[request.param]().double().requires_grad_(False)
    for parameter in made.parameters():
        parameter += 0.3 * torch.randn_like(parameter)
    return made


@pytest.fixture(scope="module")
def past():
    return torch.randn(6, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_gradients_agree_with_finite_differences(model, past):
    found = read("gradient", model, past)
    h = 1e-6
    for step in range(2):
        for source in range(3):
            shift = torch.zeros_like(past)
            shift[:, step, source] = h
            slope = (model(past + shift) - model(past - shift)) / (2 * h)
            torch.testing.assert_close(found[:, :, step, source], slope, atol=1e-7, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Input Tensor")
def test_gradient_and_input_times_gradient_agree_with_captum(model, past):
    gradient = read("gradient", model, past)
    product = read("input-gradient", model, past)
    for target in range(3):
        saliency = captum.attr.Saliency(model).attribute(past, target=target, abs=False)
        torch.testing.assert_close(gradient[:, target], saliency)
        expected = captum.attr.InputXGradient(model).attribute(past, target=target)
        torch.testing.assert_close(product[:, target], expected)


def test_an_intervention_is_captums_ablation_with_the_sign_turned(model, past):
    found = read("intervention", model, past)
    for target in range(3):
        # ablation: f(x) - f(baseline at one feature); the baseline is one sd above
        change = captum.attr.FeatureAblation(model).attribute(
            past, baselines=past + 1.0, target=target
        )
        torch.testing.assert_close(found[:, target], -change)


def test_relevance_is_the_mean_square_of_all_gradients_with_lag_one_last_step(chain_windows):
    torch.manual_seed(0)
    model = MODELS["mlp"]()
    with torch.no_grad():
        model.last.normal_()
    found = relevance(Network(model), chain_windows.at(np.arange(700)))
    slopes = model.jacobian(drawn(chain_windows, 700).past).double()
    energy = slopes.square().mean(0)  # (target, step, source)
    np.testing.assert_allclose(found["relevance"].sel(lag=1), energy[:, 1], rtol=1e-5)
    np.testing.assert_allclose(found["relevance"].sel(lag=2), energy[:, 0], rtol=1e-5)
    assert found.attrs["samples"] == 700

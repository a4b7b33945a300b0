import numpy as np
import pytest
import torch

from forecause.forecast.forecaster import FitData
from forecause.forecast.linear import Linear, LinearModel
from forecause.networks.mlp_and_cnn import CNNModel, MLPModel
from forecause.networks.network import Network, NetworkModule
from forecause.networks.settings import CNN, MLP, TrainingSettings
from tensors import drawn

BRIEF = TrainingSettings(max_steps=400)


def random_mlp():
    torch.manual_seed(0)
    model = MLPModel((2, 3), MLP(hidden=8)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model


def test_the_mlp_starts_at_the_closed_form_fit(chain_windows):
    early, late = chain_windows.split(0.2)
    model = MLPModel(chain_windows.shape, MLP(training=TrainingSettings(max_steps=0)))
    model.fit(FitData(early, late))
    line = LinearModel(chain_windows.shape, Linear())
    line.fit(FitData(early, late))
    past = late.draw(np.arange(20)).past
    np.testing.assert_allclose(Network(model)(past), line(past), atol=1e-5, rtol=1e-4)


def test_targets_of_the_mlp_share_nothing():
    model = random_mlp()
    past = torch.randn(7, 2, 3, dtype=torch.float64)
    before = model(past)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter[1] += 1.0
    after = model(past)
    torch.testing.assert_close(after[:, [0, 2]], before[:, [0, 2]])
    assert (after[:, 1] != before[:, 1]).all()


def test_one_backward_pass_gives_the_jacobian_of_all_targets():
    model = random_mlp()
    past = torch.randn(7, 2, 3, dtype=torch.float64)
    torch.testing.assert_close(model.jacobian(past), NetworkModule.jacobian(model, past))


def test_the_cnn_learns_a_chain(chain_windows):
    torch.manual_seed(0)
    model = CNNModel(chain_windows.shape, CNN(channels=16, training=BRIEF))
    early, late = chain_windows.split(0.2)
    model.fit(FitData(early, late))
    mse = model.errors(drawn(late)).mean(0).detach()
    assert float(mse[1]) == pytest.approx(1 / 1.64, abs=0.07)


def test_the_mlp_learns_a_product_that_no_additive_model_can():
    from forecause.data import Panel, Windows

    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    x[1:, 2] = x[:-1, 0] * x[:-1, 1] + 0.3 * x[1:, 2]
    windows = Windows.of(Panel.from_arrays([x], ["a", "b", "c"]), 1)
    torch.manual_seed(0)
    model = MLPModel(windows.shape, MLP(training=TrainingSettings(max_steps=1500)))
    early, late = windows.split(0.2)
    model.fit(FitData(early, late))
    mse = model.errors(drawn(late)).mean(0).detach()
    assert float(mse[2]) < 0.35  # noise alone is 0.083, an additive model stays at 1

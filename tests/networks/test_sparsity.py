from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn

import forecause as fc
from fitted import preset_settings
from forecause.config import ForecasterName, ForecasterSpec
from forecause.forecast.forecaster import PLAIN, FitData, squared_errors
from forecause.networks.mlp_and_cnn import MLPModel
from forecause.networks.network import Network, NetworkModule, TensorWindow
from forecause.networks.paper_transformers import VectorTransformerModel
from forecause.networks.settings import MLP, SPARSITIES, TrainingSettings, VectorTransformer
from forecause.networks.several_trainings import Penalty, learn_sparsely
from systems import windows_of
from tensors import drawn

BRIEF = TrainingSettings(
    learning_rate=1e-2, max_steps=140, warmup_steps=20, look_every=20, patience=4, rate_drops=0
)


class Map(NetworkModule):
    """Outputs are a linear map of the past, whose Jacobian is its weight."""

    kind = "map"

    def __init__(self, outputs=1):
        super().__init__((2, 3), VectorTransformer())
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, outputs, 2, 3))

    def outputs(self, past, rules=PLAIN, domain=None):
        return torch.einsum("bsv,tosv->bto", past, self.weight)

    def forward(self, past, rules=PLAIN, domain=None):
        return self.outputs(past)[..., 0]


def norms_of(model, batch, seed=0):
    past = torch.randn(batch, model.max_lag, model.n_variables).requires_grad_()
    return Penalty(1.0, seed).norms(past, model.outputs(past)).detach()


@pytest.mark.parametrize("outputs", [1, 2])
def test_projections_of_a_linear_map_have_the_l1_norm_of_its_weight(outputs):
    model = Map(outputs)
    expected = model.weight.abs().sum((1, 2, 3)).detach()
    torch.testing.assert_close(norms_of(model, 30 * outputs), expected)  # every output 10 times


def test_with_fewer_windows_than_outputs_the_estimate_has_no_bias():
    model = Map(outputs=2)
    draws = torch.stack([norms_of(model, 4, seed) for seed in range(1000)])
    expected = model.weight.abs().sum((1, 2, 3)).detach()
    torch.testing.assert_close(draws.mean(0), expected, rtol=0.06, atol=0)


def test_of_a_network_they_are_the_l1_norm_of_its_jacobian():
    torch.manual_seed(0)
    model = VectorTransformerModel((2, 3), VectorTransformer(width=16))
    past = torch.randn(20, 2, 3)
    exact = model.jacobian(past).abs().sum((2, 3)).mean(0)
    draws = []
    for seed in range(200):
        free = past.clone().requires_grad_()
        draws.append(Penalty(1.0, seed).norms(free, model.outputs(free)).detach())
    torch.testing.assert_close(torch.stack(draws).mean(0), exact, rtol=0.03, atol=0)


def test_the_loss_is_the_error_plus_the_weighted_penalty():
    model, window = Map(), TensorWindow.of(torch.randn(30, 3, 3))
    expected = model.loss(window) + 0.3 * model.weight.abs().sum((1, 2, 3))
    torch.testing.assert_close(Penalty(0.3).loss(model, window), expected)


def test_the_penalty_teaches_the_weights():
    model = Map()
    past = torch.randn(30, 2, 3).requires_grad_()
    Penalty(1.0).norms(past, model.outputs(past)).sum().backward()
    torch.testing.assert_close(model.weight.grad, model.weight.sign())


def noisy(rows=100, seed=400):
    """Four variables in pairs, one driving the other after a step."""
    x = np.random.default_rng(seed).normal(size=(rows, 4))
    x[1:, 2:] += 0.8 * x[:-1, :2]
    return x


def fitted(kind, sizes, windows, weights):
    torch.manual_seed(0)
    settings = {MLPModel: MLP, VectorTransformerModel: VectorTransformer}[kind]
    model = kind(windows.shape, settings(training=BRIEF, sparsity=weights, **sizes))
    model.fit(FitData(*windows.split(0.2)))
    return model.requires_grad_(False)


NETWORKS = [(MLPModel, {"hidden": 8}), (VectorTransformerModel, {"width": 16})]


@pytest.mark.parametrize(("kind", "sizes"), NETWORKS, ids=["mlp", "vector"])
def test_a_penalty_takes_energy_from_irrelevant_inputs_first(kind, sizes):
    windows = windows_of(noisy(), 2)
    true = torch.zeros(4, 2, 4, dtype=torch.bool)
    true[[2, 3], 1, [0, 1]] = True
    shares = []
    for weight in (0.0, 0.2):
        model = fitted(kind, sizes, windows, (weight,))
        energy = model.jacobian(drawn(windows, 90).past).square().mean(0)
        shares.append(float(energy[~true].sum() / energy[true].sum()))
    assert shares[1] < 0.7 * shares[0]


def test_the_weight_chosen_is_one_of_those_tried_and_beats_none():
    values = noisy(2100, seed=2)
    windows = windows_of(values[:100], 2)
    chosen = fitted(*NETWORKS[1], windows, (0.0, 0.1, 3.0))
    assert chosen.settings.sparsity == (0.1,)
    none = fitted(*NETWORKS[1], windows, (0.0,))
    fresh = windows_of(values[100:], 2)
    losses = [float(squared_errors(Network(model), fresh).mean()) for model in (chosen, none)]
    assert losses[0] < losses[1]


class Chosen(Map):
    """Forecasts at once as `learn` is told: the smaller the map, the better for noise."""

    def __init__(self, sizes):
        super().__init__()
        self.sizes, self.starts = sizes, []

    def learn(self, model, _fit_data, penalty):
        self.starts.append(model.weight.detach().clone())
        with torch.no_grad():
            model.weight *= self.sizes[penalty.weight if penalty else 0.0]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({0.0: 1.0, 0.1: 0.1, 0.2: 0.5}, 0.1),  # the best one
        ({0.0: 0.1, 0.1: 1.0, 0.2: 1.0}, 0.0),  # none
        ({0.0: 1.0, 0.1: 0.1, 0.2: 0.1}, 0.1),  # of two as good, the smaller
    ],
)
def test_the_smallest_weight_is_kept_that_none_clearly_beats(sizes, expected):
    windows = windows_of(np.random.default_rng(0).normal(size=(100, 3)), 2)
    model = Chosen(sizes)
    first = model.weight.detach().clone()
    fit_data = FitData(*windows.split(0.2))
    assert learn_sparsely(model, fit_data, tuple(sizes), model.learn) == expected
    torch.testing.assert_close(model.weight.detach(), first * sizes[expected])
    assert all(torch.equal(start, first) for start in model.starts)  # none goes on from another


def test_targets_stop_together_so_that_their_slopes_can_be_compared():
    windows = windows_of(noisy(50), 2)
    assert not fitted(MLPModel, {}, windows, (0.1,)).separate_targets
    assert fitted(MLPModel, {}, windows, ()).separate_targets


def test_the_preset_is_for_networks_and_default_ones_stay_as_they_are():
    for kind in set(get_args(ForecasterName)) - {"auto"}:
        default, sparse = (preset_settings(kind, preset) for preset in ("default", "sparse"))
        assert getattr(default, "sparsity", ()) == ()
        if ForecasterSpec.known[kind].can_be_sparse:
            assert sparse.sparsity == SPARSITIES
        else:
            assert sparse == default


def test_the_same_seed_gives_the_same_weights():
    windows = windows_of(noisy(60), 2)
    one, two = (fitted(*NETWORKS[1], windows, (0.1,)).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_run_with_the_preset_comes_back_from_disk_with_its_weight(tmp_path, monkeypatch):
    monkeypatch.setattr("forecause.networks.settings.SPARSITIES", (0.1,))
    found = fc.discover(noisy(60), 1, forecaster="mlp", preset="sparse")
    found.save(tmp_path / "run")
    again = fc.load(tmp_path / "run")
    assert again.forecaster.settings.sparsity == (0.1,)
    assert again.forecaster.settings == found.forecaster.settings
    past = np.random.default_rng(0).normal(size=(5, 1, 4)).astype(np.float32)
    np.testing.assert_array_equal(again.forecaster(past), found.forecaster(past))


def test_with_another_head_the_variance_is_sparse_too():
    windows = windows_of(noisy(), 1)
    slopes = []
    for weight in (0.0, 0.3):
        model = fitted(
            VectorTransformerModel, {"width": 16, "head": "gaussian"}, windows, (weight,)
        )
        past = drawn(windows, 90).past.requires_grad_()
        (found,) = torch.autograd.grad(model.outputs(past)[..., 1].sum(), past)
        slopes.append(float(found.abs().mean()))
    assert slopes[1] < slopes[0] / 2

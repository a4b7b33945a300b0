import numpy as np
import pytest
import torch
from torch import nn

from forecause.errors import TrainingError
from forecause.forecast.forecaster import PLAIN, FitData, squared_errors
from forecause.forecast.linear import Linear
from forecause.networks.mlp_and_cnn import MLPModel
from forecause.networks.network import Network, NetworkModule
from forecause.networks.settings import MLP, TrainingSettings
from forecause.networks.training import train
from heard import Heard
from systems import windows_of


class Constant(NetworkModule):
    """Forecasts one learnable number per target, and counts its training steps."""

    def __init__(self, shape, start=0.0):
        super().__init__(shape, Linear())
        self.level = nn.Parameter(torch.full((shape[1],), start))
        self.steps = 0

    def forward(self, past, rules=PLAIN, domain=None):
        return self.level.expand(len(past), -1)

    def loss(self, window):
        self.steps += 1
        return super().loss(window)


@pytest.fixture(scope="module")
def noise():
    return windows_of(np.random.default_rng(0).normal(size=(600, 2))).split(0.2)


def test_the_weights_kept_are_the_best_on_held_out_windows_not_the_last(noise):
    early, late = noise
    torch.manual_seed(0)
    model = MLPModel(early.shape, MLP(hidden=64))
    start = squared_errors(Network(model), late).mean(0)
    settings = TrainingSettings(max_steps=300, patience=100, learning_rate=1e-2)
    train(model, FitData(early, late), settings)
    # pure noise: every step overfits, so nothing may be worse than the start
    assert (squared_errors(Network(model), late).mean(0) <= start + 1e-6).all()


def test_training_stops_when_the_held_out_loss_has_stalled(noise):
    early, late = noise
    model = Constant(early.shape)
    settings = TrainingSettings(max_steps=100_000, look_every=10, patience=2, rate_drops=1)
    train(model, FitData(early, late), settings)
    assert model.steps < 2000


def test_training_does_not_wait_for_its_next_look_once_its_time_is_up(noise):
    early, late = noise
    model = Constant(early.shape)
    settings = TrainingSettings(max_steps=100_000, look_every=50_000)
    train(model, FitData(early, late, seconds=0.0), settings)
    assert model.steps == 1


def ideal(windows):
    """The errors of forecasting noise by its mean, 0."""
    return windows.draw(np.arange(len(windows))).target ** 2


def test_a_model_far_behind_its_rival_gives_up(noise):
    early, late = noise
    settings = TrainingSettings(
        max_steps=400, look_every=10, patience=10_000, learning_rate=1e-4, warmup_steps=0
    )
    patient, beaten = Constant(early.shape, 5.0), Constant(early.shape, 5.0)
    train(patient, FitData(early, late), settings)
    train(beaten, FitData(early, late, to_beat=ideal), settings)
    assert patient.steps == 400
    assert beaten.steps < 300


def test_a_model_that_still_gains_on_its_rival_goes_on(noise):
    early, late = noise
    settings = TrainingSettings(
        max_steps=1000, look_every=50, patience=10_000, learning_rate=5e-3, warmup_steps=0
    )
    model = Constant(early.shape, 3.0)  # reaches the mean after about 600 steps
    train(model, FitData(early, late, to_beat=lambda _: 1.2 * ideal(late)), settings)
    assert model.steps == 1000


@pytest.mark.parametrize(("rival", "stalls"), [(0.9, 1), (1.5, 3)])
def test_only_a_model_that_is_clearly_ahead_goes_on_at_a_lower_rate(noise, rival, stalls):
    early, late = noise
    settings = TrainingSettings(look_every=5, patience=3, rate_drops=2, learning_rate=1e-9)
    model = Constant(early.shape, 0.0)
    train(model, FitData(early, late, to_beat=lambda _: rival * ideal(late)), settings)
    assert model.steps == 5 * 3 * stalls


def test_an_infinite_loss_is_explained(noise):
    early, late = noise
    model = Constant(early.shape, float("nan"))
    settings = TrainingSettings(max_steps=10, look_every=5)
    with pytest.raises(TrainingError, match="at step 5; look for extreme outliers"):
        train(model, FitData(early, late), settings)


def test_the_same_seed_gives_the_same_weights_bit_for_bit(noise):
    early, late = noise
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        model = MLPModel(early.shape, MLP())
        train(model, FitData(early, late, seed=5), TrainingSettings(max_steps=120))
        found.append(model.state_dict())
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_progress_is_reported_up_to_the_end(noise):
    early, late = noise
    heard = Heard()
    settings = TrainingSettings(max_steps=40, look_every=10)
    fit_data = FitData(early, late, progress=heard)
    train(Constant(early.shape), fit_data, settings)
    assert heard.shares == [0.25, 0.5, 0.75, 1.0]


def test_a_gradient_is_cut_to_the_largest_norm(noise):
    early, late = noise
    norms = []
    for clip in (0.5, 1e9):
        model = Constant(early.shape, start=1e4)
        train(model, FitData(early, late), TrainingSettings(max_steps=1, clip=clip))
        norms.append(float(model.level.grad.norm()))
    assert norms[0] == pytest.approx(0.5, rel=1e-3)
    assert norms[1] > 100  # the same one, not cut

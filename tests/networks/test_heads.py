from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import distributions

from fitted import build, fit_forecaster
from forecause.config import Config
from forecause.data import Panel, Windows
from forecause.errors import InputError
from forecause.forecast.forecaster import PLAIN, FitData, over_windows, squared_errors
from forecause.forecast.linear import Linear, LinearModel
from forecause.forecast.members import PerTargetChoice
from forecause.networks import settings as network_settings
from forecause.networks.heads import COMPONENTS, LIKELIHOODS, bounded
from forecause.networks.mlp_and_cnn import MLPModel
from forecause.networks.network import Network, TensorWindow
from forecause.networks.paper_transformers import DeepTransformerModel
from forecause.networks.settings import MLP, DeepTransformer, TrainingSettings, Transformer
from forecause.networks.transformer import TransformerModel

RAW = torch.randn(7, 4, 3 * COMPONENTS, generator=torch.Generator().manual_seed(0)).double()
VALUE = torch.randn(7, 4, generator=torch.Generator().manual_seed(1)).double()


def oracle(head):
    """The same distribution as torch knows it."""
    if head == "mse":
        return RAW[..., :2], distributions.Normal(RAW[..., 0], (RAW[..., 1] / 2).exp())
    if head == "gaussian":
        return RAW[..., :2], distributions.Normal(RAW[..., 0], (bounded(RAW[..., 1]) / 2).exp())
    logits, means, log_variances = RAW.chunk(3, dim=-1)
    parts = distributions.Normal(means, (bounded(log_variances) / 2).exp())
    return RAW, distributions.MixtureSameFamily(distributions.Categorical(logits=logits), parts)


@pytest.mark.parametrize("head", LIKELIHOODS)
def test_density_mean_and_variance_are_those_of_torch(head):
    parameters, expected = oracle(head)
    likelihood = LIKELIHOODS[head]
    torch.testing.assert_close(likelihood.log_prob(parameters, VALUE), expected.log_prob(VALUE))
    torch.testing.assert_close(likelihood.mean(parameters), expected.mean)
    torch.testing.assert_close(likelihood.variance(parameters), expected.variance)


@pytest.mark.parametrize("head", ["gaussian", "mixture"])
@given(size=st.floats(-1e6, 1e6), value=st.floats(-100, 100))
@settings(max_examples=50)
def test_no_output_makes_the_likelihood_or_its_gradient_infinite(head, size, value):
    likelihood = LIKELIHOODS[head]
    outputs = torch.full((1, 1, likelihood.outputs), size).requires_grad_()
    found = likelihood.log_prob(outputs, torch.tensor([[value]]))
    found.sum().backward()
    assert torch.isfinite(found).all()
    assert torch.isfinite(outputs.grad).all()


@pytest.mark.parametrize("head", ["gaussian", "mixture"])
def test_training_starts_near_the_gaussian_it_is_given(head):
    likelihood = LIKELIHOODS[head]
    location, log_variance = torch.tensor([0.5, -1.0]), torch.tensor([0.0, -2.0])
    start = likelihood.start(location, log_variance)
    assert start.shape == (2, likelihood.outputs)
    torch.testing.assert_close(likelihood.mean(start), location)
    ratio = likelihood.variance(start) / log_variance.exp()
    assert ((ratio > 0.9) & (ratio < 1.3)).all()
    shifted = start.clone()
    shifted[:, likelihood.locations] += 2.0
    torch.testing.assert_close(likelihood.mean(shifted), location + 2.0)
    torch.testing.assert_close(likelihood.variance(shifted), likelihood.variance(start))


def calm_and_wild(rows=3000):
    """b's spread follows a; its mean is 0.5 b of the step before."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2))
    for t in range(1, rows):
        x[t, 1] = 0.5 * x[t - 1, 1] + np.exp(0.8 * x[t - 1, 0]) * x[t, 1]
    return Windows.of(Panel.from_arrays([x], ["a", "b"]), 1)


BRIEF = TrainingSettings(max_steps=400, rate_drops=0)
NEURAL = {
    "mlp": (MLPModel, MLP(training=BRIEF)),
    "transformer": (TransformerModel, Transformer(width=16, training=BRIEF)),
}


@cache
def fitted(kind, head):
    """The model and its held-out negative log-likelihood per target."""
    windows = calm_and_wild()
    early, late = windows.split(0.2)
    forecaster, chosen = NEURAL[kind]
    torch.manual_seed(0)
    model = forecaster(windows.shape, chosen.model_copy(update={"head": head}))
    model.fit(FitData(early, late))
    return model, -over_windows(late, Network(model).log_likelihood).mean(0)


@pytest.mark.parametrize(
    ("kind", "head"),
    [("mlp", "gaussian"), ("mlp", "mixture"), ("transformer", "gaussian")],
)
def test_a_head_that_learns_the_variance_predicts_a_changing_spread_better(kind, head):
    _, fixed = fitted(kind, "mse")
    model, learned = fitted(kind, head)
    assert learned[1] < fixed[1] - 0.2
    assert learned[0] < fixed[0] + 0.03
    past = torch.zeros(2, 1, 2)
    past[1, 0, 0] = 2.0
    calm, wild = model.variance(TensorWindow(past, past[:, 0]))[:, 1]
    assert wild > 5 * calm


def test_teacher_forcing_learns_the_distribution_at_every_position():
    torch.manual_seed(0)
    chosen = DeepTransformer(width=8, head="gaussian", layers=1)
    model = DeepTransformerModel((3, 2), chosen)
    window = torch.randn(5, 4, 2)
    tokens = model._run(window[:, :-1], None, 6, PLAIN)
    sd = (bounded(tokens[..., 1]) / 2).exp()
    expected = -distributions.Normal(tokens[..., 0], sd).log_prob(window[:, 1:])
    torch.testing.assert_close(model.loss(TensorWindow.of(window)), expected.mean((0, 1)))
    last = -model.log_likelihood(TensorWindow.of(window))
    torch.testing.assert_close(last, expected[:, -1])


def test_the_fixed_variance_is_that_of_held_out_errors(chain_windows):
    early, late = chain_windows.split(0.2)
    model = LinearModel(chain_windows.shape, Linear())
    model.fit(FitData(early, late))
    mse = squared_errors(model, late).mean(0)
    np.testing.assert_allclose(model.noise_variance, mse, rtol=1e-6)
    # on the very windows the variance comes from, the mean log density is -log(2 pi e mse) / 2
    found = over_windows(late, model.log_likelihood).mean(0)
    np.testing.assert_allclose(found, -0.5 * np.log(2 * np.pi * np.e * mse), rtol=1e-4)


def test_the_targets_of_an_mlp_with_a_head_share_nothing():
    torch.manual_seed(0)
    model = MLPModel((2, 3), MLP(hidden=8, head="mixture"))
    window = TensorWindow.of(torch.randn(7, 3, 3))
    before = model.log_likelihood(window)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter[1] += 1.0
    after = model.log_likelihood(window)
    torch.testing.assert_close(after[:, [0, 2]], before[:, [0, 2]])
    assert (after[:, 1] != before[:, 1]).all()


def test_auto_gives_each_target_the_head_that_suits_it(monkeypatch):
    monkeypatch.setattr(network_settings, "QUICK_STEPS", 500)
    windows = calm_and_wild()
    fit = fit_forecaster("mlp", windows, preset="quick", head="auto")
    model, table = fit.forecaster, fit.losses
    assert isinstance(model, PerTargetChoice)
    assert table["chosen"].tolist() == ["mlp", "mlp-gaussian"]
    again = build("auto", windows.shape, model.settings.model_dump(mode="json"))
    again.load_state(model.state())
    window = windows.draw(np.arange(20))
    np.testing.assert_array_equal(again.log_likelihood(window), model.log_likelihood(window))
    for i, label in enumerate(table["chosen"]):
        member = model.members[label]
        for asked in ("log_likelihood", "score"):
            own, whole = (getattr(one, asked)(window)[:, i] for one in (member, model))
            np.testing.assert_array_equal(whole, own)
        assert model.noise_variance[i] == member.noise_variance[i]


def test_closed_form_forecasters_have_no_other_head():
    with pytest.raises(InputError, match="'linear' has no head 'gaussian'; choose one of"):
        Config.of(forecaster="linear", head="gaussian")
    with pytest.raises(InputError, match="head='poisson'"):
        Config.of(forecaster="mlp", head="poisson")

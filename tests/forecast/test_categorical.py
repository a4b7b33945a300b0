"""The categorical head: labels as targets of forecasters."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from fitted import build, fit_forecaster
from forecause.data import Panel, Windows
from forecause.data.variables import LabelColumns
from forecause.forecast.comparison import Comparison
from forecause.forecast.forecaster import FitData, over_windows, squared_errors
from forecause.networks.heads import LIKELIHOODS, Labelled
from forecause.networks.network import TensorWindow
from mixed import mixed

LABEL = LabelColumns(first=1, shares=(0.5, 0.2, 0.3))


def windows_of(rows=1500, max_lag=2):
    return Windows.of(Panel.of(mixed(rows), labels=["weather"]), max_lag)


def standardised(levels):
    share = torch.tensor(LABEL.shares)
    one_hot = torch.nn.functional.one_hot(levels, 3)
    return (one_hot - share) / (share * (1 - share)).sqrt()


def test_the_columns_of_a_label_add_up_to_the_cross_entropy_of_torch():
    torch.manual_seed(0)
    parameters, levels = torch.randn(8, 5, 2), torch.randint(3, (8,))
    value = torch.randn(8, 5)
    value[:, 1:4] = standardised(levels)
    for head in ("mse", "gaussian"):
        likelihood = Labelled(LIKELIHOODS[head], [LABEL], logits=True)
        found = -likelihood.log_prob(parameters, value)
        expected = torch.nn.functional.cross_entropy(
            parameters[:, 1:4, 0], levels, reduction="none"
        )
        torch.testing.assert_close(found[:, 1:4].sum(1), expected)
        numbers = -LIKELIHOODS[head].log_prob(parameters, value)
        torch.testing.assert_close(found[:, [0, 4]], numbers[:, [0, 4]])


def test_the_mean_of_a_label_is_the_softmax_of_its_logits():
    parameters = torch.randn(8, 5, 1)
    likelihood = Labelled(LIKELIHOODS["mse"], [LABEL], logits=True)
    mean = likelihood.mean(parameters)[:, 1:4].numpy()
    chance = LABEL.probabilities(mean)
    softmax = parameters[:, 1:4, 0].softmax(-1)
    np.testing.assert_allclose(chance, softmax, atol=1e-3, rtol=1e-2)
    np.testing.assert_allclose(LABEL.standardised(chance), mean, atol=5e-3, rtol=1e-2)


def test_forecasts_of_a_linear_model_become_probabilities():
    wild = np.array([[-5.0, 0.0, 9.0]])
    chance = LABEL.probabilities(wild)
    assert bool((chance > 0).all())
    assert float(chance.sum()) == pytest.approx(1)


def test_the_start_of_a_network_is_the_linear_model_to_first_order():
    torch.manual_seed(1)
    # a linear probability model: the levels' forecasts add up to 1
    raw = torch.randn(3, 4) * 0.01
    raw -= raw.mean(0)
    share, sd = map(torch.from_numpy, LABEL.moments(raw.numpy()))
    weight = torch.zeros(5, 4)
    weight[1:4] = raw / sd[:, None]
    likelihood = Labelled(LIKELIHOODS["mixture"], [LABEL], logits=True)
    slopes, bias = likelihood.linear_start(weight, torch.zeros(5), torch.zeros(5))
    inputs = torch.randn(20, 4)
    outputs = torch.einsum("bi,tio->bto", inputs, slopes) + bias
    chance = outputs[:, 1:4, 0].softmax(-1)
    torch.testing.assert_close(chance, share + inputs @ raw.T, atol=2e-3, rtol=0)


@pytest.mark.parametrize("kind", ["mlp", "cnn", "transformer"])
def test_gradients_of_a_label_are_those_of_autograd(kind):
    torch.manual_seed(0)
    settings = {"labels": [LABEL.model_dump()], "head": "gaussian"}
    model = build(kind, (2, 5), settings).module
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    window = torch.randn(4, 3, 5)
    window[:, -1, 1:4] = standardised(torch.tensor([0, 1, 2, 2]))
    past = window[:, :-1]

    def likelihood(past):
        return model.log_likelihood(TensorWindow(past, window[:, -1]))

    for found, measure in (
        (model.jacobian(past), model),
        (model.score(TensorWindow.of(window)), likelihood),
    ):
        expected = torch.autograd.functional.jacobian(lambda p, f=measure: f(p).sum(0), past)
        torch.testing.assert_close(found, expected.transpose(0, 1), atol=1e-5, rtol=1e-4)


@pytest.fixture(scope="module")
def wide():
    return fit_forecaster("mlp", windows_of(2000), preset="quick", head="auto")


def test_cross_entropy_beats_the_mean_and_comes_near_logistic_regression_on_the_true_features(wide):
    own = wide.nll.loc["weather", "mlp-gaussian"]
    assert own < 0.8 * wide.nll.loc["weather", "mean"]
    assert wide.losses.loc["weather", "mlp-gaussian"] < 0.8
    data = mixed(2000)
    x = data["x"].to_numpy()[:-1]
    features, levels = np.column_stack([x, x**2]), data["weather"].to_numpy()[1:]
    oracle = LogisticRegression().fit(features[:1600], levels[:1600])
    best = log_loss(levels[1600:], oracle.predict_proba(features[1600:]), labels=oracle.classes_)
    assert own < best + 0.1


def test_a_network_forecasts_probabilities(wide):
    model, windows = wide.forecaster, windows_of(500)
    forecast = over_windows(windows, model.forecast)
    share, sd = model.labels[0].moments(forecast)
    chance = forecast[:, 1:4] * sd + share
    assert float(chance.min()) > -1e-6
    np.testing.assert_allclose(chance.sum(1), 1, atol=1e-5)


def test_the_surprise_is_told_only_where_the_choice_went_by_it(wide):
    windows = windows_of(400)
    assert fit_forecaster("linear", windows).nll is None
    assert list(wide.nll) == ["mean", "mlp", "mlp-gaussian", "chosen"]
    assert wide.nll["chosen"].tolist() == wide.losses["chosen"].tolist()
    shares = np.array(wide.forecaster.labels[0].shares)
    entropy = -(shares * np.log(shares)).sum()
    assert wide.nll.loc["weather", "mean"] == pytest.approx(entropy, abs=0.05)


@pytest.fixture(scope="module")
def closed_forms():
    """The linear and the additive model, compared on held-out windows."""
    windows = windows_of(1200)
    early, late = windows.split(0.2)
    comparison = Comparison(late, late.targets().mean(0))
    for kind in ("linear", "additive"):
        member = build(kind, windows.shape, with_labels(windows))
        member.fit(FitData(early, late))
        comparison.add(member)
    return comparison


def with_labels(windows):
    return {
        "labels": [
            one.model_dump() for one in windows.panel.coding.label_columns(windows.scale.mean)
        ]
    }


def test_all_columns_of_a_label_have_one_forecaster_chosen_by_the_brier_score(closed_forms):
    model = closed_forms.choose(by_likelihood=False)
    losses = closed_forms.losses(model)
    # what x does to the levels is curved, so the line cannot win
    assert model.settings.kinds[1:4] == ("additive",) * 3
    assert losses.index.tolist() == ["x", "weather", "y", "z"]
    assert losses.loc["weather", "chosen"] == "additive"
    assert losses.loc["weather", "additive"] < losses.loc["weather", "linear"] < 1


@pytest.mark.parametrize(("head", "surprised"), [("mse", [1, 2, 3]), ("gaussian", range(6))])
def test_a_columns_rival_is_who_has_the_least_of_the_loss_that_is_learned_by(
    closed_forms, head, surprised
):
    windows = closed_forms.judging.at(np.arange(100))
    network = build("mlp", windows.shape, with_labels(windows) | {"head": head})
    errors = closed_forms.to_beat(network, windows)
    for column in range(6):
        each = [
            -member.log_likelihood(windows.draw(np.arange(100)))[:, column]
            if column in surprised
            else squared_errors(member, windows)[:, column]
            for member in closed_forms.members
        ]
        best = min(each, key=lambda e: float(e.mean()))
        np.testing.assert_allclose(errors[:, column], best, rtol=1e-5)

import numpy as np
import pandas as pd
import pytest
import torch

import forecause as fc
from forecause.data import Panel, Windows
from forecause.data.variables import LabelColumns
from forecause.forecast.attribution.readouts import ATTN_LRP
from forecause.forecast.forecaster import FitData, squared_errors
from forecause.forecast.linear import Linear, LinearModel
from forecause.networks.network import Network, TensorWindow, parameter_count
from forecause.networks.paper_transformers import VectorTransformerModel
from forecause.networks.settings import TrainingSettings, VectorTransformer
from systems import CHAIN_EDGES, chain, edge_set

BRIEF = TrainingSettings(max_steps=300, look_every=50, patience=2, rate_drops=0)
LONG = TrainingSettings(max_steps=1200, rate_drops=1)


def make(shape=(3, 2), seed=0, **settings):
    torch.manual_seed(seed)
    return VectorTransformerModel(shape, VectorTransformer(**{"width": 16} | settings)).double()


def past_of(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fitted(windows, seed=0, **settings):
    torch.manual_seed(seed)
    model = VectorTransformerModel(windows.shape, VectorTransformer(training=BRIEF, **settings))
    model.fit(FitData(*windows.split(0.2), seed=seed))
    return model.requires_grad_(False)


def test_it_has_one_token_per_step_one_layer_and_one_head():
    steps, p, d = 3, 5, 64
    model = VectorTransformerModel((steps, p), VectorTransformer())
    assert model._tokens(torch.zeros(7, steps, p), None).shape == (7, steps, d)
    block = 4 * (d * d + d) + (d * 4 * d + 4 * d) + (4 * d * d + d) + 2 * 2 * d + steps**2
    assert parameter_count(model) == block + steps * (p + 1) * d + 2 * d + (d + 1) * p


def test_a_token_sees_its_own_and_earlier_steps_but_no_later_one():
    model = make((4, 3), layers=2)
    past = past_of(2, 4, 3)
    changed = past.clone()
    changed[:, 2:] += 1.0
    before, after = model.states(past, 4), model.states(changed, 4)
    torch.testing.assert_close(before[:, :2], after[:, :2])
    assert ((before[:, 2:] - after[:, 2:]).abs().amax(-1) > 1e-6).all()


def test_the_forecast_needs_the_last_token_alone():
    model = make((4, 3), layers=2)
    past = past_of(2, 4, 3)
    torch.testing.assert_close(model.states(past, 1), model.states(past, 4)[:, -1:])


def test_a_token_is_nearly_linear_in_its_values_so_their_size_gets_through():
    model = make((2, 5), width=64)
    past = past_of(50, 2, 5)
    slopes, twice = (model.jacobian(scale * past) for scale in (1.0, 2.0))
    # a LayerNorm over values alone would halve the slopes where the values are doubled
    assert float((twice / slopes).median()) > 0.7


def test_on_a_linear_system_it_forecasts_as_well_as_the_linear_model():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3))
    for t in range(2, len(x)):  # another parent at each lag, so each needs its own map
        x[t] += np.array([0.5, 0.6, -0.6]) * x[t - 1, [0, 0, 1]]
        x[t, 0] -= 0.5 * x[t - 2, 2]
    windows = Windows.of(Panel.from_arrays([x], list("abc")), 2)
    early, late = windows.split(0.3)
    torch.manual_seed(0)
    line = LinearModel(windows.shape, Linear())
    line.fit(FitData(early, late))
    model = VectorTransformerModel(windows.shape, VectorTransformer(training=LONG, width=32))
    model.fit(FitData(early, late))
    losses = [squared_errors(m, late).mean(0) for m in (line, Network(model))]
    assert (losses[1] < losses[0] * 1.03).all()
    assert (losses[1] < 0.95).all()


def test_forbidden_inputs_have_no_gradient_at_all():
    model = make((2, 3))
    allowed = torch.ones(3, 2, 3, dtype=torch.bool)
    allowed[1, :, 0] = False
    allowed[2, 1, 2] = False
    model.constrain(allowed)
    slopes = model.jacobian(past_of(6, 2, 3))
    assert (slopes[:, ~allowed] == 0).all()
    assert (slopes[:, allowed] != 0).all()


def test_lrp_changes_gradients_but_not_forecasts():
    model, past = make(), past_of(4, 3, 2)
    torch.testing.assert_close(model(past, ATTN_LRP), model(past))
    assert not torch.allclose(model.jacobian(past, ATTN_LRP), model.jacobian(past))


@pytest.mark.parametrize("head", ["gaussian", "mixture"])
def test_levels_of_a_label_have_probabilities_that_add_up_to_one(head):
    label = LabelColumns(first=1, shares=(0.5, 0.3, 0.2))
    model = make((2, 5), head=head, labels=(label,))
    past = past_of(4, 2, 5)
    levels = model(past)[:, label.columns]
    levels = levels.detach().numpy()
    np.testing.assert_allclose(label.probabilities(levels).sum(-1), 1)
    share, sd = label.moments(levels)
    np.testing.assert_allclose((levels * sd + share).sum(-1), 1)
    window = TensorWindow(past, past[:, 0])
    assert model.score(window).shape == (4, 5, 2, 5)


def test_the_domain_is_an_input_that_changes_what_drives_what():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    domain = (np.arange(2000) // 50) % 2
    x[1:, 1] += np.where(domain[1:] == 1, 0.9, -0.9) * x[:-1, 0]
    table = pd.DataFrame(x, columns=["a", "b"]).assign(season=np.array(["dry", "wet"])[domain])
    windows = Windows.of(Panel.of(table, domain="season"), 1)
    model = fitted(windows, domains=2, width=32)
    window = windows.draw(np.arange(1000))
    slopes = Network(model).jacobian(window.past, domain=window.domain)[:, 1, 0, 0]
    season = windows.panel.domain[windows.rows[:1000]]
    dry = int(windows.panel.domain_names.index("dry"))
    assert float(slopes[season == dry].mean()) < -0.3
    assert float(slopes[season != dry].mean()) > 0.3


def test_the_same_seed_gives_the_same_weights(chain_windows):
    few = chain_windows.at(np.arange(40))
    one, two, other = (fitted(few, seed, width=8).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["value"], other["value"])


def test_it_finds_a_chain_and_comes_back_from_disk(tmp_path):
    table = pd.DataFrame(chain(300), columns=list("abc"))
    found = fc.discover(
        table, 2, forecaster="vector", preset="quick", select=fc.TopK(3, overall=True)
    )
    assert edge_set(found.graph) == CHAIN_EDGES
    found.save(tmp_path / "run")
    again = fc.load(tmp_path / "run")
    assert again.forecaster.kind == "vector"
    past = past_of(5, 2, 3).float().numpy()
    np.testing.assert_array_equal(again.forecaster(past), found.forecaster(past))

import numpy as np
import pytest
import torch

import forecause as fc
from fitted import build, fit_forecaster, kinds_tried, preset_settings
from forecause.data import Panel, Windows
from forecause.errors import InputError
from forecause.forecast.comparison import choose
from forecause.forecast.forecaster import squared_errors
from forecause.forecast.linear import Linear, LinearModel
from forecause.networks.settings import MLP


def curved_windows(rows=3000):
    """b follows a on a line, c follows a on a parabola."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(rows, 3))
    x[1:, 1] += 0.9 * x[:-1, 0]
    x[1:, 2] = 0.6 * x[:-1, 0] ** 2 + 0.6 * x[1:, 2]
    return Windows.of(Panel.from_arrays([x], ["a", "b", "c"]), 1)


@pytest.fixture(scope="module")
def fitted():
    return fit_forecaster("auto", curved_windows(), preset="quick", seed=2)


def test_each_target_gets_the_forecaster_that_suits_it(fitted):
    table = fitted.losses
    assert table.loc["a", "chosen"] == "linear"  # nothing to learn: the simplest one
    assert table.loc["b", "chosen"] == "linear"
    assert table.loc["c", "chosen"] != "linear"
    assert {"linear", "additive", "dictionary"} <= set(table.columns)
    assert not fitted.joint  # a parabola is a spline, so nothing richer was fitted
    assert "trees" in kinds_tried("auto", curved_windows())
    assert "trees" not in table
    assert table.loc["c", "additive"] < 0.75 * table.loc["c", "linear"]


def test_forecast_and_jacobian_come_from_the_chosen_member(fitted):
    model, table = fitted.forecaster, fitted.losses
    past = curved_windows().draw(np.arange(10)).past
    for i, kind in enumerate(table["chosen"]):
        member = model.members[kind]
        np.testing.assert_array_equal(model(past)[:, i], member(past)[:, i])
        np.testing.assert_array_equal(model.jacobian(past)[:, i], member.jacobian(past)[:, i])


def test_a_tie_goes_to_the_simpler_forecaster():
    members = [LinearModel((1, 2), Linear()), MLP().build((1, 2))]
    rng = np.random.default_rng(0)
    simple = rng.normal(size=(400, 2)) ** 2
    richer = simple + rng.normal(size=(400, 2))
    richer[:, 0] += -0.01 - (richer - simple)[:, 0].mean()  # better by less than its noise
    richer[:, 1] -= 0.5
    assert choose(members, [simple, richer]).settings.kinds == ("linear", "mlp")


def test_a_learner_must_be_better_in_several_blocks_of_time():
    members = [LinearModel((1, 2), Linear()), MLP().build((1, 2))]
    rng = np.random.default_rng(0)
    simple = 1 + 0.1 * rng.normal(size=(400, 2))
    richer = simple - np.array([[0.1, -0.01]])  # better everywhere; in one stretch alone
    richer[:40, 1] -= 1.0
    assert choose(members, [simple, richer]).settings.kinds == ("mlp", "linear")


def test_with_few_windows_a_learner_must_be_better_over_all_its_targets():
    members = [LinearModel((1, 4), Linear()), MLP().build((1, 4))]
    simple = np.ones((60, 4))
    richer = simple + np.array([-0.1, 0.2, 0.2, 0.2])
    assert choose(members, [simple, richer]).settings.kinds == ("linear",) * 4
    richer = simple - 0.1
    assert choose(members, [simple, richer]).settings.kinds == ("mlp",) * 4


def test_a_model_is_rebuilt_from_its_settings(fitted):
    model = fitted.forecaster
    again = build("auto", (1, 3), model.settings.model_dump(mode="json"))
    again.load_state(model.state())
    past = curved_windows().draw(np.arange(10)).past
    np.testing.assert_array_equal(again(past), model(past))


def test_held_out_losses_are_those_of_windows_never_trained_on():
    windows = curved_windows()
    fit = fit_forecaster("linear", windows)
    model, table = fit.forecaster, fit.losses
    late = windows.split(0.2)[1]
    judged = late.at(np.arange(len(late))[1::2])
    np.testing.assert_allclose(table["linear"], squared_errors(model, judged).mean(0), rtol=1e-6)
    values = windows.panel.values / windows.scale.sd
    rows = judged.rows
    naive = ((values[rows] - values[rows - 1]) ** 2).mean(0)
    np.testing.assert_allclose(table["naive"], naive, rtol=1e-5)


def test_the_callers_random_state_is_left_alone():
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    fc.forecasters.MLP(hidden=4).seeded_build((1, 3), seed=0)
    assert torch.equal(torch.rand(3), expected)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(InputError, match="'lstm'; choose one of auto, transformer"):
        preset_settings("lstm", "default")

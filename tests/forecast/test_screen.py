"""The inputs that networks are given where there are many."""

import numpy as np

from fitted import build, fit_forecaster, kinds_tried
from forecause.data import Panel, Windows
from forecause.forecast.forecaster import MANY_INPUTS, FitData
from forecause.forecast.selection import closed_forms, strongest_inputs
from forecause.networks.settings import MLP, MOST_INPUTS


def wide_windows(rows=1500, seed=0):
    """30 variables and 4 lags; v0 follows v7 at lag 3 and the square of v9 at lag 1."""
    values = np.random.default_rng(seed).normal(size=(rows, 30))
    values[3:, 0] += 0.8 * values[:-3, 7]
    values[1:, 0] += 0.8 * values[:-1, 9] ** 2
    return Windows.of(Panel.from_arrays([values], [f"v{i}" for i in range(30)]), 4)


def place(variable, lag, variables=30, max_lag=4):
    return (max_lag - lag) * variables + variable


def fitted(kind, windows):
    model = build(kind, windows.shape, {})
    model.fit(FitData(*windows.split(0.2)))
    return model


def test_the_strongest_inputs_hold_the_causes_and_the_latest_value():
    windows = wide_windows()
    models = [fitted("linear", windows), fitted("additive", windows)]
    kept = strongest_inputs(models, windows)
    assert kept.shape == (30, MOST_INPUTS)
    assert {place(7, 3), place(9, 1)} <= set(kept[0].tolist())
    for target in range(30):
        assert place(target, 1) in kept[target].tolist()
        assert len(set(kept[target].tolist())) == MOST_INPUTS


def test_only_many_inputs_are_screened():
    windows = wide_windows()
    assert windows.inputs == 120 > MANY_INPUTS
    assert MLP().sized(windows.inputs).inputs == MOST_INPUTS
    few = Windows.of(windows.panel, 3)
    assert MLP().sized(few.inputs).inputs == 0


def test_a_network_reads_the_screened_inputs_alone_and_finds_the_causes():
    windows = wide_windows()
    model = fit_forecaster("mlp", windows, preset="quick").forecaster
    slopes = model.jacobian(windows.draw(np.arange(300)).past)
    energy = np.square(slopes).mean(0).reshape(30, -1)
    assert ((energy > 0).sum(1) == MOST_INPUTS).all()
    assert set(np.argsort(-energy[0])[:2].tolist()) == {place(7, 3), place(9, 1)}
    again = build("mlp", windows.shape, model.settings.model_dump(mode="json"))
    again.load_state(model.state())
    past = windows.draw(np.arange(5)).past
    np.testing.assert_array_equal(again(past), model(past))


def test_curves_of_many_inputs_need_many_windows():
    assert [c.kind for c in closed_forms(wide_windows(1500))] == ["linear", "additive"]
    assert [c.kind for c in closed_forms(wide_windows(400))] == ["linear"]
    assert kinds_tried("auto", wide_windows(400)) == ["linear"]
    assert kinds_tried("auto", wide_windows(800)) == ["linear", "mlp"]
    few = Windows.of(wide_windows(800).panel, 3)
    assert kinds_tried("auto", few) == ["linear", "additive", "mlp", "transformer"]
    assert kinds_tried("transformer", wide_windows(400), preset="paper") == ["deep-transformer"]

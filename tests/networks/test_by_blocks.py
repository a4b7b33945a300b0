"""A network with many targets is trained a block of targets at a time."""

import numpy as np
import pytest

import forecause as fc
from forecause.data.windows import Windows
from forecause.forecast.forecaster import FitData, squared_errors
from forecause.networks import several_trainings

SETTINGS = fc.forecasters.MLP(hidden=8).trained_with(
    max_steps=300, look_every=20, learning_rate=3e-4
)


@pytest.fixture(scope="module")
def windows():
    system = fc.simulate(nodes=7, max_lag=2, rows=800, mechanism="mlp-add", seed=8)
    return Windows.of(system.panel, 2)


def trained(windows, **more):
    model = SETTINGS.seeded_build(windows.shape, seed=0)
    model.fit(FitData(*windows.split(0.2), **more))
    return model


def losses(model, windows):
    return squared_errors(model, windows.split(0.2)[1]).mean(0)


def test_forecasts_are_as_good_as_those_of_all_targets_together(windows, monkeypatch):
    together = losses(trained(windows), windows)
    monkeypatch.setattr(several_trainings, "TARGETS_TOGETHER", 3)
    np.testing.assert_allclose(losses(trained(windows), windows), together, rtol=0.1)


def test_a_block_learns_the_same_whatever_the_other_targets_have_to_beat(windows, monkeypatch):
    monkeypatch.setattr(several_trainings, "TARGETS_TOGETHER", 3)
    hard = np.full(7, 10.0)
    hard[:3] = 0.0  # nobody can beat that, so the first block gives up
    stopped = trained(windows, to_beat=lambda w: np.broadcast_to(hard, (len(w), 7)))
    free = trained(windows, to_beat=lambda w: np.full((len(w), 7), 10.0))
    for name, weight in free.state().items():
        np.testing.assert_array_equal(weight[3:], stopped.state()[name][3:])
    assert (free.state()["first"][:3] != stopped.state()["first"][:3]).any()


def test_few_targets_stay_together(windows):
    assert not several_trainings.trains_by_blocks(trained(windows).module)

"""A new forecaster is one file: this one, which defines one and runs the whole path with it."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import forecause as fc
from forecause.config import ForecasterSpec
from forecause.forecast.forecaster import PLAIN
from forecause.networks.settings import TrainedSettings
from forecause.networks.training import Trained
from systems import chain

VARIABLES = ["a", "b", "c"]


class HalfSettings(fc.forecasters.ForecasterSettings):
    """Shrinks the least-squares coefficients of the latest row by a factor."""

    kind: ClassVar[str] = "half"
    closed_form: ClassVar[bool] = True
    instant: ClassVar[bool] = True

    factor: float = 0.5

    def build(self, shape):
        return Half(shape, self)


class Half(fc.forecasters.Forecaster):
    state_names = ("slope",)  # what is saved

    def __init__(self, shape, settings):
        super().__init__(shape, settings)
        self.slope = np.zeros((self.n_variables, self.n_variables))

    def forward(self, past, rules=PLAIN, domain=None):
        return past[:, -1] @ self.slope.T

    def fit(self, fit_data):
        window = fit_data.windows.draw(np.arange(len(fit_data.windows)))
        fitted = np.linalg.lstsq(window.past[:, -1], window.target)[0]
        self.slope = self.settings.factor * fitted.T
        self.estimate_noise(fit_data.held_out)


class ScaledSettings(TrainedSettings):
    """A network of one's own: a torch module behind the same settings."""

    kind: ClassVar[str] = "scaled"

    def module(self, shape):
        return Scaled(shape, self)


class Scaled(Trained):
    """A line of every variable's own latest value, learned by gradient descent."""

    def __init__(self, shape, settings):
        super().__init__(shape, settings)
        self.scale = nn.Parameter(torch.zeros(self.n_variables))

    def forward(self, past, rules=PLAIN, domain=None):
        return past[:, -1] * self.scale


@pytest.fixture(scope="module")
def run():
    table = pd.DataFrame(chain(600), columns=VARIABLES)
    return fc.discover(table, 2, forecaster=HalfSettings(factor=0.4))


def test_a_forecaster_defined_here_is_fitted_read_tested_and_reported(run, tmp_path):
    assert run.forecaster.kind == "half"
    assert list(run.losses.columns) == ["naive", "mean", "half", "chosen"]
    edges = run.graph.edges[["source", "target", "lag"]].values.tolist()
    assert ["a", "b", 1] in edges
    assert "half" in run.report(tmp_path / "page.html").read_text()
    assert run.forecast(3).shape == (3, 3)


def test_it_comes_back_from_disk_with_its_settings(run, tmp_path):
    again = fc.load(run.save(tmp_path / "run"))
    assert again.forecaster.settings == run.forecaster.settings == HalfSettings(factor=0.4)
    assert again.config.forecasting.forecaster == HalfSettings(factor=0.4)
    past = np.random.default_rng(0).normal(size=(5, 2, 3))
    np.testing.assert_array_equal(again.forecaster(past), run.forecaster(past))


def test_without_slopes_of_its_own_they_are_measured(run):
    past = np.random.default_rng(0).normal(size=(5, 2, 3))
    slopes = run.forecaster.jacobian(past)
    np.testing.assert_allclose(slopes[:, :, 1], np.broadcast_to(run.forecaster.slope, (5, 3, 3)))
    assert not slopes[:, :, 0].any()


def test_a_network_of_ones_own_is_trained_and_saved(tmp_path):
    rng = np.random.default_rng(0)
    values = np.zeros((400, 2))
    for row in range(1, 400):
        values[row] = [0.8, -0.5] * values[row - 1] + rng.normal(size=2)
    brief = ScaledSettings().trained_with(max_steps=300, learning_rate=0.02)
    own = fc.discover(values, 1, forecaster=brief)
    np.testing.assert_allclose(own.forecaster.state()["scale"], [0.8, -0.5], atol=0.12)
    again = fc.load(own.save(tmp_path / "run"))
    past = rng.normal(size=(5, 1, 2)).astype(np.float32)
    np.testing.assert_array_equal(again.forecaster(past), own.forecaster(past))


def test_it_can_be_asked_for_by_its_name(run):
    by_name = fc.discover(chain(300), 2, forecaster="half")
    assert by_name.forecaster.settings.factor == 0.5


def test_a_saved_run_whose_forecaster_is_not_defined_says_so(run, tmp_path, monkeypatch):
    folder = run.save(tmp_path / "run")
    monkeypatch.delitem(ForecasterSpec.known, "half")
    with pytest.raises(fc.InputError) as refused:
        fc.load(folder)
    assert str(refused.value) == (
        "The forecaster 'half' of this run is not one of Forecause's own; import "
        f"{__name__} before you load the run."
    )

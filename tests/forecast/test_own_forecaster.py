"""A new forecaster is one file: this one, which defines one and runs the whole path with it."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch

import forecause as fc
from forecause.config import ForecasterSpec
from forecause.forecast.backward import PLAIN
from systems import chain

VARIABLES = ["a", "b", "c"]


class HalfSettings(fc.ForecasterSettings):
    """Shrinks the least-squares coefficients of the latest row by a factor."""

    kind: ClassVar[str] = "half"
    closed_form: ClassVar[bool] = True
    instant: ClassVar[bool] = True

    factor: float = 0.5

    def build(self, shape):
        return Half(shape, self)


class Half(fc.Forecaster):
    def __init__(self, shape, settings):
        super().__init__(shape, settings)
        self.register_buffer("slope", torch.zeros(self.n_variables, self.n_variables))

    def forward(self, past, rules=PLAIN, domain=None):
        return past[:, -1] @ self.get_buffer("slope").T

    def fit(self, fit_data):
        window = fit_data.windows.draw(np.arange(len(fit_data.windows)))
        fitted = torch.linalg.lstsq(window.past[:, -1], window.target).solution
        self.get_buffer("slope").copy_(self.settings.factor * fitted.T)
        self.estimate_noise(fit_data.held_out)


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
    past = torch.randn(5, 2, 3)
    torch.testing.assert_close(again.forecaster(past), run.forecaster(past))


def test_it_can_be_asked_for_by_its_name(run):
    by_name = fc.discover(chain(300), 2, forecaster="half")
    assert by_name.forecaster.settings.factor == 0.5


def test_a_saved_run_whose_forecaster_is_not_defined_says_so(run, tmp_path, monkeypatch):
    folder = run.save(tmp_path / "run")
    monkeypatch.delitem(ForecasterSpec.known, "half")
    with pytest.raises(fc.InputError, match="Unknown forecaster 'half'"):
        fc.load(folder)

"""Networks and trees are fitted only where there is something beyond lines and splines to find."""

import numpy as np
import pytest

from fitted import fit_forecaster
from forecause.data import Panel, Windows
from forecause.forecast import selection


def windows_of(joint, rows=2500, variables=4, seed=0, noise=0.5):
    """The first variable follows two others a row earlier, by their sum or by their product."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, variables))
    a, b = x[:-1, 1], x[:-1, 2]
    x[1:, 0] = (a * b if joint else a + np.tanh(b)) + noise * x[1:, 0]
    return Windows.of(Panel.from_arrays([x], [f"v{i}" for i in range(variables)]), 1)


def test_lines_and_bends_leave_nothing_to_learn_in_a_dozen_systems():
    for seed in range(12):
        fitted = fit_forecaster("auto", windows_of(False, seed=seed))
        assert fitted.joint == frozenset()
        assert set(fitted.losses.columns) == {
            "mean", "naive", "linear", "additive", "dictionary", "chosen",
        }  # fmt: skip


def test_a_product_is_noticed_and_forecast_by_a_learner():
    fitted = fit_forecaster("auto", windows_of(True))
    assert fitted.joint == {0}
    assert fitted.losses.loc["v0", "chosen"] in ("dictionary", "trees")
    assert list(fitted.losses["chosen"][1:]) == ["linear"] * 3
    assert fitted.losses.loc["v0", "trees"] < 0.5 * fitted.losses.loc["v0", "additive"]


@pytest.mark.parametrize("joint", [True, False])
def test_with_many_inputs_products_of_the_strongest_ones_decide(monkeypatch, joint):
    monkeypatch.setattr(selection, "MOST_LEARNED", 5)
    windows = windows_of(joint, variables=8)
    if joint:  # the strongest inputs are those that show on their own, too
        values = windows.panel.values.copy()
        values[1:, 0] += values[:-1, 1] + values[:-1, 2]
        windows = Windows.of(Panel.from_arrays([values], [f"v{i}" for i in range(8)]), 1)
    fits = selection.Fits(windows, selection.ForecastOptions(), selection.FitContext())
    for kind in selection.closed_forms(windows):
        fits.comparison.add(fits.fitted(kind()))
    assert fits.joint == ({0} if joint else frozenset())

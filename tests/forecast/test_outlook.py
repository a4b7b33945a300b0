import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.api import ExponentialSmoothing

import forecause as fc
from forecause.forecast.follower import Follower, OwnChanges, Smoothing


def test_smoothing_is_that_of_statsmodels():
    rng = np.random.default_rng(0)
    history = np.sin(np.arange(96) * np.pi / 6)[:, None] * 3 + rng.normal(size=(96, 1)).cumsum(0)
    rates = np.array([[0.5], [0.2], [0.9], [0.3]])
    first = history[:36, 0].reshape(3, 12)
    season = (first - first.mean(1, keepdims=True)).mean(0)
    model = ExponentialSmoothing(
        history[:, 0],
        trend="add",
        damped_trend=True,
        seasonal="add",
        seasonal_periods=12,
        initialization_method="known",
        initial_level=first.mean(),
        initial_trend=0.0,
        initial_seasonal=season,
    )
    expected = model.fit(
        smoothing_level=0.5,
        smoothing_trend=0.2,
        damping_trend=0.9,
        smoothing_seasonal=0.3 * (1 - 0.5),
        optimized=False,
    ).forecast(11)
    found = Smoothing(12, rates).paths(history, np.array([96]), 11)[0, :, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_changes_of_a_random_walk_are_shrunk_to_the_last_value():
    walk = np.random.default_rng(1).normal(size=(400, 5)).cumsum(0) + 50
    path = OwnChanges.fitted(walk, 1).paths(walk, np.array([400]), 10)[0]
    assert np.abs(path - walk[-1]).max() < 1.5  # ten steps of a walk are 3.2 wide


def test_a_follower_takes_up_a_new_level_and_keeps_the_season():
    wave = 2 * np.sin(np.arange(240) * np.pi / 6)
    noise = np.random.default_rng(0).normal(size=240)
    history = (wave + 0.1 * noise + np.where(np.arange(240) >= 225, 30.0, 0.0))[:, None]
    path = Follower.fitted(history, 12).paths(history, np.array([240]), 12)[0, :, 0]
    assert np.abs(path - (30 + 2 * np.sin((240 + np.arange(12)) * np.pi / 6))).max() < 2


@pytest.fixture(scope="module")
def walks():
    """A run on random walks, and what came after."""
    values = np.random.default_rng(3).normal(size=(420, 4)).cumsum(0)
    table = pd.DataFrame(values, columns=list("abcd"))
    return fc.discover(table[:396], max_lag=2, forecaster="linear"), table[396:]


def test_a_walk_is_forecast_near_its_last_value_with_bands_that_grow(walks):
    run, later = walks
    assert sum("smoothing" in by for by in run.causal.forecast_by) >= 2
    last = run.panel.values[-1]
    ahead = run.forecast(24)
    assert np.abs(ahead.to_numpy() - last).max() < 4
    table = run.forecast(24, bands=True)
    width = (table["high_80"] - table["low_80"]).to_numpy().reshape(24, 4).mean(1)
    assert 1.5 < width[0] < 4  # 2.56 where the model is known
    assert 2 < width[15] / width[0] < 7  # 4 for a walk
    held = (table["low_95"] < later.to_numpy().ravel()) & (
        later.to_numpy().ravel() < table["high_95"]
    )
    assert held.mean() > 0.8


def test_what_is_held_moves_nothing_without_a_path_however_it_is_forecast(walks):
    run, _ = walks
    plain = run.forecast(6)
    held = run.simulate_do({"a": 100.0}, 6)
    np.testing.assert_allclose(held["a"], 100, rtol=1e-6)
    edges = run.graph.edges
    reached = set(edges[edges["source"] == "a"]["target"])
    for name in set("bcd") - reached:
        np.testing.assert_array_equal(held[name], plain[name])


def test_it_is_saved_with_the_run(walks, tmp_path):
    run, _ = walks
    again = fc.load(run.save(tmp_path / "run"))
    pd.testing.assert_frame_equal(again.forecast(30), run.forecast(30))
    pd.testing.assert_frame_equal(again.forecast(5, bands=True), run.forecast(5, bands=True))


def test_what_is_driven_by_others_stays_with_the_model():
    system = fc.simulate(nodes=4, max_lag=2, rows=500, seed=1)
    run = fc.discover(system.frame(), max_lag=2, forecaster="linear")
    assert run.causal.outlook is not None
    assert (run.causal.outlook.share == 0).mean() >= 0.75
    errors = run.causal.outlook.errors
    assert (errors["model"] < errors["smoothing"]).mean() >= 0.75


def test_an_error_that_is_not_known_is_saved_and_loaded_again(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    run = fc.discover(table, max_lag=2, forecaster="linear")
    run.causal.outlook.errors.iloc[0, 0] = np.nan
    again = fc.load(run.save(tmp_path / "run"))
    assert np.isnan(again.causal.outlook.errors.iloc[0, 0])
    once_more = fc.load(again.save(tmp_path / "again"))
    pd.testing.assert_frame_equal(once_more.causal.outlook.errors, run.causal.outlook.errors)

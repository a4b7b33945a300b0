"""Claims about the dictionary as a forecaster."""

import numpy as np

import forecause as fc
from fitted import fit_forecaster
from forecause.forecast.dictionary_search import AdditiveModels, DictionarySearch
from systems import single_inputs, windows_of


def product_of_three(rows=2500, seed=0):
    """v3 follows the product of the others, and nothing else follows anything."""
    x = np.random.default_rng(seed).normal(size=(rows, 4))
    x[1:, 3] = np.clip(x[:-1, :3], -2, 2).prod(1) + 0.5 * x[1:, 3]
    return x


def test_its_forecast_is_that_of_the_search_it_came_from():
    windows = windows_of(product_of_three(), 2)
    model = fit_forecaster("dictionary", windows, held_out=0.2).forecaster.member_of(3)
    early = windows.split(0.2)[0]
    batch = early.draw(np.arange(len(early)))
    latest_first = batch.past[:, ::-1]  # as it is searched
    inputs = latest_first.reshape(len(batch), -1).astype(np.float64)
    lags = [np.array([v, v + 4]) for v in range(4)]
    targets = batch.target.astype(np.float64)
    search = DictionarySearch(AdditiveModels(inputs, targets, single_inputs(8)), lags, 0.005)
    search.look()
    search.scan_target_minus_own_past()
    found = search.models()
    expected = np.stack([one.predict(inputs) for one in found], axis=1)
    forecast = model.forecast(batch)
    np.testing.assert_allclose(forecast, expected, atol=1e-3)
    assert found[3].atoms
    assert np.corrcoef(forecast[:, 3], targets[:, 3])[0, 1] > 0.8


def test_it_forecasts_a_product_of_three_that_lines_and_curves_cannot():
    windows = windows_of(product_of_three(), 1)
    losses = {k: fit_forecaster(k, windows).losses[k]["v3"] for k in ("additive", "dictionary")}
    assert losses["additive"] > 0.9
    assert losses["dictionary"] < 0.4


def test_its_gradient_is_its_slope():
    windows = windows_of(product_of_three(), 1)
    model = fit_forecaster("dictionary", windows).forecaster.member_of(3)
    batch = windows.draw(np.arange(50))
    slopes = model.jacobian(batch.past)[:, 3, 0]
    for source in range(4):
        moved = batch.past.copy()
        moved[:, 0, source] += 1e-2
        change = (model(moved) - model(batch.past))[:, 3] / 1e-2
        np.testing.assert_allclose(slopes[:, source], change, atol=0.05, rtol=0.05)


def test_what_is_forbidden_is_not_read():
    windows = windows_of(product_of_three(), 1)
    allowed = np.ones((4, 1, 4), dtype=bool)
    allowed[3, 0, 0] = False
    model = fit_forecaster("dictionary", windows, allowed=allowed).forecaster
    past = windows.draw(np.arange(100)).past
    assert not model.jacobian(past)[:, 3, 0, 0].any()


def test_a_run_is_saved_and_loaded_with_the_same_forecast(tmp_path):
    values = product_of_three()
    run = fc.discover(values, max_lag=1, forecaster=fc.forecasters.Dictionary())
    loaded = fc.load(run.save(tmp_path / "run"))
    assert loaded.graph == run.graph
    np.testing.assert_array_equal(loaded.forecast(3).values, run.forecast(3).values)

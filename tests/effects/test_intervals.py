"""Intervals of effects against other programs and closed forms; bands against a known process."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import forecause as fc
from forecause.data import Panel, Windows
from forecause.effects import intervals
from forecause.effects.intervals import COLUMNS, average_effect, with_effects
from forecause.graph.lagged import LaggedGraph

LEVEL = 0.9


def windows_of(values, max_lag=1):
    names = [f"x{i}" for i in range(values.shape[1])]
    return Windows.of(Panel.from_arrays([values], names), max_lag)


def driven(x, response, noise, rng):
    """x and what follows it by `response` one row later."""
    y = np.concatenate([[0.0], response(x[:-1])]) + noise * rng.normal(size=len(x))
    return np.column_stack([x, y])


def edge(lag=1):
    return LaggedGraph.from_edges(["x0", "x1"], 1, [("x0", "x1", lag, 1.0)])


def test_with_few_rows_it_is_ordinary_least_squares_with_robust_errors():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    values = driven(x, lambda v: 0.5 * v, 0.5 + np.abs(x), rng)
    found = average_effect(edge(), windows_of(values), "x0", "x1", 1)
    past = values[:-1] / values[:, :1].std()
    fit = sm.OLS(values[1:, 1], sm.add_constant(past)).fit(cov_type="HC3", use_t=True)
    np.testing.assert_allclose(found.change, fit.params[1], rtol=1e-6)
    np.testing.assert_allclose([found.low, found.high], fit.conf_int(1 - LEVEL)[1], rtol=1e-6)


def test_a_curve_has_its_average_slope_where_a_line_is_wrong():
    rng = np.random.default_rng(1)
    x = rng.exponential(size=4000)
    values = driven(x, np.square, 0.5, rng)
    found = average_effect(edge(), windows_of(values), "x0", "x1", 1)
    average = 2 * x[:-1].mean() * x.std()
    assert found.low < average < found.high
    line = np.polyfit(x[:-1], values[1:, 1], 1)[0] * x.std()
    assert line > found.high  # 4 instead of 2 per unit


def test_a_product_has_the_mean_of_its_partner_as_slope():
    rng = np.random.default_rng(2)
    one, other = rng.normal(1.0, 0.4, size=3000), rng.normal(-0.5, 0.4, size=3000)
    y = np.concatenate([[0.0], (one * other)[:-1]]) + 0.2 * rng.normal(size=3000)
    graph = LaggedGraph.from_edges(
        ["x0", "x1", "x2"], 1, [("x0", "x2", 1, 1.0), ("x1", "x2", 1, 1.0)]
    )
    found = with_effects(graph, windows_of(np.column_stack([one, other, y]))).edges
    rows = found.set_index("source")
    assert rows.loc["x0", "change_low"] < other.mean() * one.std() < rows.loc["x0", "change_high"]
    assert rows.loc["x1", "change_low"] < one.mean() * other.std() < rows.loc["x1", "change_high"]


def test_products_are_fitted_only_where_something_hints_at_them(monkeypatch):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2000, 2))
    graph = LaggedGraph.from_edges(
        ["x0", "x1", "x2"], 1, [("x0", "x2", 1, 1.0), ("x1", "x2", 1, 1.0)]
    )
    asked, own = [], intervals._products
    monkeypatch.setattr(intervals, "_products", lambda *given: asked.append(1) or own(*given))
    for joint in (False, True):
        effect = np.tanh(x[:, 0]) + x[:, 1] ** 2 + joint * 0.5 * x[:, 0] * x[:, 1]
        y = np.concatenate([[0.0], effect[:-1]]) + rng.normal(size=2000)
        with_effects(graph, windows_of(np.column_stack([x, y])))
        assert bool(asked) is joint


def test_intervals_hold_nine_times_in_ten():
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        values = driven(rng.normal(size=120), lambda v: 0.3 * v, 1.0, rng)
        found = average_effect(edge(), windows_of(values), "x0", "x1", 1)
        hits += found.low < 0.3 * values[:, 0].std() < found.high
    assert stats.binom.cdf(hits, 200, LEVEL) > 0.001
    assert stats.binom.sf(hits - 1, 200, LEVEL) > 0.001


def test_a_run_has_the_columns_and_the_effect_tells_them():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        driven(rng.normal(size=800), lambda v: 2 * v, 1.0, rng), columns=["a", "b"]
    )
    run = fc.discover(table, 1, forecaster="linear")
    row = run.graph.edges.set_index(["source", "target"]).loc[("a", "b")]
    told = run.effect("a", "b", 1)
    assert [told.change, told.low, told.high] == [row[name] for name in COLUMNS]
    assert told.low < 2 * table["a"].std() < told.high
    assert "90% interval" in repr(told)
    nothing = run.effect("b", "a", 1)
    assert nothing.low < 0 < nothing.high  # no edge, asked all the same


def test_where_every_input_is_a_cause_nothing_stands_beside_them():
    rng = np.random.default_rng(3)
    values = driven(rng.normal(size=200), lambda v: 0.5 * v, 0.5, rng)
    both = LaggedGraph.from_edges(["x0", "x1"], 1, [("x0", "x1", 1, 1.0), ("x1", "x1", 1, 0.1)])
    found = with_effects(both, windows_of(values)).edges.set_index("source")
    one = with_effects(edge(), windows_of(values)).edges.set_index("source")
    np.testing.assert_allclose(found.loc["x0", COLUMNS[0]], one.loc["x0", COLUMNS[0]], rtol=0.2)


def test_labels_have_no_effect_in_units():
    rng = np.random.default_rng(4)
    labels = rng.choice(["dry", "wet"], size=600)
    y = np.concatenate([[0.0], (labels[:-1] == "wet") * 1.0]) + 0.3 * rng.normal(size=600)
    run = fc.discover(
        fc.read(pd.DataFrame({"w": labels, "y": y}), labels=["w"]), 1, forecaster="linear"
    )
    row = run.graph.edges.query("source == 'w' and target == 'y'")
    assert len(row) == 1
    assert row[list(COLUMNS)].isna().all(axis=None)


def test_bands_are_those_of_an_autoregression():
    rng = np.random.default_rng(5)
    x = np.zeros(4000)
    for row in range(1, len(x)):
        x[row] = 0.8 * x[row - 1] + rng.normal()
    run = fc.discover(pd.DataFrame({"x": x, "z": rng.normal(size=len(x))}), 1, forecaster="linear")
    bands = run.forecast(6, bands=True).query("variable == 'x'")
    sd = np.sqrt(np.cumsum(0.8 ** (2 * np.arange(6))))
    for level in (80, 95):
        width = bands[f"high_{level}"] - bands[f"low_{level}"]
        expected = 2 * stats.norm.ppf(0.5 + level / 200) * sd
        np.testing.assert_allclose(width, expected, rtol=0.12)
    np.testing.assert_allclose(bands["forecast"], run.forecast(6)["x"])


def test_forecasts_have_the_dates_that_follow():
    rng = np.random.default_rng(6)
    months = pd.date_range("2000-01-31", periods=200, freq="ME")
    table = pd.DataFrame({"month": months, "x": rng.normal(size=200), "y": rng.normal(size=200)})
    ahead = fc.discover(table, 1, time="month", forecaster="linear").forecast(2)
    assert ahead.index.strftime("%Y-%m-%d").to_list() == ["2016-09-30", "2016-10-31"]


def test_an_edge_that_was_barely_chosen_reaches_nearer_to_zero():
    rng = np.random.default_rng(5)
    graph, reached = edge(), []
    for slope in (0.13, 0.6):
        values = windows_of(driven(rng.normal(size=400), lambda v, s=slope: s * v, 1.0, rng))
        plain, chosen = (with_effects(graph, values, fdr).edges.iloc[0] for fdr in (None, 0.05))
        assert chosen["change"] == plain["change"]
        assert chosen["change_high"] == plain["change_high"]
        reached.append(plain["change_low"] - chosen["change_low"])
    assert reached[0] > 0.01
    np.testing.assert_allclose(reached[1], 0.0, atol=1e-9)


def test_the_allowance_for_being_chosen_is_that_of_simulated_choices():
    from forecause.effects.intervals import _lower_if_chosen

    rng = np.random.default_rng(6)
    bar, size = 3.0, 3.4
    mean = float(_lower_if_chosen(np.array([size]), bar, 0.95)[0])
    seen = mean + rng.normal(size=2_000_000)
    chosen = seen[np.abs(seen + rng.normal(size=len(seen))) > bar]
    np.testing.assert_allclose((chosen <= size).mean(), 0.95, atol=0.003)

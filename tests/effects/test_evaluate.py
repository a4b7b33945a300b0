from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.api import VAR
from statsmodels.tsa.stattools import acf
from statsmodels.tsa.vector_ar.var_model import forecast as var_forecast

import forecause as fc
from forecause.data import Panel
from forecause.effects.evaluate import METHODS, evaluate, rolling_origin
from forecause.forecast.forecaster import roll as roll_on
from forecause.forecast.linear import Linear, LinearModel
from forecause.method import run_on
from forecause.regression.autoregression import Autoregression
from forecause.seasons.repeated import autocorrelation, find_season
from heard import Heard
from systems import bent_chain, chain

rolling_origin = partial(rolling_origin, discover=run_on)
evaluate = partial(evaluate, discover=run_on)

LINEAR = {"forecaster": "linear", "steps": 4, "origins": 3}
ONCE = LINEAR | {"refit": "first"}


def panel(*arrays):
    return Panel.from_arrays(list(arrays or [chain(400)]), list("abc"))


def seasonal(rows=600, season=12, noise=0.4, seed=0):
    """Three waves of one season, out of step, with noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(rows)[:, None] + np.array([0, 3, 7])
    return np.sin(2 * np.pi * time / season) + noise * rng.normal(size=(rows, 3))


def forecasts(found, **where):
    """Forecasts of the rows where the columns hold these values."""
    table = found.forecasts
    for column, value in where.items():
        table = table[table[column] == value]
    return table["forecast"].to_numpy()


def test_each_origin_forecasts_what_a_table_that_ends_there_would():
    whole = rolling_origin(panel(seasonal()), 3, refit="every", **LINEAR)
    rows = whole.forecasts["row"].unique()
    assert rows.tolist() == [588, 592, 596]
    for row in rows:
        alone = rolling_origin(panel(seasonal()[: row + 4]), 3, **(LINEAR | {"origins": 1}))
        seen = whole.forecasts[(whole.forecasts["row"] == row)].reset_index(drop=True)
        if row == rows[0]:  # season and scale are those before the first origin
            assert (alone.seasons, alone.scale) == (whole.seasons, whole.scale)
        pd.testing.assert_frame_equal(seen, alone.forecasts)


@pytest.mark.parametrize("forecaster", ["linear", "additive"])
@pytest.mark.parametrize("refit", ["first", "every"])
def test_rows_after_an_origin_do_not_change_its_forecasts(forecaster, refit):
    values = chain(150)
    asked = {"forecaster": forecaster, "steps": 5, "origins": 2, "refit": refit}
    before = rolling_origin(panel(values), 1, **asked)
    for row in (140, 145):
        changed = values.copy()
        changed[row:] = 1000 * np.random.default_rng(1).normal(size=changed[row:].shape)
        after = rolling_origin(panel(changed), 1, **asked)
        for earlier in before.forecasts["row"].unique():
            if earlier <= row:
                np.testing.assert_array_equal(
                    forecasts(after, row=earlier), forecasts(before, row=earlier)
                )


def test_rows_past_the_last_forecast_change_nothing():
    values = chain(400)
    values[380:, 1] = np.nan  # the last origins move back to where the past is complete
    before = rolling_origin(panel(values), 2, **LINEAR)
    last = before.forecasts["row"].max()
    assert last == 379
    changed = values.copy()
    changed[last + 4 :, [0, 2]] += 100
    after = rolling_origin(panel(changed), 2, **LINEAR)
    pd.testing.assert_frame_equal(after.forecasts, before.forecasts)
    pd.testing.assert_frame_equal(after.table, before.table)


def test_a_domain_that_begins_after_an_origin_is_not_known_there():
    values, domain = chain(400), np.zeros(400, dtype=np.int64)
    domain[100:250] = 1
    later = domain.copy()
    later[396:] = 1
    asked = {"forecaster": "linear", "steps": 4, "origins": 1}
    one, other = (
        rolling_origin(panel(values).with_domain(d, ("day", "night")), 2, **asked)
        for d in (domain, later)
    )
    pd.testing.assert_frame_equal(one.forecasts, other.forecasts)
    # and the domain before it is an input
    domain[380:396] = 1
    night = rolling_origin(panel(values).with_domain(domain, ("day", "night")), 2, **asked)
    assert not np.allclose(
        forecasts(one, method="forecaster"), forecasts(night, method="forecaster")
    )


@pytest.mark.parametrize("season", [1, 5, 30])
def test_the_simple_methods_are_what_their_names_say(season):
    values, steps = chain(300), 7
    found = rolling_origin(
        panel(values), 2, forecaster="linear", steps=steps, origins=2, season=season
    )
    for row in (286, 293):
        for column, name in enumerate("abc"):
            past = values[:row, column]
            naive = [past[row + h - season * (1 + h // season)] for h in range(steps)]
            at = {"row": row, "variable": name}
            np.testing.assert_allclose(forecasts(found, method="seasonal naive", **at), naive)
            np.testing.assert_allclose(forecasts(found, method="last value", **at), past[-1])
            np.testing.assert_allclose(forecasts(found, method="mean", **at), past.mean())
    actual = found.forecasts.query("method == 'mean' and row == 293 and variable == 'b'")
    np.testing.assert_array_equal(actual["actual"], values[293:, 1])


def test_where_the_last_season_is_missing_seasonal_naive_takes_the_one_before():
    values = seasonal(300)
    values[284, 1] = np.nan  # 12 rows before the origin
    found = rolling_origin(panel(values), 2, forecaster="linear", steps=4, origins=1, season=12)
    first = forecasts(found, method="seasonal naive", variable="b", step=1)
    assert first == pytest.approx(values[272, 1])


def test_the_recursion_is_statsmodels_var_forecast():
    rng = np.random.default_rng(0)
    weight, intercept = 0.2 * rng.normal(size=(3, 2, 3)), rng.normal(size=3)  # (target, step, ...)
    model = LinearModel((2, 3), Linear())
    model.weight, model.intercept = weight, intercept
    past = rng.normal(size=(5, 2, 3))
    found = roll_on(model, past, 9)
    by_lag = weight[:, ::-1].transpose(1, 0, 2)  # (lag, target, source)
    for case in range(5):
        expected = var_forecast(past[case], by_lag, intercept[:, None].T, 9)
        np.testing.assert_allclose(found[case], expected, rtol=1e-10)


def test_the_vars_are_those_of_statsmodels_in_levels_and_in_differences():
    values = chain(400)
    values[:, 0] = values[:, 0].cumsum()
    found = rolling_origin(panel(values), 2, refit="every", **(LINEAR | {"origins": 1}))
    most = int(12 * (396 / 100) ** 0.25)
    levels = VAR(values[:396]).fit(maxlags=most, ic="aic")
    changes = VAR(np.diff(values[:396], axis=0)).fit(maxlags=most, ic="aic")
    ahead = levels.forecast(values[396 - levels.k_ar : 396], 4)
    moved = changes.forecast(np.diff(values[:396], axis=0)[-changes.k_ar :], 4).cumsum(0)
    for column, name in enumerate("abc"):
        np.testing.assert_allclose(
            forecasts(found, method="var", variable=name), ahead[:, column], rtol=1e-5, atol=1e-8
        )
        np.testing.assert_allclose(
            forecasts(found, method="var in differences", variable=name),
            values[395, column] + moved[:, column],
            rtol=1e-5,
            atol=1e-8,
        )
    drift = values[395] + np.arange(1, 5)[:, None] * (values[395] - values[0]) / 395
    np.testing.assert_allclose(forecasts(found, method="drift", variable="a"), drift[:, 0])


def test_ours_is_what_forecast_of_a_run_on_the_same_rows_says():
    values = chain(400)
    values[:, 2] = values[:, 2].cumsum()
    found = rolling_origin(panel(values), 2, refit="every", **(LINEAR | {"origins": 1}))
    told = run_on(panel(values[:396]), fc.Config(max_lag=2, forecaster="linear")).forecast(4)
    for name in "abc":
        ours = forecasts(found, method="forecaster", variable=name)
        np.testing.assert_allclose(ours, told[name], rtol=1e-4, atol=1e-4)


def test_the_sentence_compares_with_the_best_rival():
    found = rolling_origin(panel(), 2, **LINEAR)
    mase = found.summary.pivot_table("mase", "variable", "method").mean().drop("forecaster")
    assert f"its best rival, the {mase.idxmin()} (" in found.sentence


def test_the_errors_are_those_of_the_forecasts():
    found = rolling_origin(panel(seasonal()), 2, forecaster="additive", steps=4, origins=3)
    assert len(found.table) == 3 * 4 * len(METHODS)
    assert len(found.summary) == 3 * len(METHODS)
    own = found.forecasts.query("variable == 'b' and step == 3 and method == 'var'")
    naive = found.forecasts.query("variable == 'b' and step == 3 and method == 'seasonal naive'")
    error, rival = (np.abs(t["forecast"] - t["actual"]).to_numpy() for t in (own, naive))
    row = found.table.query("variable == 'b' and step == 3 and method == 'var'").iloc[0]
    assert row["count"] == 3
    assert row["mae"] == pytest.approx(error.mean())
    assert row["rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    assert row["skill"] == pytest.approx(1 - error.mean() / rival.mean())
    taught = seasonal()[:588, 1]
    assert row["mase"] == pytest.approx(error.mean() / np.abs(taught[12:] - taught[:-12]).mean())
    assert (found.table.query("method == 'seasonal naive'")["skill"] == 0).all()


@pytest.fixture(scope="module")
def in_own_units():
    return rolling_origin(panel(seasonal(200)), 2, **ONCE).summary


@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-100, 100))
@settings(max_examples=2, deadline=None)
def test_units_change_neither_skill_nor_mase(in_own_units, scale, shift):
    one = in_own_units
    other = rolling_origin(panel(seasonal(200) * scale + shift), 2, **ONCE).summary
    for column in ("skill", "mase"):
        np.testing.assert_allclose(other[column], one[column], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(other["mae"], one["mae"] * scale, rtol=2e-3)


@pytest.mark.parametrize("season", [7, 12, 24, 50])
@pytest.mark.parametrize("seed", range(3))
def test_the_season_of_a_noisy_wave_is_found(season, seed):
    rng = np.random.default_rng(seed)
    wave = np.sin(2 * np.pi * np.arange(1000) / season + seed)
    assert find_season([wave + 0.5 * rng.normal(size=1000)]) == season
    trend = 0.02 * np.arange(1000)
    gaps = np.where(rng.uniform(size=1000) < 0.1, np.nan, wave + trend)
    assert find_season([gaps]) == season


def test_many_short_series_tell_their_season_together():
    rng = np.random.default_rng(0)
    waves = [np.sin(2 * np.pi * (np.arange(40) / 8 + p)) for p in rng.uniform(size=30)]
    assert find_season([wave + 0.6 * rng.normal(size=40) for wave in waves]) == 8


def test_noise_and_slow_wandering_have_no_season():
    found = []
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(size=500)
        slow = np.zeros(500)
        for t in range(1, 500):
            slow[t] = 0.9 * slow[t - 1] + noise[t]
        found += [find_season([series]) for series in (noise, slow, np.cumsum(noise))]
    assert np.mean(np.array(found) > 1) <= 0.02
    assert find_season([np.arange(6.0)]) == 1


def test_autocorrelation_is_statsmodels():
    values = chain(300)[:, 2]
    time = np.arange(300)
    detrended = values - np.polyval(np.polyfit(time, values, 1), time)
    expected = acf(detrended, adjusted=True, nlags=20, fft=False)
    np.testing.assert_allclose(autocorrelation([values], 20), expected, atol=1e-10)
    gaps = values.copy()
    gaps[[20, 21, 150]] = np.nan
    trend = np.polyfit(time[~np.isnan(gaps)], gaps[~np.isnan(gaps)], 1)
    expected = acf(gaps - np.polyval(trend, time), adjusted=True, nlags=20, missing="conservative")
    np.testing.assert_allclose(autocorrelation([gaps], 20), expected, atol=1e-10)


def test_a_season_that_no_lag_reaches_makes_seasonal_naive_hard_to_beat():
    found = rolling_origin(panel(seasonal(noise=0.1)), 1, **(ONCE | {"steps": 12}))
    assert found.seasons == {"a": 12, "b": 12, "c": 12}
    skill = found.summary.set_index(["variable", "method"])["skill"]
    assert (skill.xs("last value", level="method") < -1).all()
    none = rolling_origin(panel(seasonal()), 1, season=None, **ONCE)
    assert none.seasons == {"a": 1, "b": 1, "c": 1}
    assert "there being no season" in none.sentence
    np.testing.assert_array_equal(
        forecasts(none, method="seasonal naive"), forecasts(none, method="last value")
    )


def test_the_season_is_that_of_the_rows_before_the_first_origin():
    noise = np.random.default_rng(1).normal(size=(260, 3))
    ended = panel(np.concatenate([seasonal(240), noise]))
    asked = {"forecaster": "linear", "steps": 20, "origins": 13, "refit": "first"}
    found = rolling_origin(ended, 1, **asked)
    assert found.seasons == {"a": 12, "b": 12, "c": 12}
    assert set(rolling_origin(ended, 1, **ONCE).seasons.values()) == {1}


def test_skill_is_found_where_there_is_some_and_not_where_there_is_none():
    asked = {"forecaster": "linear", "steps": 1, "origins": 100, "refit": "first"}
    found = rolling_origin(panel(chain(2000)), 2, **asked)
    mae = found.summary.pivot_table("mae", "variable", "method")
    # of the chain, b and c are driven, a is noise; the mean absolute value of noise is 0.8
    assert mae.loc[["b", "c"], "forecaster"].to_numpy() == pytest.approx(0.8, abs=0.15)
    assert (mae["forecaster"] < mae["mean"] - 0.1)[["b", "c"]].all()
    assert mae.loc["a", "forecaster"] == pytest.approx(mae.loc["a", "mean"], abs=0.02)
    noise = np.random.default_rng(0).normal(size=(500, 3))
    nothing = rolling_origin(panel(noise), 2, **asked).summary.pivot_table(
        "mae", "variable", "method"
    )
    assert (nothing["forecaster"] > 0.97 * nothing["mean"]).all()


def test_every_series_has_its_own_origins_and_mean():
    runs = [chain(200, seed) + 10 * seed for seed in range(3)]
    found = rolling_origin(panel(*runs), 2, **ONCE)
    assert found.forecasts.groupby("series")["row"].unique().map(list).to_dict() == {
        "series 1": [188, 192, 196],
        "series 2": [388, 392, 396],
        "series 3": [588, 592, 596],
    }
    mean = forecasts(found, method="mean", row=392, variable="a")
    np.testing.assert_allclose(mean, runs[1][:192, 0].mean())
    assert not found.notes
    # no forecast looks into the series before it
    naive = forecasts(found, method="last value", row=588, variable="c", step=1)
    assert naive == pytest.approx(runs[2][187, 2])


def test_a_series_too_short_for_an_origin_has_none_there():
    found = rolling_origin(panel(chain(200), chain(9, 1)), 2, **LINEAR)
    counts = found.forecasts.groupby("series")["row"].nunique()
    assert counts.to_dict() == {"series 1": 3, "series 2": 1}
    assert found.notes == ("4 of 6 origins were used; the others lack a complete past.",)


def test_missing_values_at_the_end_are_not_scored():
    values = chain(300)
    values[298:, 2] = np.nan
    found = rolling_origin(panel(values), 2, **LINEAR)
    count = found.table.query("method == 'var'").pivot_table("count", "variable", "step")
    assert count.loc["a"].tolist() == [3, 3, 3, 3]
    assert count.loc["c"].tolist() == [3, 3, 2, 2]
    assert np.isfinite(found.summary[["mae", "rmse", "mase", "skill"]]).all(axis=None)


def test_what_follows_a_gap_in_time_is_not_taken_for_the_next_rows():
    whole = panel(chain(300))
    gap = replace(whole, starts=np.array([0, 298]))
    found = rolling_origin(gap, 2, **LINEAR)
    last = found.forecasts.query("row == 296 and method == 'mean' and variable == 'a'")
    assert last["actual"].notna().tolist() == [True, True, False, False]


def test_a_trained_forecaster_is_fitted_once_before_all_origins_and_reproducibly():
    small = fc.forecasters.MLP(hidden=8).trained_with(max_steps=100)
    asked = {"forecaster": small, "steps": 3, "origins": 2, "seed": 3}
    values, heard = bent_chain(1000), Heard()
    one = rolling_origin(panel(values), 1, progress=heard, **asked)
    assert heard.stages.count("forecasting from origin 2 of 2") == 1
    assert heard.stages[-1] == "forecasting from origin 2 of 2"  # no training after it
    values[997:] += 10
    other = rolling_origin(panel(values), 1, **asked)
    columns = ["row", "variable", "step", "method", "forecast"]
    pd.testing.assert_frame_equal(other.forecasts[columns], one.forecasts[columns])
    assert not np.allclose(forecasts(one, method="forecaster"), forecasts(one, method="var"))


def test_closed_forms_are_refitted_and_progress_is_reported():
    heard = Heard()
    rolling_origin(panel(), 2, progress=heard, **LINEAR)
    for place in range(3):
        assert (f"forecasting from origin {place + 1} of 3", place / 3) in heard.steps
    assert heard.stages.count("fitting the linear model") == 3
    heard = Heard()
    asked = LINEAR | {"refit": "first"}
    rolling_origin(panel(), 2, progress=heard, **asked)
    assert heard.stages.count("fitting the linear model") == 1


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"steps": 0}, "at least 1, found 0 and 3"),
        ({"origins": -1}, "at least 1, found 4 and -1"),
        ({"season": "weekly"}, "The season must be auto, None or a number"),
        ({"refit": "never"}, "Refit must be auto, first or every"),
        ({"forecaster": "magic"}, "Unknown forecaster 'magic'"),
        ({"steps": 500}, "No series has 2 complete rows"),
        ({"steps": "many"}, "at least 1, found many and 3"),
        ({"origins": 10**11}, "What came before an origin is not enough"),
        ({"origins": 98}, r"What came before an origin is not enough: .* fewer origins or steps"),
    ],
)
def test_mistakes_are_told(asked, message):
    with pytest.raises(fc.InputError, match=message):
        rolling_origin(panel(), 2, **(LINEAR | asked))


def test_a_forecast_that_runs_away_is_an_infinite_error_not_a_missing_one(monkeypatch):
    wild = np.full((2, 3, 3), 1e200)
    wild[1, :, 1] *= -1  # infinity minus infinity
    monkeypatch.setattr(Autoregression, "fitted", lambda *_: Autoregression(np.zeros(3), wild))
    found = rolling_origin(panel(), 2, **LINEAR).table.query("method == 'var' and step == 4")
    assert (found["mae"] == np.inf).all()
    assert (found["skill"] == -np.inf).all()


def test_a_run_is_evaluated_with_its_own_settings_and_data(tmp_path):
    table = pd.DataFrame(chain(400), columns=list("abc"))
    found = fc.discover(table, max_lag=3, forecaster="linear", forbid=["b <- a"])
    own = evaluate(found, steps=4, origins=3, refit="first")
    expected = rolling_origin(panel(), 3, forbid=["b <- a"], **ONCE)
    pd.testing.assert_frame_equal(
        own.forecasts.drop(columns="series"), expected.forecasts.drop(columns="series")
    )
    b = own.table.query("step == 1").set_index(["variable", "method"]).loc["b", "mae"]
    assert b["forecaster"] > b["var"]  # which may use a
    loaded = replace(found, panel=None)
    with pytest.raises(fc.InputError, match="give the data again"):
        evaluate(loaded)
    again = evaluate(loaded, data=table, steps=4, origins=3, refit="first")
    pd.testing.assert_frame_equal(again.forecasts, own.forecasts)
    with pytest.raises(fc.InputError, match="the variables of the run, a, b, c, in this order"):
        evaluate(loaded, data=table[["a", "b"]])


def test_regimes_of_the_future_are_not_used():
    two = rolling_origin(panel(), 2, regimes=2, **ONCE)
    plain = rolling_origin(panel(), 2, **ONCE)
    pd.testing.assert_frame_equal(two.forecasts, plain.forecasts)
    assert two.notes == ("Regimes were not used: at an origin the one to come is not known.",)


def test_with_a_graph_per_series_the_series_is_an_input():
    runs = [chain(400), -chain(400, 1)[:, [1, 2, 0]]]
    asked = {"forecaster": "linear", "steps": 1, "origins": 40, "refit": "first"}
    found = rolling_origin(panel(*runs), 2, per_series=True, **asked)
    mase = found.summary.pivot_table("mase", "variable", "method").mean()
    assert mase["forecaster"] < 0.95 * mase["var"]  # which is one for both

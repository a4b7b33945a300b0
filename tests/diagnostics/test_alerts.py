"""Every alert fires on a system made for it, and hardly ever on a clean one."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.stattools import adfuller

import forecause as fc
from forecause.data import Panel, Windows
from forecause.diagnostics import alerts, stationarity
from forecause.diagnostics.alerts import Alert
from forecause.forecast.forecaster import residuals_of
from forecause.regression.residuals import Residuals
from forecause.report.words import forecast_verdict
from forecause.simulation import simulate
from systems import chain

ABOUT_FORECASTS = {"no-skill", "unpredictable"}  # true of variables that nothing drives


def alerts_of(values, max_lag=2, names="abc", forecaster="linear", **settings) -> dict[str, Alert]:
    tables = values if isinstance(values, list) else [values]
    tables = [pd.DataFrame(one, columns=list(names)) for one in tables]
    found = fc.discover(tables, max_lag, forecaster=forecaster, **settings)
    return {alert.code: alert for alert in found.alerts}


def autoregressive(shocks: np.ndarray, coefficient: float, lag: int = 1) -> np.ndarray:
    values = shocks.copy()
    for t in range(lag, len(values)):
        values[t] += coefficient * values[t - lag]
    return values


def noise(rows=2000, variables=2, seed=0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, variables))


def test_clean_systems_raise_no_alarm():
    raised: Counter[str] = Counter()
    for seed in range(6):
        for mechanism, forecaster in (("linear", "linear"), ("monotonic", "additive")):
            system = simulate(nodes=6, max_lag=3, rows=1000, mechanism=mechanism, seed=seed)
            found = fc.discover(system.frame(), 3, forecaster=forecaster)
            raised.update({alert.code for alert in found.alerts} - ABOUT_FORECASTS)
    assert raised.total() <= 1  # of 12 runs


def test_a_variable_that_nothing_drives_is_named_as_such():
    alerts = alerts_of(np.hstack([chain(), noise(variables=1, seed=9)]), names="abcn")
    assert "n" in alerts["unpredictable"].variables
    assert not {"b", "c"} & set(alerts["unpredictable"].variables)
    assert "Hardly anything among the columns helps to forecast" in str(alerts["unpredictable"])


def test_edges_into_a_variable_that_the_mean_forecasts_as_well_are_doubted():
    alerts = alerts_of(noise(150, 3), max_lag=4, select="top-k", k=2)
    assert alerts["no-skill"].variables
    assert "the edges found there are weak at best" in alerts["no-skill"].sentence


def test_the_last_value_may_be_the_better_forecast():
    walk = np.cumsum(noise(120, 3, seed=4), axis=0)
    alert = alerts_of(walk, max_lag=8, select="top-k", k=1)["naive-wins"]
    assert alert.variables
    assert "try difference=True" in alert.sentence


def test_too_few_rows_for_the_inputs():
    assert "few-rows" not in alerts_of(chain(200), max_lag=4)
    straight = alerts_of(chain(60), max_lag=5)["few-rows"].sentence
    assert "There are 55 windows for 15 inputs (one number each)" in straight
    assert 'forecaster="linear"' not in straight
    assert 'forecaster="linear"' in alerts_of(chain(200), max_lag=4, forecaster="additive")[
        "few-rows"
    ].sentence  # fmt: skip


def test_a_cause_older_than_the_window():
    shocks = noise()
    shocks[7:, 1] += 0.6 * shocks[:-7, 0]
    alert = alerts_of(shocks, names="ab")["short-window"]
    assert alert.variables == ("a", "b")
    assert "b with a 7 rows earlier (+0.5" in alert.sentence
    assert "max_lag=7" in alert.sentence
    assert "short-window" not in alerts_of(shocks, max_lag=7, names="ab")


def test_a_variable_that_remembers_itself_beyond_the_window():
    season = autoregressive(noise(), 0.7, lag=12)
    alert = alerts_of(season, names="ab")["short-window"]
    assert "with itself 12 rows earlier" in alert.sentence


def test_a_shock_that_lingers_is_not_followed_by_a_short_window():
    shocks = noise(2001)
    moving_average = shocks[1:] + 0.9 * shocks[:-1]
    alert = alerts_of(moving_average, max_lag=1, names="ab")["poor-fit"]
    assert "with itself 1 row earlier (+0.1" in alert.sentence
    assert "poor-fit" not in alerts_of(moving_average, max_lag=8, names="ab")


def test_a_tiny_memory_is_no_alarm_however_many_rows():
    small = noise(40_000)
    small[5:, 1] += 0.05 * small[:-5, 0]
    assert "short-window" not in alerts_of(small, names="ab")


def test_variables_that_move_together_within_a_row():
    values = chain()
    values[:, 0] += 0.5 * noise(len(values), 1, seed=5)[:, 0]
    hidden = noise(len(values), 1, seed=6)
    alert = alerts_of(values + hidden * [0, 0.8, 0.8])["within-a-row"]
    assert alert.variables == ("b", "c")
    assert "b and c (+0." in alert.sentence


def test_a_random_walk_and_a_trend_wander():
    walk = np.hstack([np.cumsum(noise(2000, 1), axis=0), noise(2000, 1, seed=1)])
    assert alerts_of(walk, names="wn")["wandering"].variables == ("w",)
    trend = np.hstack([noise(2000, 1) + np.linspace(0, 40, 2000)[:, None], noise(2000, 1, seed=1)])
    assert alerts_of(trend, names="tn", trend="none")["wandering"].variables == ("t",)
    assert "wandering" not in alerts_of(autoregressive(noise(), 0.9), names="ab")


def test_a_level_that_shifts():
    values = noise()
    values[1000:, 1] += 1.5
    alert = alerts_of(values, names="ab", trend="none")["changing-level"]
    assert alert.variables == ("b",)
    assert "b (+1.22 sd)" in alert.sentence


def test_noise_that_grows():
    values = autoregressive(noise(), 0.3)
    values[1000:, 0] *= 2
    alert = alerts_of(values, names="ab")["changing-noise"]
    assert alert.variables == ("a",)
    assert "times" in alert.sentence


@pytest.mark.parametrize("turn", [1000, 500])
def test_effects_that_change(turn):
    values = noise()
    values[1:turn, 1] += 0.6 * values[: turn - 1, 0]
    values[turn:, 1] -= 0.6 * values[turn - 1 : -1, 0]
    assert alerts_of(values, names="ab")["changing-effects"].variables == ("b",)


def test_variables_that_are_nearly_the_same():
    values = chain()
    copy = values[:, :1] + 0.05 * noise(len(values), 1)
    alert = alerts_of(np.hstack([values, copy]), names="abcd")["near-duplicates"]
    assert alert.variables == ("a", "d")
    assert "a and d (0.99" in alert.sentence


def test_a_long_list_is_cut_short():
    base = noise(500, 1)
    alike = base + 0.05 * noise(500, 5, seed=3)
    sentence = alerts_of(alike, max_lag=1, names="abcde")["near-duplicates"].sentence
    assert "and 7 more;" in sentence


def test_residuals_are_never_paired_across_series_or_gaps(chain_windows):
    panel = Panel.from_arrays([chain(40), chain(40, 1)], ["a", "b", "c"])
    windows = Windows.of(panel, 2)
    linear = fc.discover(chain(300), 2, forecaster="linear").forecaster
    residuals = residuals_of(linear, windows)
    for lag in (0, 1, 3, 10):
        now, earlier = residuals._pairs(lag)
        assert len(now) == 2 * (38 - lag)
        assert (residuals.rows[now] - residuals.rows[earlier] == lag).all()
        assert (panel.series[residuals.rows[now]] == panel.series[residuals.rows[earlier]]).all()


def test_residual_correlation_is_the_textbook_one():
    values = noise(500, 2)
    residuals = Residuals(values, np.arange(500), np.zeros(500, dtype=np.int64))
    correlation, p_values = residuals.correlation(3)
    assert correlation[0, 1] == pytest.approx(np.corrcoef(values[3:, 0], values[:-3, 1])[0, 1])
    assert (p_values > 0.001).all()


@pytest.mark.filterwarnings("ignore:adfuller currently returns")
def test_persistence_is_the_augmented_dickey_fuller_regression():
    values = autoregressive(noise(400), 0.98)
    rho, wanders = stationarity.persistence(Windows.of(Panel.of(values), 3))
    for i in range(2):
        statistic, *_, regression = adfuller(values[:, i], maxlag=2, autolag=None, regresults=True)
        assert rho[i] - 1 == pytest.approx(regression.resols.params[0], rel=1e-4)
        assert wanders[i] == (statistic > stationarity.UNIT_ROOT_T)


def test_many_windows_are_looked_at_in_runs_spread_over_time():
    windows = Windows.of(Panel.of(noise(5000)), 1).spread(1000)
    assert len(windows) == 1000
    assert windows.rows[0] == 1
    assert windows.rows[-1] == 4999
    assert (np.diff(windows.rows) == 1).sum() == 980


def test_alerts_survive_saving(tmp_path):
    found = fc.discover(pd.DataFrame(chain(60), columns=list("abc")), 5, forecaster="linear")
    assert found.alerts
    assert fc.load(found.save(tmp_path / "run")).alerts == found.alerts


def test_the_command_shows_alerts_as_notes_after_the_tables(tmp_path, command):
    data = tmp_path / "data.csv"
    pd.DataFrame(chain(60), columns=list("abc")).to_csv(data, index=False)
    asked = ("--forecaster", "linear", "--out", tmp_path / "r", "-q")
    _, out, _ = command("discover", data, *asked)
    tables, note = out.split("note: There are 55 windows for 15 inputs")
    assert "held-out squared error" in tables
    assert "report.html" in note


def test_an_alert_from_a_sample_says_so(monkeypatch):
    values = noise(3000)
    values[:, 1] += values[:, 0]
    whole = alerts_of(values, names="ab")["within-a-row"]
    assert "Seen in" not in whole.sentence
    monkeypatch.setattr(alerts, "MOST_CHECKED_WINDOWS", 2000)
    sampled = alerts_of(values, names="ab")["within-a-row"]
    assert sampled.sentence.endswith("Seen in 2,000 of 2,998 windows, spread over all rows.")
    assert sampled.variables == whole.variables


def test_correlations_too_small_to_matter_are_not_tested():
    values = noise(800, 4)
    values[1:, 2] += values[:-1, 0]
    residuals = Residuals(values, np.arange(800), np.zeros(800, dtype=np.int64))
    every, p_values = residuals.correlation(1)
    some, tested = residuals.correlation(1, least=0.2)
    np.testing.assert_array_equal(some, every)
    large = np.abs(every) >= 0.2
    assert large.sum() == 1
    np.testing.assert_allclose(tested[large], p_values[large], rtol=1e-9)
    assert (tested[~large] == 1).all()


def test_the_verdict_and_the_alert_count_the_same_variables_as_no_better_than_their_mean():
    """Early rows vary more: shares of the variance of all rows would call every forecast good."""
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(600, 3)) * np.where(np.arange(600) < 400, 3.0, 1.0)[:, None]
    run = fc.discover(pd.DataFrame(noise, columns=list("abc")), 1, forecaster="linear")
    said = {
        name for alert in run.alerts if alert.code == "unpredictable" for name in alert.variables
    }
    said |= {name for alert in run.alerts if alert.code == "no-skill" for name in alert.variables}
    assert said == {"a", "b", "c"}
    assert (run.losses["linear"] < 0.9).all()
    assert "and the variable's mean for 0." in forecast_verdict(run.losses)


def test_a_code_for_missing_is_an_alert_that_names_the_option():
    values = chain(300)
    values[[20, 90], 1] = -9999
    run = fc.discover(pd.DataFrame(values, columns=list("abc")), 1, forecaster="linear")
    (alert,) = [alert for alert in run.alerts if alert.code == "odd-values"]
    assert alert.variables == ("b",)
    assert "say missing=[-9999]" in alert.sentence
    treated = fc.discover(
        pd.DataFrame(values, columns=list("abc")), 1, forecaster="linear", missing=-9999
    )
    assert "odd-values" not in {alert.code for alert in treated.alerts}

"""Every check finds what it was made for, and hardly ever anything in a sound system."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.stattools import adfuller

import forecause as fc
from forecause.config import Config
from forecause.config.thresholds import THRESHOLDS
from forecause.data import Panel, Windows
from forecause.diagnostics import examined, stability_checks
from forecause.diagnostics.diagnose import diagnose
from forecause.diagnostics.finding import Finding, Links, doubted_edges
from forecause.errors import ForecauseWarning
from forecause.forecast.forecaster import residuals_of
from forecause.forecast.selection import fit_best
from forecause.graph.lagged import LaggedGraph
from forecause.regression.residuals import Residuals
from forecause.report.words import forecast_verdict
from forecause.seasons.course import time_taken_out
from forecause.simulation import simulate
from systems import chain

ABOUT_FORECASTS = {"no-skill", "unpredictable"}  # true of variables that nothing drives


def findings_of(values, max_lag=2, names="abc", forecaster="linear", **options):
    """Findings by kind; a table, several, or a panel, with edges as (source, target, lag)."""
    edges = options.pop("edges", ())
    config = Config(max_lag=max_lag, forecaster=forecaster, **options)
    if not isinstance(values, Panel):
        values = Panel.of(pd.DataFrame(values, columns=list(names)))
    panel = time_taken_out(values, config)
    windows = Windows.of(panel, max_lag)
    fitted = fit_best(windows, config.forecasting)
    graph = LaggedGraph.from_edges(
        panel.coding.variables, max_lag, [(*edge, 1.0) for edge in edges]
    )
    return {one.kind: one for one in diagnose(windows, fitted, graph, config)}


def doubts_of(values, max_lag=3, **options) -> set[str]:
    names = [f"x{i}" for i in range(values.shape[1])]
    found = findings_of(values, max_lag, names, **options)
    return {kind for kind, finding in found.items() if finding.gravity == "doubt"}


def sound(seed=0, rows=800) -> np.ndarray:
    return simulate(nodes=4, max_lag=3, rows=rows, seed=seed).values


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
            found = findings_of(system.panel, 3, forecaster=forecaster)
            raised.update(found.keys() - ABOUT_FORECASTS)
    assert raised.total() <= 1  # of 12 runs


def test_a_variable_that_nothing_drives_is_named_as_such():
    found = findings_of(np.hstack([chain(), noise(variables=1, seed=9)]), names="abcn")
    assert "n" in found["unpredictable"].variables
    assert not {"b", "c"} & set(found["unpredictable"].variables)
    assert "Hardly anything among the columns helps to forecast" in str(found["unpredictable"])


def test_edges_into_a_variable_that_the_mean_forecasts_as_well_are_doubted():
    every = [(source, target, 1) for source in "abc" for target in "abc"]
    found = findings_of(noise(150, 3), max_lag=4, edges=every)
    assert found["no-skill"].variables
    assert "the edges found there are weak at best" in found["no-skill"].sentence


def test_the_last_value_may_be_the_better_forecast():
    walk = np.cumsum(noise(120, 3, seed=4), axis=0)
    finding = findings_of(walk, max_lag=8)["naive-wins"]
    assert finding.variables
    assert "try config=fc.Config(difference=True)" in finding.sentence


def test_too_few_rows_for_the_inputs():
    assert "few-rows" not in findings_of(chain(200), max_lag=4)
    straight = findings_of(chain(60), max_lag=5)["few-rows"].sentence
    assert "There are 55 windows for 15 inputs (one number each)" in straight
    assert 'forecaster="linear"' not in straight
    assert 'forecaster="linear"' in findings_of(chain(200), max_lag=4, forecaster="additive")[
        "few-rows"
    ].sentence  # fmt: skip


def test_a_cause_older_than_the_window():
    shocks = noise()
    shocks[7:, 1] += 0.6 * shocks[:-7, 0]
    finding = findings_of(shocks, names="ab")["short-window"]
    assert finding.variables == ("a", "b")
    assert "b with a 7 rows earlier (+0.5" in finding.sentence
    assert finding.gravity == "doubt"
    assert finding.about == (Links(target="b"),)
    assert finding.sentence.endswith("; try max_lag=7 or more or if that is a season, season=[7].")
    assert "short-window" not in findings_of(shocks, max_lag=7, names="ab")


def test_a_variable_that_remembers_itself_beyond_the_window():
    season = autoregressive(noise(), 0.7, lag=12)
    finding = findings_of(season, names="ab")["short-window"]
    assert "with itself 12 rows earlier" in finding.sentence


def test_a_shock_that_lingers_is_not_followed_by_a_short_window():
    shocks = noise(2001)
    moving_average = shocks[1:] + 0.9 * shocks[:-1]
    finding = findings_of(moving_average, max_lag=1, names="ab")["poor-fit"]
    assert "with itself 1 row earlier (+0.1" in finding.sentence
    assert "poor-fit" not in findings_of(moving_average, max_lag=8, names="ab")


def test_a_tiny_memory_is_no_alarm_however_many_rows():
    small = noise(40_000)
    small[5:, 1] += 0.05 * small[:-5, 0]
    assert "short-window" not in findings_of(small, names="ab")


def test_variables_that_move_together_within_a_row():
    values = chain()
    values[:, 0] += 0.5 * noise(len(values), 1, seed=5)[:, 0]
    hidden = noise(len(values), 1, seed=6)
    finding = findings_of(values + hidden * [0, 0.8, 0.8])["within-a-row"]
    assert finding.variables == ("b", "c")
    assert "b and c (+0." in finding.sentence


def test_a_random_walk_and_a_trend_wander():
    walk = np.hstack([np.cumsum(noise(2000, 1), axis=0), noise(2000, 1, seed=1)])
    assert findings_of(walk, names="wn")["wandering"].variables == ("w",)
    trend = np.hstack([noise(2000, 1) + np.linspace(0, 40, 2000)[:, None], noise(2000, 1, seed=1)])
    assert findings_of(trend, names="tn", trend="none")["wandering"].variables == ("t",)
    assert "wandering" not in findings_of(autoregressive(noise(), 0.9), names="ab")


def test_a_level_that_shifts():
    values = noise()
    values[1000:, 1] += 1.5
    finding = findings_of(values, names="ab", trend="none")["changing-level"]
    assert finding.variables == ("b",)
    assert "b (+1.22 sd)" in finding.sentence


def test_noise_that_grows():
    values = autoregressive(noise(), 0.3)
    values[1000:, 0] *= 2
    finding = findings_of(values, names="ab")["changing-noise"]
    assert finding.variables == ("a",)
    assert "times" in finding.sentence


@pytest.mark.parametrize("turn", [1000, 500])
def test_effects_that_change(turn):
    values = noise()
    values[1:turn, 1] += 0.6 * values[: turn - 1, 0]
    values[turn:, 1] -= 0.6 * values[turn - 1 : -1, 0]
    finding = findings_of(values, names="ab")["changing-effects"]
    assert finding.variables == ("b",)
    assert finding.about == (Links(target="b"),)
    assert finding.gravity == "doubt"


def test_variables_that_are_nearly_the_same():
    values = chain()
    copy = values[:, :1] + 0.05 * noise(len(values), 1)
    finding = findings_of(np.hstack([values, copy]), names="abcd")["near-duplicates"]
    assert finding.variables == ("a", "d")
    assert "a and d (0.99" in finding.sentence
    assert finding.about == (Links(source="a"), Links(source="d"))
    assert finding.evidence["a and d"] > 0.98


def test_a_long_list_is_cut_short():
    base = noise(500, 1)
    alike = base + 0.05 * noise(500, 5, seed=3)
    sentence = findings_of(alike, max_lag=1, names="abcde")["near-duplicates"].sentence
    assert "and 7 more;" in sentence


def test_residuals_are_never_paired_across_series_or_gaps():
    panel = Panel.from_arrays([chain(40), chain(40, 1)], ["a", "b", "c"])
    windows = Windows.of(panel, 2)
    linear = fc.forecasters.Linear().build(windows.shape)
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
    rho, wanders = stability_checks.persistence(Windows.of(Panel.of(values), 3))
    for i in range(2):
        statistic, *_, regression = adfuller(values[:, i], maxlag=2, autolag=None, regresults=True)
        assert rho[i] - 1 == pytest.approx(regression.resols.params[0], rel=1e-4)
        assert wanders[i] == (statistic > THRESHOLDS.diagnosis.unit_root_t)


def test_many_windows_are_looked_at_in_runs_spread_over_time():
    windows = Windows.of(Panel.of(noise(5000)), 1).thin(1000)
    assert len(windows) == 1000
    assert windows.rows[0] == 1
    assert windows.rows[-1] == 4999
    assert (np.diff(windows.rows) == 1).sum() == 980


def test_findings_survive_saving(tmp_path):
    found = fc.discover(pd.DataFrame(chain(60), columns=list("abc")), 5, forecaster="linear")
    assert found.alerts
    assert fc.load(found.save(tmp_path / "run")).findings == found.findings


def test_the_command_shows_all_findings_and_tables_if_asked(tmp_path, command):
    data = tmp_path / "data.csv"
    pd.DataFrame(chain(60), columns=list("abc")).to_csv(data, index=False)
    asked = ("--forecaster", "linear", "--out", tmp_path / "r", "-q")
    _, out, _ = command("discover", data, *asked, "-v")
    assert "note: There are 55 windows for 15 inputs" in out
    assert "held-out squared error" in out
    assert "report.html" in out.splitlines()[-1]


def test_a_finding_from_a_sample_says_so(monkeypatch):
    values = noise(3000)
    values[:, 1] += values[:, 0]
    whole = findings_of(values, names="ab")["within-a-row"]
    assert "seen in" not in whole.sentence
    monkeypatch.setattr(examined, "MOST_WINDOWS", 2000)
    sampled = findings_of(values, names="ab")["within-a-row"]
    assert "(seen in 2,000 of 2,998 windows, spread over all rows)" in sampled.sentence
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
    kinds = ("unpredictable", "no-skill")
    assert {name for one in run.findings if one.kind in kinds for name in one.variables} == {*"abc"}
    assert (run.losses["linear"] < 0.9).all()
    assert "and the variable's mean for 0." in forecast_verdict(run.losses)


def test_a_code_for_missing_is_an_alert_that_names_the_option():
    values = chain(300)
    values[[20, 90], 1] = -9999
    run = fc.discover(pd.DataFrame(values, columns=list("abc")), 1, forecaster="linear")
    (finding,) = [one for one in run.findings if one.kind == "odd-values"]
    assert finding.variables == ("b",)
    assert "say fc.read(data, missing=[-9999])." in finding.sentence
    treated = fc.discover(
        fc.read(pd.DataFrame(values, columns=list("abc")), missing=-9999), 1, forecaster="linear"
    )
    assert "odd-values" not in {finding.kind for finding in treated.findings}


@pytest.mark.parametrize("seed", range(6))
def test_a_sound_system_raises_no_doubt(seed):
    assert doubts_of(sound(seed)) == set()


def test_very_few_rows_are_a_doubt():
    assert "few-rows" in doubts_of(sound(rows=36))


def test_walks_that_happen_to_agree_are_no_copies():
    rng = np.random.default_rng(0)
    drift = np.arange(800)[:, None]
    walks = rng.normal(size=(800, 2)).cumsum(0) + drift
    assert np.corrcoef(walks.T)[0, 1] > 0.9
    assert "near-duplicates" not in doubts_of(walks, trend="none")


def test_two_noisy_sensors_of_one_quantity_are_nearly_the_same():
    rng = np.random.default_rng(0)
    quantity = autoregressive(rng.normal(size=(800, 1)), 0.7)
    assert "near-duplicates" in doubts_of(quantity + 0.35 * rng.normal(size=(800, 2)))


def test_columns_that_add_up_determine_one_another():
    parts = np.exp(0.3 * noise(600, 4))
    found = findings_of(100 * parts / parts.sum(1, keepdims=True), names="abcd")
    assert found["dependent-columns"].variables == ("a", "b", "c", "d")
    assert found["dependent-columns"].gravity == "doubt"
    assert "dependent-columns" not in findings_of(parts, names="abcd")


def test_a_logger_that_fails_for_all_columns_at_once():
    values = noise(600, 3) + 4
    assert "common-outages" not in findings_of(values)
    values[[50, 51, 300, 410]] = 0.0
    assert findings_of(values)["common-outages"].evidence["rows"] == 4
    alone = noise(600, 3) + 4
    alone[np.arange(0, 600, 9), 0] = alone[np.arange(4, 600, 9), 1] = 0.0
    assert "common-outages" not in findings_of(alone)


def events(rows, delays, seed=0):
    """Noise of rows (row, variable), with rare events that reach each variable after its delay."""
    rng = np.random.default_rng(seed)
    event = np.where(rng.uniform(size=rows + 5) < 0.02, 6.0, 0.0)
    reached = np.stack([event[5 - delay :][:rows] for delay in delays], axis=1)
    return rng.normal(size=(rows, len(delays))) + reached


def test_events_that_reach_several_columns_one_after_the_other_are_suspected():
    found = findings_of(events(1000, (0, 1, 2)))["common-shocks"]
    assert found.gravity == "doubt"
    assert found.variables == ("a", "b", "c")
    assert Links("a", "b") in found.about
    assert "common-shocks" not in findings_of(events(1000, (0, 1)), names="ab")
    own = noise(1000, 3) * np.exp(autoregressive(0.3 * noise(1000, 3, seed=1), 0.95))
    assert "common-shocks" not in findings_of(own)  # sizes that wander, each by itself
    assert "common-shocks" not in findings_of(chain(1000))


def test_links_that_calm_rows_do_not_show_are_doubted():
    drawn = [("a", "b", 1), ("b", "c", 1)]
    found = findings_of(events(1000, (0, 1, 2), seed=1), edges=drawn)["only-in-events"]
    assert found.about == (Links("a", "b", 1), Links("b", "c", 1))
    linked = noise(1000, 3)
    linked[1:, 1] += 0.4 * linked[:-1, 0]
    linked[1:, 2] += 0.4 * linked[:-1, 1]
    assert "only-in-events" not in findings_of(linked, edges=drawn)


def test_a_driver_that_is_not_a_column_is_suspected_and_a_column_that_drives_is_not():
    hidden = autoregressive(noise(1500, 1, seed=3), 0.95)
    moved = findings_of(0.4 * hidden + noise(1500, 5, seed=4), names="abcde")
    doubt = moved["common-driver"]
    assert doubt.gravity == "doubt"
    assert len(doubt.variables) >= 3
    assert Links("a", "b") in doubt.about
    assert not any(links.source == links.target for links in doubt.about)
    driven = noise(1500, 5, seed=4)
    driven[1:, 1:] += 0.5 * driven[:-1, :1]
    assert "common-driver" not in findings_of(driven, names="abcde")


def test_a_hidden_cause_of_two_variables_is_a_doubt_about_their_links_alone():
    values = noise(800, 4)
    values[:, :2] += noise(800, 1, seed=5)
    about = findings_of(values, names="abcd")["within-a-row"].about
    assert set(about) == {Links("a", "b"), Links("b", "a")}


def test_many_pairs_that_move_together_a_little_are_a_doubt_as_a_whole():
    common = noise(600, 1, seed=5)
    found = findings_of(noise(600, 8) + 0.26 * common, names="abcdefgh")["within-a-row"]
    assert found.gravity == "doubt"
    assert "in all pairs taken as one (correlation about 0.0" in found.sentence
    assert len(found.variables) >= 4
    silent = [findings_of(noise(300, 8, seed=s), names="abcdefgh") for s in range(20)]
    assert sum("within-a-row" in one for one in silent) <= 2


def test_a_driver_with_three_states_takes_two_averages():
    rng = np.random.default_rng(1)
    state = np.repeat(rng.integers(0, 3, 60), 25)
    moved = rng.normal(size=(3, 8))[state] + noise(1500, 8, seed=2)
    assert "common-driver" in findings_of(moved, names="abcdefgh")


def test_a_recorded_cause_of_all_others_is_no_hidden_driver():
    for seed in range(6):
        values = noise(400, 6, seed=seed)
        values[:, :1] = autoregressive(values[:, :1], 0.8)
        values[1:, 1:] += 0.5 * values[:-1, :1]
        assert "common-driver" not in findings_of(values, names="abcdef")


def test_a_shock_that_reaches_two_variables_one_after_the_other_is_a_doubt_about_the_two():
    shocks, shared = noise(1500, 4), noise(1500, 1, seed=8)[:, 0]
    shocks[:, 0] += shared
    shocks[1:, 1] += shared[:-1]
    drawn = [("a", "b", 1), ("a", "b", 2), ("c", "d", 1)]
    values = shocks.copy()
    for row in range(1, len(values)):
        values[row] += 0.5 * values[row - 1]
        values[row, 3] += 0.5 * values[row - 1, 2]
    found = findings_of(values, names="abcd", edges=drawn)["shocks-ahead"]
    assert found.about == (Links("a", "b"),)
    assert found.scope == "edge"


def test_what_a_penalty_gives_away_is_no_poor_fit():
    tables = [simulate(nodes=7, max_lag=5, rows=500, seed=seed).panel for seed in range(207, 210)]
    assert not any("poor-fit" in findings_of(table, 5) for table in tables)


def test_walks_of_few_rows_wander_and_differences_are_proposed():
    tables = [np.cumsum(noise(180, 6, seed=seed), axis=0) for seed in range(6)]
    found = [findings_of(table, names="abcdef").get("wandering") for table in tables]
    assert sum(one is not None and one.gravity == "doubt" for one in found) >= 5
    assert "fc.Config(difference=True)" in next(one for one in found if one).sentence


def test_a_cycle_that_drifts_is_a_doubt_about_all_if_several_share_it_and_else_about_one():
    rng = np.random.default_rng(2)
    phase = 2 * np.pi * np.cumsum(1 / (20 + 8 * np.linspace(0, 1, 1000)))
    shared = rng.normal(size=(1000, 3)) + 3 * np.sin(phase[:, None] + np.arange(3))
    assert findings_of(shared, 3)["cycle"].scope == "run"
    alone = rng.normal(size=(1000, 3))
    alone[:, 1] += 3 * np.sin(phase)
    finding = findings_of(alone, 3)["cycle"]
    assert finding.gravity == "doubt"
    assert finding.about == (Links(target="b"),)


def test_mechanisms_that_change_are_not_told_of_known_domains():
    halves = [simulate(nodes=3, max_lag=2, rows=500, seed=s).values for s in (1, 2)]
    panel = Panel.of(np.vstack(halves))
    assert "changing-effects" in findings_of(panel)
    known = panel.with_domain(np.repeat([0, 1], 500), ("early", "late"))
    assert "changing-effects" not in findings_of(known)


@pytest.mark.parametrize("curved", [True, False])
def test_a_season_that_passes_through_a_curve_is_told_and_one_that_is_added_on_is_not(curved):
    rng, rows = np.random.default_rng(1), 900
    heat, demand = autoregressive(rng.normal(size=rows), 0.7), np.zeros(rows)
    heat += 3 * np.sin(2 * np.pi * np.arange(rows) / 24)
    demand[1:] = heat[:-1] ** 2 / 3 if curved else 2 * heat[:-1]
    demand += rng.normal(size=rows)
    found = findings_of(np.column_stack([heat, demand]), names="hd")
    assert ("changing-effects" in found) == curved
    assert not curved or "with a cycle of 24 rows" in found["changing-effects"].sentence


def test_advice_that_was_followed_is_not_given_again():
    values = noise()
    values[1:1000, 1] += 0.6 * values[:999, 0]
    values[1000:, 1] -= 0.6 * values[999:-1, 0]
    assert 'regimes="auto"' in findings_of(values, names="ab")["changing-effects"].sentence
    again = findings_of(values, names="ab", regimes="auto")["changing-effects"].sentence
    assert "regimes" not in again
    assert again.endswith("; name them with domain=... or explain some rows alone with "
                          "fc.read(data, rows=...).")  # fmt: skip


def test_the_gravest_come_first():
    values = noise(200, 1)
    alike = np.hstack([values, values + 0.01 * noise(200, 1, seed=1)])
    grave = [finding.grave for finding in findings_of(alike, names="ab").values()]
    assert grave[0]
    assert grave == sorted(grave, reverse=True)


def graph_of(*edges):
    return LaggedGraph.from_edges(["a", "b", "c"], 2, [(*edge, 1.0) for edge in edges])


def test_a_doubt_is_about_its_links_and_no_others():
    graph = graph_of(("a", "b", 1), ("b", "b", 2), ("b", "c", 1), ("c", "c", 1))
    doubted = [
        ((), [True, True, True, True]),
        ((Links(target="b"),), [True, True, False, False]),
        ((Links(source="b"),), [False, True, True, False]),
        ((Links("b", "c", 1), Links("c", "c", 2)), [False, False, True, False]),
    ]
    for about, expected in doubted:
        found = doubted_edges([Finding("x", "x", "doubt", about)], graph)
        assert found.tolist() == expected
        assert not doubted_edges([Finding("x", "x", "alert", about)], graph).any()


def test_edges_that_tests_marked_are_a_doubt_about_themselves():
    graph = graph_of(("a", "b", 1), ("b", "c", 1))
    graph.edges["doubtful"] = [False, True]
    assert doubted_edges([], graph).tolist() == [False, True]


def test_an_alert_of_an_earlier_version_is_read_as_a_finding_about_the_run():
    saved = {"code": "cycle", "sentence": "A cycle is left.", "variables": ["a"], "grave": True}
    finding = Finding.from_json(saved)
    assert finding == Finding("cycle", "A cycle is left", "doubt", variables=("a",))
    assert finding.sentence == "A cycle is left."
    assert finding.scope == "run"


def test_a_doubted_run_warns_keeps_its_doubts_and_has_tentative_edges_where_they_apply(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(sound(), columns=list("abcd"))
    table["e"] = table["a"] + 0.3 * table["a"].std() * rng.normal(size=len(table))
    with pytest.warns(ForecauseWarning, match="nearly the same"):
        run = fc.discover(table, max_lag=3, forecaster="linear")
    edges, copies = run.graph.edges, run.graph.edges["source"].isin(["a", "e"])
    assert copies.any()
    assert set(edges["grade"][copies]) == {"tentative"}
    assert "firm" in set(edges["grade"][~copies])
    again = fc.load(run.save(tmp_path / "run"))
    assert again.doubts == run.doubts
    assert list(again.graph.edges["grade"]) == list(edges["grade"])
    assert "no error rate can be promised for" in run.report(tmp_path / "page.html").read_text()


def test_a_sound_run_is_silent_and_its_clear_edges_are_firm():
    table = pd.DataFrame(sound(), columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = fc.discover(table, max_lag=3, forecaster="linear")
    assert run.doubts == ()
    assert "firm" in set(run.graph.edges["grade"])

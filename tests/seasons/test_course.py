"""What time alone explains is found, taken out and put back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import forecause as fc
from forecause.config import Config
from forecause.data.panel import Panel
from forecause.errors import InputError
from forecause.seasons.course import TimeCourse, positions_of, time_taken_out
from forecause.seasons.cycles import calendar_periods
from forecause.seasons.piece_tests import step_f_values, wave_f_values
from forecause.seasons.search import find_time_terms
from forecause.seasons.terms import Cycle, TimeTerms

Array = npt.NDArray[np.float64]


def autoregression(rows: int, variables: int, seed: int, memory: float = 0.5) -> Array:
    """Independent autoregressions."""
    rng = np.random.default_rng(seed)
    values = np.zeros((rows, variables))
    for row in range(1, rows):
        values[row] = memory * values[row - 1] + rng.normal(size=variables)
    return values


def daily(rows: int = 800, seed: int = 0) -> Array:
    """Autoregressions with a cycle of 24 rows."""
    phase = np.arange(3)
    wave = 2 * np.sin(2 * np.pi * np.arange(rows)[:, None] / 24 + phase)
    return np.asarray(autoregression(rows, 3, seed) + wave)


def table(values: Array) -> pd.DataFrame:
    names = [f"v{place}" for place in range(values.shape[1])]
    return pd.DataFrame(values, columns=names)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mechanism", ["linear", "monotonic", "mlp-add"])
def test_a_system_without_seasons_is_left_as_it_is(mechanism: str, seed: int) -> None:
    system = fc.simulate(nodes=6, max_lag=3, rows=800, mechanism=mechanism, seed=seed)
    panel = Panel.of(system.frame())
    assert time_taken_out(panel, Config.of()) is panel


def test_the_period_is_found_from_the_spectrum_alone() -> None:
    terms = find_time_terms(daily())
    assert [cycle.period for cycle in terms.cycles] == [24.0]


def test_a_random_walk_has_no_trend_and_no_cycle() -> None:
    rng = np.random.default_rng(3)
    assert not find_time_terms(rng.normal(size=(600, 5)).cumsum(0))


@pytest.mark.parametrize("stamped", [True, False])
def test_the_steps_of_weekdays_are_taken_out_of_hours(stamped: bool) -> None:
    rows, rng = 1500, np.random.default_rng(4)
    steps = 3 * np.repeat(rng.normal(size=(7, 3)), 24, axis=0)[np.arange(rows) % 168]
    values = autoregression(rows, 3, 5)
    stamps = np.datetime64("2024-01-01T00", "h") + np.arange(rows)  # a Monday
    terms = find_time_terms(values + steps, stamps if stamped else None)
    assert any(cycle.parts == 7 for cycle in terms.cycles) == stamped
    assert stamped or max(cycle.harmonics for cycle in terms.cycles) > 12
    design = np.column_stack([np.ones(rows), terms.matrix()])
    left = steps - design @ np.linalg.lstsq(design, steps, rcond=None)[0]
    assert left.var() < (0.01 if stamped else 0.05) * steps.var()


def test_weekdays_begin_at_midnight_wherever_the_table_begins() -> None:
    rows, start = 1200, np.datetime64("2024-01-03T07", "h")  # a Wednesday
    stamps = start + np.arange(rows)
    day = (np.arange(rows) + 2 * 24 + 7) // 24 % 7  # since Monday
    steps = 4 * np.random.default_rng(1).normal(size=(7, 3))[day]
    frame = table(autoregression(rows, 3, 8) + steps).assign(time=stamps)
    course = time_taken_out(Panel.of(frame), Config.of()).course
    assert course is not None
    (week,) = [cycle for cycle in course.terms[0].cycles if cycle.parts]
    assert week.shift == pytest.approx(2 * 24 + 7)
    explained = course.explained(0, np.arange(rows))
    assert (explained - (steps - steps.mean(0))).var() < 0.05 * steps.var()
    assert TimeCourse.from_json(course.to_json()).terms == course.terms


def weekday_levels(rows: int, seed: int, columns: int = 4) -> Array:
    """Another level on each day of the week, of hourly rows that begin on a Monday."""
    levels = 3 * np.random.default_rng(seed).normal(size=(7, columns))
    return np.asarray(levels[np.arange(rows) // 24 % 7])


def hours(rows: int) -> npt.NDArray[np.datetime64]:
    return np.asarray(np.datetime64("2024-01-01T00", "h") + np.arange(rows))  # a Monday


@pytest.mark.parametrize(("rows", "stamped"), [(300, True), (1000, True), (1000, False)])
def test_midnight_is_found_without_time_stamps_where_there_is_a_day(
    rows: int, stamped: bool
) -> None:
    day = 2 * np.sin(2 * np.pi * np.arange(rows)[:, None] / 24 + np.arange(4))
    values = autoregression(rows, 4, 5) + day + weekday_levels(rows, 6)
    terms = find_time_terms(values, hours(rows) if stamped else None)
    (week,) = [cycle for cycle in terms.cycles if cycle.parts]
    assert week.period == 168
    assert week.shift % 24 == 0


def test_few_rounds_of_a_week_are_a_cycle_and_random_walks_have_none() -> None:
    week = 2 * np.sin(2 * np.pi * np.arange(300)[:, None] / 168 + np.arange(5))
    terms = find_time_terms(autoregression(300, 5, 2) + week, hours(300))
    assert [(cycle.period, cycle.name) for cycle in terms.cycles] == [(168.0, "week")]
    assert not terms.knots
    for seed in range(10):
        walks = np.random.default_rng(seed).normal(size=(300, 5)).cumsum(0)
        assert not find_time_terms(walks, hours(300))


def test_days_unlike_their_weekday_are_found_and_no_others() -> None:
    rows, free = 1200, [9, 22, 33]  # a Wednesday, a Tuesday, a Saturday
    normal, day = weekday_levels(rows, 6), np.arange(rows) // 24
    sunday = np.where(np.isin(day, free)[:, None], weekday_levels(rows, 6)[6 * 24], normal)
    values = autoregression(rows, 4, 5)
    assert find_time_terms(values + normal, hours(rows)).odd_days == ()
    terms = find_time_terms(values + sunday, hours(rows))
    assert terms.odd_days == tuple((24 * place, 24 * place + 24) for place in free)
    course = TimeCourse((terms,), (), (rows,))
    assert TimeCourse.from_json(course.to_json()).terms == (terms,)
    assert terms.words[-1] == "3 days that are unlike their weekday, such as holidays"


@pytest.mark.parametrize("time", ["dates", "numbers"])
def test_weekdays_fit_after_a_long_gap_in_time(time: str) -> None:
    rows = np.r_[:100, 3000:4000]  # the search looks at the second stretch alone
    day = 2 * np.sin(2 * np.pi * np.arange(4000)[:, None] / 24 + np.arange(4))
    season = (day + weekday_levels(4000, 6))[rows]
    stamps = hours(4000)[rows] if time == "dates" else rows
    frame = table(autoregression(len(rows), 4, 5) + season).assign(time=stamps)
    course = time_taken_out(Panel.of(frame, time="time"), Config.of()).course
    assert course is not None
    explained = course.of_rows(Panel.of(frame, time="time"))
    assert (explained - (season - season.mean(0))).var() < 0.05 * season.var()


def test_a_week_that_is_asked_for_has_weekdays_too() -> None:
    values = autoregression(1000, 4, 5) + weekday_levels(1000, 6)
    (week,) = find_time_terms(values, hours(1000), season=(168.0,), trend="none").cycles
    assert (week.name, week.parts) == ("week", 7)


@pytest.mark.parametrize("seed", range(4))
def test_twelve_months_that_all_differ_are_one_cycle(seed: int) -> None:
    months = 2 * np.random.default_rng(seed).normal(size=(12, 4))[np.arange(600) % 12]
    terms = find_time_terms(autoregression(600, 4, seed + 10) + months)
    assert [(cycle.period, cycle.harmonics) for cycle in terms.cycles] == [(12.0, 6)]


def test_a_week_in_ten_days_of_hours_is_found_where_all_variables_follow_it() -> None:
    week = 2 * np.sin(2 * np.pi * np.arange(300)[:, None] / 168 + np.arange(5))
    values = autoregression(300, 5, 2)
    assert not find_time_terms(values)
    terms = find_time_terms(values + week)
    assert len(terms.knots) == 9
    ahead = terms.matrix(np.arange(299, 350))
    np.testing.assert_allclose(ahead, ahead[:1].repeat(51, axis=0))  # it stays where it ended
    for seed in range(10):
        walks = np.random.default_rng(seed).normal(size=(300, 5)).cumsum(0)
        assert not find_time_terms(walks)


def test_filled_cells_follow_the_season_and_do_not_blur_it() -> None:
    values = daily(1200)
    holes = np.zeros(values.shape, dtype=bool)
    holes[300:330, 0] = holes[700:730, 1] = holes[900:930, 2] = True
    whole = time_taken_out(Panel.of(values), Config.of())
    holed = time_taken_out(Panel.of(np.where(holes, np.nan, values)), Config.of())
    assert holed.course is not None
    assert whole.course is not None
    explained = [one.course.explained(0, np.arange(1200)) for one in (whole, holed)]
    assert np.abs(explained[0] - explained[1]).max() < 0.3
    deep = np.concatenate([holed.values[315:330, 0], holed.values[715:730, 1]])
    assert np.abs(deep).max() < 0.3  # long after the last value nothing but the season is expected
    np.testing.assert_allclose(holed.values[~holes], (values - explained[1])[~holes], atol=1e-5)


def test_a_step_of_the_level_is_found_where_it_is() -> None:
    values = autoregression(600, 3, 1)
    values[250:] += 6
    terms = find_time_terms(values)
    assert len(terms.shifts) == 1
    assert abs(terms.shifts[0] - 250) <= 2


def test_known_domains_keep_their_levels() -> None:
    values = autoregression(600, 3, 1)
    values[250:] += 6
    assert not find_time_terms(values, shifts=False).shifts


def test_what_is_left_is_what_was_there_without_the_season() -> None:
    calm, seasonal = autoregression(800, 3, 0), daily()
    left = time_taken_out(Panel.of(table(seasonal)), Config.of()).values
    error = left - left.mean(0) - (calm - calm.mean(0))
    assert error.std() < 0.2 * calm.std()
    np.testing.assert_allclose(left.mean(0), seasonal.mean(0), atol=1e-9)


def test_taking_out_is_least_squares_on_waves() -> None:
    values = daily()
    asked = Config.of(season=(24,), trend="none")
    panel = time_taken_out(Panel.of(table(values)), asked)
    assert panel.course is not None
    orders = range(1, panel.course.terms[0].cycles[0].harmonics + 1)
    angles = 2 * np.pi * np.arange(len(values))[:, None] * np.array(orders) / 24
    design = np.hstack([np.ones((len(values), 1)), np.cos(angles), np.sin(angles)])
    errors = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    np.testing.assert_allclose(panel.values - panel.values.mean(0), errors, atol=1e-8)


def test_missing_cells_stay_missing_and_do_not_matter_to_the_fit() -> None:
    values = daily()
    holes = values.copy()
    holes[::37, 1] = np.nan
    left = time_taken_out(Panel.of(table(holes), gaps="drop"), Config.of()).values
    whole = time_taken_out(Panel.of(table(values)), Config.of()).values
    assert np.isnan(left[::37, 1]).all()
    np.testing.assert_allclose(left[:, 0], whole[:, 0], atol=1e-8)
    assert np.nanmax(np.abs(left[:, 1] - whole[:, 1])) < 0.3


def test_a_column_that_is_time_itself_stays() -> None:
    values = daily()
    values[:, 2] = np.sin(2 * np.pi * np.arange(len(values)) / 24)
    left = time_taken_out(Panel.of(table(values)), Config.of(season="24", trend="none"))
    np.testing.assert_array_equal(left.values[:, 2], values[:, 2])


def test_gaps_in_time_do_not_shift_the_cycle() -> None:
    values = daily(1000)
    frame = table(values)
    frame.insert(0, "time", pd.date_range("2024-01-01", periods=1000, freq="h"))
    cut = pd.concat([frame.iloc[:400], frame.iloc[413:]])
    panel = Panel.of(cut, time="time")
    assert positions_of(panel, 0, panel.rows)[400] == 413
    left = time_taken_out(panel, Config.of()).values
    whole = time_taken_out(Panel.of(frame, time="time"), Config.of()).values
    kept = np.r_[whole[:400], whole[413:]]
    assert np.abs(left - left.mean(0) - kept + kept.mean(0)).max() < 0.3


def test_forecasts_carry_the_season_and_are_saved(tmp_path: object) -> None:
    run = fc.discover(table(daily()), max_lag=2, forecaster="linear")
    ahead = run.forecast(48)
    wave = 2 * np.sin(2 * np.pi * np.arange(800, 848)[:, None] / 24 + np.arange(3))
    apart = (ahead.to_numpy() - ahead.to_numpy().mean(0))[6:] - wave[6:]
    assert np.abs(apart).max() < 0.8
    run.save(f"{tmp_path}/run")
    again = fc.load(f"{tmp_path}/run")
    np.testing.assert_allclose(again.forecast(48), ahead)
    assert any("24 rows" in note for note in again.data.notes)


def test_the_page_shows_the_data_what_time_explains_and_what_is_left() -> None:
    values = daily(300)
    run = fc.discover(table(values), max_lag=2, forecaster="linear")
    run._collect_evidence()
    shown = run.evidence["course"]
    np.testing.assert_allclose(np.array(shown["values"]).T, values, atol=2e-3)
    sums = np.array(shown["explained"]) + np.array(shown["left"])
    np.testing.assert_allclose(sums.T, values, atol=4e-3)
    close = np.array(run.evidence["stretch"]["values"])
    np.testing.assert_allclose(close[:, -1], values[-1], atol=2e-3)


def test_a_held_variable_is_held_in_the_units_of_the_data() -> None:
    for difference in (False, True):
        run = fc.discover(
            table(daily()), max_lag=2, forecaster="linear", config=fc.Config(difference=difference)
        )
        held = run.simulate_do({"v0": 7.5}, steps=5)
        np.testing.assert_allclose(held["v0"], 7.5, atol=1e-4)


def test_differences_are_added_up_again() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0.5, 1, size=(600, 2)).cumsum(0)
    frame = table(values)
    run = fc.discover(
        frame, max_lag=1, forecaster="linear", config=fc.Config(difference=True, trend="none")
    )
    steps = np.diff(values, axis=0)
    ahead = run.forecast(40).to_numpy()
    assert np.abs(ahead[-1] - values[-1] - 40 * steps.mean(0)).max() < 3
    assert "Differences" in " ".join(run.data.notes)


def test_forecasts_of_a_seasonal_table_are_scored_in_its_units() -> None:
    run = fc.discover(table(daily()), max_lag=2, forecaster="linear")
    found = run.evaluate(steps=24, origins=2).summary.pivot_table("mae", "method")["mae"]
    assert found["forecaster"] < 1.3
    assert found["forecaster"] < found["mean"]


def test_each_series_has_a_phase_of_its_own() -> None:
    values = daily(900)
    parts = [table(values[:500]), table(values[507:])]
    run = fc.discover(parts, max_lag=2, forecaster="linear")
    assert run.data.course is not None
    assert [terms.cycles[0].period for terms in run.data.course.terms] == [24.0, 24.0]
    cross = run.graph.edges.query("source != target")
    assert len(cross) <= 1


def test_the_calendar_suggests_periods_of_the_sampling_step() -> None:
    hours = pd.date_range("2024-01-01", periods=2000, freq="h").to_numpy()
    assert calendar_periods(hours, 2000) == {"day": 24.0, "week": 168.0}
    months = pd.date_range("2000-01-01", periods=120, freq="MS").to_numpy()
    assert calendar_periods(months, 120) == {"year": 12.0}


def test_fast_waves_and_steps_agree_with_least_squares() -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(np.column_stack([np.ones(90), rng.normal(size=(90, 2))]))[0]
    own = rng.normal(size=90)
    left = own - basis @ (basis.T @ own)
    frequencies, waves = wave_f_values(basis, left)
    steps = step_f_values(basis, left)
    time = np.arange(90)

    def f_value(pieces: Array) -> float:
        design = np.column_stack([basis, pieces])
        errors = own - design @ np.linalg.lstsq(design, own, rcond=None)[0]
        gain = (left @ left - errors @ errors) / pieces.shape[1]
        return float(gain / (errors @ errors / (90 - design.shape[1])))

    place = 17
    angle = 2 * np.pi * frequencies[place] * time
    assert waves[place] == pytest.approx(f_value(np.stack([np.cos(angle), np.sin(angle)], 1)))
    assert steps[40] == pytest.approx(f_value((time >= 40.0)[:, None].astype(float)))


def test_json_gives_the_same_course_back() -> None:
    cycle = Cycle(24.0, 2, True, "day")
    terms = TimeTerms(100, (cycle,), (0.0, 50.0, 99.0), (40,))
    size = 1 + terms.matrix([0]).shape[1]
    course = TimeCourse((terms,), (np.ones((size, 2)),), (100,), np.array([[1.0, np.nan]]))
    again = TimeCourse.from_json(course.to_json())
    assert again.terms == course.terms
    ahead = np.zeros((3, 2))
    np.testing.assert_allclose(again.restored(0, ahead), course.restored(0, ahead))


def test_the_sentence_names_what_was_found() -> None:
    terms = TimeTerms(100, (Cycle(24.0, 2, name="day"),), (0.0, 99.0), (40,))
    course = TimeCourse((terms,), (np.zeros((7, 1)),), (100,))
    assert course.sentence == (
        "Time alone explains a cycle of 24 rows (a day), a slow trend and a new level from row 41 "
        "on; it was taken out of every number."
    )


@pytest.mark.parametrize("asked", ["daily", (1.0,), "24,", ()])
def test_a_season_that_is_none_is_refused(asked: object) -> None:
    with pytest.raises(InputError, match="season must be"):
        Config.of(season=asked)


def test_the_published_method_takes_nothing_out() -> None:
    config = Config.of(preset="paper")
    assert (config.data.season, config.data.trend) == ("none", "none")

"""Events: the root is told from what follows it, wherever the slice is cut."""

import numpy as np
import pandas as pd
import pytest

import forecause as fc

CALM, ROWS, ONSET = 900, 1100, 1000


def shop(rows=ROWS, shift=4.0, seed=0, season=0.0):
    """load -> service -> latency -> errors, and a service of its own; `service` shifts at ONSET."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(rows, 5))
    noise[ONSET:, 1] += shift
    values = np.zeros((rows, 5))
    for row in range(1, rows):
        before = values[row - 1]
        values[row] = noise[row] + 0.4 * before
        values[row, 1:4] += 0.6 * before[:3]
    values += 30 + season * np.sin(2 * np.pi * np.arange(rows) / 24)[:, None]
    index = pd.date_range("2026-03-01", periods=rows, freq="h", tz="Europe/Berlin", name="time")
    names = ["load", "service", "latency", "errors", "other"]
    return pd.DataFrame(values, columns=names, index=index)


@pytest.fixture(scope="module")
def frame():
    return shop()


@pytest.fixture(scope="module")
def run(frame):
    return fc.discover(frame.iloc[:CALM], max_lag=2, forecaster="linear", season="none")


def test_the_root_comes_first_and_what_follows_it_does_not(run, frame):
    told = run.explain(frame.index[ONSET], frame.index[ONSET + 40], "errors", data=frame[CALM:])
    assert told.causes["variable"].iloc[0] == "service"
    assert told.is_event
    assert list(told.causes.columns) == ["variable", "score", "surprise", "first", "share"]
    assert told.causes["share"].sum() == pytest.approx(1.0)
    way = told.paths.set_index("cause").loc["service"]
    assert way["path"] == "service -> latency -> errors"
    assert "service" in told.sentence


@pytest.mark.parametrize(("before", "after"), [(0, 10), (5, 30), (50, 99), (0, 99)])
def test_the_first_cause_does_not_depend_on_where_the_slice_is_cut(run, frame, before, after):
    told = run.explain(data=frame.iloc[ONSET - before : ONSET + after])
    assert told.causes["variable"].iloc[0] == "service"


def test_constant_columns_missing_scrapes_and_other_columns_are_no_surprise(run, frame):
    event = frame.iloc[ONSET : ONSET + 40].copy()
    event["other"] = 30.0
    event.iloc[5:9, 0] = np.nan
    event.iloc[20:22] = np.nan
    told = run.explain(data=event.assign(unknown=1.0)[[*event.columns[::-1], "unknown"]])
    assert told.causes["variable"].iloc[0] == "service"
    assert told.surprises["load"].iloc[3:7].isna().all()  # two rows were its past


def test_an_event_within_the_rows_of_the_run_is_left_out_of_what_is_normal(frame):
    run = fc.discover(frame, max_lag=2, forecaster="linear", season="none")
    told = run.explain("2026-04-11 14:00Z", until="2026-04-13 00:00Z", target="errors")
    assert told.causes["variable"].iloc[0] == "service"
    assert told.causes["surprise"].iloc[0] > 3.0
    assert str(told.start) == "2026-04-11 14:00:00+00:00"  # in the zone that was asked in


def test_seasons_are_carried_forward_and_not_taken_from_the_event():
    frame = shop(season=10.0, shift=5.0)
    run = fc.discover(frame.iloc[:CALM], max_lag=2, forecaster="linear", season=[24])
    told = run.explain(data=frame.iloc[ONSET : ONSET + 12])
    assert told.causes["variable"].iloc[0] == "service"
    assert told.surprises["service"].mean() > 3.0
    assert told.surprises["other"].abs().mean() < 2.0


def test_calm_rows_are_no_event_and_short_calm_is_said(run, frame):
    assert run.explain(400, 430).p_value > 0.05
    told = run.explain(data=frame.iloc[ONSET:])
    assert told.p_value is None
    assert "Too little calm" in told.sentence


def test_calm_blocks_are_called_events_as_often_as_promised():
    from forecause.effects.surprise import conformal_p_value

    rng = np.random.default_rng(0)
    told = [
        conformal_p_value(rng.standard_t(4, (800, 6)), rng.standard_t(4, (20, 6)))[0]
        for _ in range(400)
    ]
    assert 0.02 < np.mean(np.array(told) <= 0.05) < 0.08


def test_a_call_graph_of_the_user_replaces_the_found_one(run, frame):
    calls = [("service", "errors")]
    told = run.explain(
        frame.index[ONSET], frame.index[ONSET + 40], "errors", data=frame[CALM:], graph=calls
    )
    assert told.paths["path"].tolist() == ["service -> errors"]
    with pytest.raises(fc.InputError, match="pairs"):
        run.explain(400, 430, graph=[("service", "nobody")])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "Name the event"),
        ({"event": "2031-01-01"}, "lies after the data"),
        ({"event": "2020-01-01"}, "lies before the data"),
        ({"event": "noon"}, "no date"),
        ({"event": "2026-03-20..2026-03-22", "until": "2026-03-23"}, "leave until"),
        ({"event": 0, "until": -1}, "Too few calm rows"),
        ({"event": 10, "graph": 5}, "Expected pairs"),
        ({"event": 10, "until": 60, "target": "x"}, "Unknown variable"),
    ],
)
def test_what_is_no_event_is_refused(run, asked, said):
    with pytest.raises(fc.InputError, match=said):
        run.explain(**asked)


def test_data_without_a_column_is_refused(run, frame):
    with pytest.raises(fc.InputError, match="no column 'load'"):
        run.explain(data=frame[["service", "latency"]])


def test_a_picture_shows_the_likeliest_causes(run, frame):
    axes = run.explain(data=frame.iloc[ONSET : ONSET + 40]).plot()
    assert axes.get_legend_handles_labels()[1][0] == "service"


@pytest.mark.parametrize(("start", "end"), [(ONSET, 1040), (ONSET + 5, 1040), (ONSET + 5, 1099)])
def test_what_goes_on_after_an_event_or_began_before_it_is_not_taken_for_normal(start, end):
    run = fc.discover(shop(seed=2), max_lag=2, forecaster="linear", season="none")
    told = run.explain(start, end)
    assert told.causes["variable"].iloc[0] == "service"
    assert told.causes["surprise"].iloc[0] > 3.0


def test_a_run_of_differences_measures_the_floor_of_a_scale_in_changes(frame):
    levels = frame.cumsum()  # thousands, whose changes are the shop's values
    config = fc.Config(difference=True, season="none")
    run = fc.discover(levels.iloc[:CALM], max_lag=2, forecaster="linear", config=config)
    causes = run.explain(data=levels.iloc[ONSET : ONSET + 40]).causes
    assert causes["variable"].iloc[0] == "service"
    assert causes["surprise"].iloc[0] == pytest.approx(4.0, abs=0.8)


def test_times_are_told_in_the_zone_in_which_they_were_asked(run, frame):
    event = frame.iloc[ONSET : ONSET + 40]
    for data, zone in ((event, "+02:00"), (event.tz_convert("Asia/Tokyo"), "+09:00")):
        told = run.explain(data=data)
        assert told.surprises.index[0] == event.index[2]  # two rows were its past
        assert str(told.causes["first"].iloc[0]).endswith(zone)


def test_a_variable_without_a_value_in_the_event_is_named(run, frame):
    told = run.explain(data=frame.iloc[ONSET : ONSET + 40].assign(service=np.nan))
    assert any("unknown: service" in note for note in told.notes)
    assert told.causes["variable"].iloc[0] == "latency"


def test_a_value_beyond_all_bounds_is_the_cause(run, frame):
    told = run.explain(data=frame.iloc[ONSET : ONSET + 40].assign(load=1e300))
    assert told.causes["variable"].iloc[0] == "load"
    assert told.is_event


def test_rows_of_another_step_are_said_and_rows_without_time_have_numbers(run, frame):
    event = frame.iloc[ONSET : ONSET + 40]
    sparse = run.explain(data=event.iloc[::3])
    assert any("3 times as far apart" in note for note in sparse.notes)
    assert run.explain(data=event.reset_index(drop=True)).causes["first"].iloc[0] < 40


def test_of_several_series_one_is_asked_about(frame):
    parts = [shop(seed=s).reset_index().assign(machine=m) for s, m in ((1, "A"), (2, "B"))]
    both = pd.concat([parts[0].iloc[:700], parts[1]])
    run = fc.discover(both, max_lag=2, forecaster="linear", season="none", series="machine")
    told = run.explain(700 + ONSET, 700 + ONSET + 40)
    assert told.causes["variable"].iloc[0] == "service"
    with pytest.raises(fc.InputError, match="2 series"):
        run.explain(data=both.iloc[690:720])


def test_calm_rows_of_a_run_are_seldom_called_an_event():
    calm = shop(rows=700, seed=4)
    run = fc.discover(calm, max_lag=2, forecaster="linear", season="none")
    told = [run.explain(first, first + 14).p_value for first in range(330, 670, 34)]
    assert np.mean(np.array(told) <= 0.05) <= 0.2


def test_a_column_that_stood_still_before_the_event_is_no_obstacle():
    frame = shop(rows=700, seed=5).assign(still=1.0)
    frame.iloc[600:, -1] = np.random.default_rng(0).normal(size=100)
    run = fc.discover(frame, max_lag=2, forecaster="linear", season="none")
    assert run.explain(630, 640).causes["variable"].iloc[0] == "still"


def test_a_link_that_is_lost_shows_in_the_variable_that_lost_it():
    from forecause.effects.surprise import _of_lost

    rng = np.random.default_rng(0)
    told, noise = 0.5 * rng.normal(size=(400, 40, 2)), rng.normal(size=(400, 40))
    kept = [_of_lost(e, t) for e, t in zip(noise, told, strict=True)]
    lost = [_of_lost(e - t[:, 0], t) for e, t in zip(noise, told, strict=True)]
    assert np.mean(10.0 ** -np.array(kept) <= 0.05) < 0.08
    assert np.mean(10.0 ** -np.array(lost) <= 0.05) > 0.8

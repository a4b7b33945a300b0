import json
from dataclasses import replace

import numpy as np
import pytest

from fitted import build
from forecause.data import Panel, Windows
from forecause.data.summary import (
    duration,
    lag_text,
    sampling_text,
    timing,
)
from forecause.data.windows import place_knots
from forecause.report.evidence import MOST_EDGES, ModelProbe, collect
from forecause.report.history import course, short, stretch
from report_runs import linear_run, many_variables, three_variables, with_domains


@pytest.fixture(scope="module")
def found():
    return three_variables()


def entry(found, source, target, lag):
    names = found.data.variables
    edge = [names.index(source), names.index(target), lag]
    return next(part for part in found.evidence["edges"] if part["edge"] == edge)


def test_the_response_of_a_linear_forecast_is_its_line_in_the_datas_units(found):
    curve = entry(found, "a", "b", 1)["response"]
    slope = 0.8 * found.data.sd[1] / found.data.sd[0]
    steps = np.diff(curve["y"]) / np.diff(curve["x"])
    np.testing.assert_allclose(steps, slope, rtol=1e-2)
    assert len(curve["x"]) <= 25
    assert curve["x"] == sorted(curve["x"])


def test_the_influence_of_a_linear_forecast_never_changes(found):
    influence = entry(found, "b", "c", 2)["influence"]
    assert influence == [pytest.approx(0.5, rel=1e-4)] * 60


def test_what_is_lost_without_a_cause_is_what_it_explained():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4000, 2))
    values[1:, 1] = 0.8 * values[:-1, 0] + 0.6 * values[1:, 1]
    found = linear_run([[[0.0], [0.0]], [[0.8], [0.0]]], values, ["a", "b"])
    scaled = (values - values.mean(0)) / values.std(0)
    rows = np.linspace(3200, 3999, 400).astype(int)  # the last fifth is held out
    truth, cause = scaled[rows, 1], scaled[rows - 1, 0]
    expected = (truth**2).mean() / ((truth - 0.8 * cause) ** 2).mean() - 1
    assert entry(found, "a", "b", 1)["lost"] == pytest.approx(expected, rel=0.05)
    assert expected == pytest.approx(0.64 / 0.36, rel=0.25)


def test_the_stretch_shows_values_forecasts_and_the_size_of_their_error(found):
    near = found.evidence["stretch"]
    values, forecast = np.array(near["values"]), np.array(near["forecast"])
    assert values.shape == (3, 152)
    assert forecast.shape == (3, 150)
    mean, sd = found.data.mean, found.data.sd
    a = (values[0] - mean[0]) / sd[0]
    expected = 0.8 * a[1:-1] + 0.2 * a[:-2]
    np.testing.assert_allclose((forecast[1] - mean[1]) / sd[1], expected, atol=1e-3)
    # independent noise: the forecast adds its own variance to the target's
    assert near["error_sd"][1] / sd[1] == pytest.approx(np.sqrt(1 + 0.64 + 0.04), rel=0.1)


def test_all_of_it_is_json_and_small(found):
    assert len(json.dumps(found.evidence, allow_nan=False)) < 60_000
    assert json.loads(json.dumps(found.evidence)) == found.evidence


def test_only_so_many_edges_get_curves():
    large = many_variables(count=30, max_lag=2, edges=250)
    assert len(large.graph) == 250
    assert len(large.evidence["edges"]) == MOST_EDGES
    assert len(large.evidence["course"]["values"][0]) <= 400


def test_edges_of_domains_get_curves_too(found):
    weak = found.graph.edges.iloc[[0]]
    parted = with_domains(found)
    parted = replace(parted, graph=replace(parted.graph, edges=weak))
    panel = Panel.from_arrays([np.random.default_rng(0).normal(size=(300, 3))], list("abc"))
    evidence = collect(parted, Windows.of(panel, 2))
    assert len(evidence["edges"]) == len(found.graph)


def test_without_edges_there_is_still_a_stretch():
    values = np.random.default_rng(0).normal(size=(100, 2))
    empty = linear_run(np.zeros((2, 2, 1)), values, ["a", "b"])
    assert empty.evidence["edges"] == []
    assert len(empty.evidence["stretch"]["forecast"][0]) == 19


def test_a_long_course_keeps_its_peaks_in_order():
    values = np.zeros((5000, 1)) + np.sin(np.arange(5000))[:, None]
    values[1234], values[4321] = 50.0, -70.0
    points = course(Panel.from_arrays([values], ["x"]))["values"][0]
    assert len(points) == 400
    assert points.index(50.0) < points.index(-70.0)


def test_missing_values_stay_missing_in_the_course():
    values = np.arange(10.0)[:, None].copy()
    values[3] = np.nan
    assert course(Panel.from_arrays([values], ["x"]))["values"][0][3] is None


def test_the_stretch_never_crosses_a_gap():
    values = np.random.default_rng(0).normal(size=(400, 2))
    values[360] = np.nan
    windows = Windows.of(Panel.from_arrays([values], ["a", "b"]), 2)
    held_out = windows.split(0.5)[1]
    rows = held_out.rows[stretch(windows, held_out)]
    assert (np.diff(rows) == 1).all()
    assert rows[-1] == 359


def test_sampling_is_told_in_the_datas_own_time():
    panel = Panel.from_arrays([np.random.default_rng(0).normal(size=(50, 1))], ["x"])
    assert sampling_text(timing(panel)) == "in the order of the rows"
    hours = np.datetime64("2024-01-01T00") + np.arange(50) * np.timedelta64(3, "h")
    by_hours = timing(replace(panel, time=hours))
    assert sampling_text(by_hours) == "every 3 hours"
    assert lag_text(2, by_hours) == "2 rows (6 hours)"
    assert lag_text(8, by_hours) == "8 rows (1 day)"
    numbers = timing(replace(panel, time=np.arange(50) * 0.5))
    assert sampling_text(numbers) == "every 0.5 units of the time column"
    assert course(replace(panel, time=hours))["ticks"][0][1] == "2024-01-01"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(86400, "day"), (5400, "1.5 hours"), (90, "1.5 minutes"), (0.25, "250 milliseconds")],
)
def test_durations_read_naturally(seconds, text):
    assert duration(seconds) == text


def test_numbers_are_short_and_gaps_are_none():
    assert short([[1.23456789e-12, np.nan], [0.0, -123456.7]]) == [[1.2346e-12, None], [0, -123460]]
    assert short(np.inf) is None


@pytest.mark.parametrize("kind", ["linear", "additive"])
def test_a_forecast_that_adds_up_is_changed_by_one_term_of_it(kind):
    rng = np.random.default_rng(0)
    windows = Windows.of(Panel.from_arrays([rng.normal(size=(500, 3))], list("abc")), 2)
    model = build(kind, windows.shape, {})
    state = model.state()
    state |= {name: rng.normal(size=state[name].shape) for name in ("weight", "intercept")}
    if kind == "additive":
        state["knots"] = place_knots(windows, 5)
    model.load_state(state)
    probe = ModelProbe(model, windows, windows)
    window, values = windows.draw(np.arange(50)), np.array([[-1.5], [0.3], [2.0]])
    past = window.past
    moved = probe._moved(window, model(past), (0, 2, 2), values)
    assert moved.shape == (3, 50, 1)
    for value, forecast in zip(values, moved, strict=True):
        changed = past.copy()
        changed[:, -2, 0] = value
        np.testing.assert_allclose(forecast[:, 0], model(changed)[:, 2], rtol=1e-4, atol=1e-4)


def test_of_very_many_variables_fewer_points_are_kept_each():
    values = np.random.default_rng(0).normal(size=(1000, 900))
    panel = Panel.from_arrays([values], [f"v{i}" for i in range(900)])
    drawn = course(panel)["values"]
    assert len(drawn) == 900
    assert len(drawn[0]) == 88  # 80,000 points in all
    windows = Windows.of(panel, 1)
    assert len(stretch(windows, windows)) == 33  # 30,000 in all

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from forecause.diagnostics.finding import Finding, Links
from forecause.graph.lagged import LaggedGraph
from forecause.report.content import sentences
from forecause.report.layout import grouped, positions
from forecause.report.shapes import BOTH_WAYS, THROUGH_SIZE, WITH_OTHERS, curve_shape
from forecause.report.words import (
    amount,
    assumptions,
    change_text,
    direction,
    edge_sentence,
    forecast_verdict,
    headline,
    short_names,
    top_links,
    verdict,
)
from report_runs import NASTY, many_variables, three_variables, with_domains


@pytest.fixture(scope="module")
def found():
    return three_variables()


def test_an_edges_sentence_says_direction_delay_and_evidence(found):
    text = {line.split(".")[0]: line for line in sentences(found)}
    assert set(text) == {
        "a raises b after 1 row",
        "a raises b after 2 rows",
        "b lowers c after 2 rows",
        "c raises itself after 1 row",
    }
    line = text["b lowers c after 2 rows"]
    assert "Across the usual values of b the forecast of c moves by 2." in line
    assert "the held-out error" in line


RAIN = {"source": "rain", "target": "river", "lag": 2, "sign": 1, "grade": "firm"}


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ((0.46, 0.41, 0.51), "by 0.46 [0.41, 0.51]"),
        ((-46.0, -51.0, -41.0), "by 46 [41, 51]"),
    ],
)
def test_how_much_is_told_in_the_datas_units(ends, told):
    change = dict(zip(("change", "change_low", "change_high"), ends, strict=True))
    assert amount({**RAIN, **change}, 5.2) == f"{told} per standard deviation of rain (5.2)"


def test_a_link_that_does_not_push_on_average_is_told_by_its_shape():
    edge = {**RAIN, "change": 0.1, "change_low": -0.2, "change_high": 0.4}
    assert direction(edge) == "moves"
    assert change_text(edge, THROUGH_SIZE) == "through its size"
    assert change_text(edge) == "no push on average"
    told = amount(edge, 5.2, THROUGH_SIZE)
    assert told.startswith("no push on average [−0.20, 0.40]; it acts through its size")


@pytest.mark.parametrize("readout_sign", [1, -1])
def test_the_direction_is_that_of_the_effect_whatever_the_readout_says(readout_sign):
    interval = {"change": -0.3, "change_low": -0.4, "change_high": -0.2}
    assert direction({"sign": readout_sign, "sign_consistency": 0.1, **interval}) == "lowers"


X = np.linspace(-2, 2, 25)


@pytest.mark.parametrize(
    ("curve", "mean_slope", "shape"),
    [
        (X**2, 2.0, THROUGH_SIZE),
        (np.sin(3 * X), 2.0, BOTH_WAYS),
        (0.0 * X, 0.8, WITH_OTHERS),  # x times another input: slopes of both signs cancel
    ],
)
def test_the_shape_of_an_effect_is_read_from_its_mean_curve_and_its_slopes(
    curve, mean_slope, shape
):
    response = {"x": X.tolist(), "y": curve.tolist()}
    assert curve_shape(response, [mean_slope] * 3, 1.0, 1.0) == shape


def test_shortened_names_stay_apart():
    names = ["cpu_percent_worker_host_01", "cpu_percent_worker_host_02", "queue", "a" * 30 + "b"]
    short = short_names(names, 14)
    assert len(set(short.values())) == 4
    assert all(len(text) <= 14 for text in short.values())
    assert short["queue"] == "queue"


def test_nothing_is_told_where_nothing_is_known():
    unknown = dict.fromkeys(("change", "change_low", "change_high"), float("nan"))
    assert amount({**RAIN, **unknown}, 5.2) == ""


def test_a_sentence_tells_time_grade_and_amount():
    days = {"kind": "dates", "step": 86400.0}
    edge = {**RAIN, "change": 0.46, "change_low": 0.41, "change_high": 0.51}
    assert edge_sentence(edge, None, days, 5.2, 1.0) == (
        "rain raises river after 2 days (firm): by 0.46 [0.41, 0.51] per standard "
        "deviation of rain (5.2)."
    )


@pytest.mark.parametrize(
    ("edge", "verb"),
    [
        ({"effect": 0.2}, "raises"),
        ({"sign": -1}, "lowers"),
        ({"sign": 1, "sign_consistency": 0.2}, "moves"),
        ({"sign": -1, "sign_consistency": 0.9}, "lowers"),
        ({}, "moves"),
        ({"sign": float("nan"), "effect": float("nan")}, "moves"),
    ],
)
def test_a_direction_is_only_claimed_where_it_is_clear(edge, verb):
    assert direction(edge) == verb


def test_the_strongest_links_come_first_and_links_to_itself_only_without_others(found):
    assert [link["claim"] for link in top_links(found)] == [
        "a raises b after 1 row",
        "b lowers c after 2 rows",
        "a raises b after 2 rows",
    ]
    assert "1 link of a variable to its own past." in verdict(found)
    own = found.graph.edges.query("source == target")
    alone = replace(found, graph=replace(found.graph, edges=own))
    assert [link["claim"] for link in top_links(alone)] == ["c raises itself after 1 row"]


def test_many_variables_are_ordered_so_that_linked_ones_are_neighbours():
    names = [f"v{i}" for i in range(40)]
    pairs = [(f"v{i}", f"v{i + 20}", 1, 1.0) for i in range(20)]
    order = grouped([LaggedGraph.from_edges(names, 1, pairs)])
    assert sorted(order) == list(range(40))
    place = {variable: at for at, variable in enumerate(order)}
    assert all(abs(place[i] - place[i + 20]) == 1 for i in range(20))


def test_without_edges_the_verdict_says_so(found):
    none = replace(found, graph=replace(found.graph, edges=found.graph.edges.iloc[:0]))
    assert verdict(none)[0].startswith("No variable was found to drive another.")


def test_forecasts_are_compared_with_naive_mean_and_var():
    losses = pd.DataFrame(
        {"naive": [2.0, 0.5], "linear": [0.9, 0.9], "mlp": [0.5, 0.9], "chosen": ["mlp", "mlp"]}
    )
    text = forecast_verdict(losses)
    assert "the last value for 1 of 2 variables" in text
    assert "the variable's mean for 2" in text
    assert "for 1 it is more than 2 % better than a linear VAR" in text


def test_the_assumptions_know_of_lags_and_domains(found):
    assert "Nothing takes longer than 2 rows." in [claim for claim, _ in assumptions(found)]
    claims = [claim for claim, _ in assumptions(with_domains(found))]
    assert "Each domain has one graph; within it the influences stay the same." in claims


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_places_are_apart_inside_the_picture_and_always_the_same(count):
    graph = many_variables(count, max_lag=1, edges=min(2 * count, count * count)).graph
    places = positions([graph])
    assert places.shape == (count, 2)
    assert (abs(places) <= [1.4501, 1.0001]).all()
    assert len({tuple(place.round(2)) for place in places}) == count
    assert (positions([graph]) == places).all()


def test_variables_without_a_link_stand_in_a_row_below():
    graph = many_variables(20, max_lag=1, edges=1).graph
    linked = set(graph.edges["source"]) | set(graph.edges["target"])
    places = dict(zip(graph.variables, positions([graph]), strict=True))
    assert all((places[name][1] > -1) == (name in linked) for name in places)


def test_right_to_left_names_do_not_turn_a_sentence_around():
    line = sentences(three_variables(NASTY))[2]
    assert f"\u2068{NASTY[2]}\u2069" in line or NASTY[2] not in line


def test_the_headline_says_for_how_many_links_nothing_is_promised():
    graph = LaggedGraph.from_edges(list("abc"), 1, [("a", "b", 1, 1.0), ("b", "c", 1, 1.0)])

    def told(*about):
        doubts = [Finding("near-duplicates", "seen", "doubt", about)] if about else []
        return headline(SimpleNamespace(graph=graph, findings=doubts, doubts=doubts))

    assert told() == "2 links among 3 variables"
    promise = "2 links among 3 variables; no error rate can be promised for 1 of them"
    assert told(Links("a", "b")) == promise
    assert told(Links(None, "b"), Links(None, "c")).startswith("No error rate can be promised: 2")

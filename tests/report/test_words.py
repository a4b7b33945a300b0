from dataclasses import replace

import pandas as pd
import pytest

from forecause.report.content import sentences
from forecause.report.layout import positions
from forecause.report.words import assumptions, direction, forecast_verdict, verdict
from report_runs import NASTY, many_variables, three_variables, with_domains


@pytest.fixture(scope="module")
def found():
    return three_variables()


def test_an_edges_sentence_says_direction_delay_and_evidence(found):
    text = {line.split(":")[0]: line for line in sentences(found)}
    assert set(text) == {
        "a raises b 1 row later",
        "a raises b 2 rows later",
        "b lowers c 2 rows later",
        "c raises itself 1 row later",
    }
    line = text["b lowers c 2 rows later"]
    assert "across the usual values of b the forecast of c moves by 2." in line
    assert "the held-out error" in line


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


def test_the_verdict_names_the_strongest_link_first(found):
    lines = verdict(found)
    assert lines[0] == "The strongest link: a raises b after 1 row."
    assert "1 link of a variable to its own past." in lines


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

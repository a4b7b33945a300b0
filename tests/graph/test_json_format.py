"""graph.json: what it looks like, and what is refused."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecause.errors import InputError
from forecause.graph import LaggedGraph, empty_scores, json_format
from forecause.graph.json_format import read_json, to_json

quickly = settings(max_examples=30)


def small_graph() -> LaggedGraph:
    return LaggedGraph.from_edges(["a", "b", "c"], 3, [("a", "b", 1, 0.5), ("c", "b", 3, 0.25)])


def test_json_has_the_documented_shape():
    assert json.loads(small_graph().to_json()) == {
        "format": "forecause.graph/1",
        "variables": ["a", "b", "c"],
        "max_lag": 3,
        "edges": [
            {"source": "a", "target": "b", "lag": 1, "score": 0.5},
            {"source": "c", "target": "b", "lag": 3, "score": 0.25},
        ],
    }


def test_json_keeps_scores_and_domains():
    rng = np.random.default_rng(0)
    scores = empty_scores(["a", "b"], 2) + rng.normal(size=(2, 2, 2))
    scores[0, 1, 0] = np.nan
    scores[1, 0, 1] = -np.inf
    parts = {
        "winter": LaggedGraph.from_scores(scores, scores.values > 0),
        "summer": LaggedGraph.from_edges(["a", "b"], 2, []),
    }
    graph = LaggedGraph.from_scores(scores, scores.values < 0)
    graph = LaggedGraph(graph.variables, graph.max_lag, graph.edges, scores, parts)
    back = read_json(to_json(graph))
    assert back == graph
    assert back.scores.sel(target="b", source="a", lag=2) == -np.inf
    assert list(back.domains) == ["winter", "summer"]


def test_a_variable_may_be_called_infinity():
    graph = LaggedGraph.from_edges(["Infinity"], 1, [("Infinity", "Infinity", 1, math.inf)])
    assert read_json(to_json(graph)) == graph


def test_json_scores_keep_their_own_lags():
    scores = empty_scores(["a", "b"], 2, first_lag=0)
    scores.loc[{"target": "b", "source": "a", "lag": 0}] = 7.0
    graph = LaggedGraph.from_scores(scores, scores.values > 1)
    document = json.loads(to_json(graph))
    assert document["score_lags"] == [0, 1, 2]
    assert document["scores"][1][0] == [7.0, 0.0, 0.0]  # [target][source][lag]
    assert read_json(to_json(graph)) == graph


@quickly
@given(st.floats())
def test_json_floats_are_exact_and_strict(number):
    graph = LaggedGraph.from_edges(["a", "b"], 1, [("a", "b", 1, number)])
    text = to_json(graph)

    def refuse(word):
        raise AssertionError(f"{word} is not strict JSON")

    json.loads(text, parse_constant=refuse)
    (score,) = read_json(text).edges["score"]
    assert score == number or (math.isnan(score) and math.isnan(number))


def test_json_is_the_same_for_any_order_of_the_edges():
    edges = [("a", "b", 1, 0.5), ("c", "b", 3, 0.5), ("b", "c", 2, 0.5)]
    texts = {to_json(LaggedGraph.from_edges("abc", 3, order)) for order in (edges, edges[::-1])}
    assert len(texts) == 1


def test_json_is_read_with_keys_of_a_later_version_and_whole_number_scores():
    document = json.loads(small_graph().to_json()) | {"made_by": "someone"}
    document["edges"][0]["score"] = 1
    assert read_json(json.dumps(document)).edges["score"].tolist() == [1.0, 0.25]


@quickly
@given(st.integers(0, 250))
def test_a_truncated_file_is_refused(cut):
    text = small_graph().to_json().rstrip()
    with pytest.raises(InputError):
        read_json(text[: cut % (len(text) - 1) + 1])


def changed(**entries):
    return json.dumps(json.loads(small_graph().to_json()) | entries)


PAIR = {"source": "a", "target": "b", "p": 0.01, "q": None}
EDGE = {"source": "a", "target": "b", "lag": 1, "score": 1.0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("{" * 100_000, "not valid JSON"),
        ('{"x": ' + "[" * 100_000, "not valid JSON"),
        ("{}", "found None"),
        ('{"format": "forecause.graph/2"}', "forecause.graph/2"),
        ('{"format": "forecause.graph/1"}', '"variables" must be'),
        (changed(variables="abc"), '"variables" must be'),
        (changed(variables=["a", "a"]), "must differ"),
        (changed(variables=["a", "b"]), "['c']"),
        (changed(max_lag="3"), '"max_lag" must be'),
        (changed(max_lag=True), '"max_lag" must be'),
        (changed(max_lag=0), "whole number from 1, found 0"),
        (changed(edges={"a": "b"}), '"edges" must be'),
        (changed(edges=[1]), '"edges" must be'),
        (changed(edges=[{"source": "a", "target": "b", "lag": 1}]), "edge 1 has no 'score'"),
        (changed(edges=[EDGE, EDGE]), "twice"),
        (changed(edges=[EDGE | {"lag": 1.5}]), "whole number as lag, found 1.5"),
        (changed(edges=[EDGE | {"lag": 4}]), "from 0 to 3, found 4"),
        (changed(edges=[EDGE | {"lag": 10**30}]), "64 bits"),
        (changed(edges=[EDGE | {"score": "high"}]), "score of edge 1 must be a number"),
        (changed(edges=[EDGE | {"score": 10**400}]), "too large"),
        (changed(edges=[EDGE | {"source": 1}]), "as text"),
        (changed(edges=[EDGE, EDGE | {"target": 1, "lag": 2}]), "edge 2 must name"),
        (changed(edges=[EDGE | {"extra": [1]}]), "type list"),
        (changed(scores=[1], score_lags=[1]), "[target][source][lag]"),
        (changed(scores=[[["x"] * 3] * 3] * 3, score_lags=[1, 2, 3]), "every score"),
        (changed(scores=[[[1.0] * 3] * 3] * 3), '"score_lags"'),
        (changed(domains=[1]), '"domains" must'),
        (changed(domains={"x": {}}), '"edges" must be'),
        (changed(domains={"x": {"edges": []}, "y": 1}), '"domains" must'),
        (changed(variables=["a", "b", "c", 1]), '"variables" must be'),
        (changed(edges=[EDGE, 1]), '"edges" must be'),
        (changed(scores=[], score_lags=[1, True, 3]), '"score_lags"'),
        (changed(scores=[], score_lags=1), '"score_lags"'),
        (changed(scores=[[[1.0] * 2] * 3] * 3, score_lags=[1, 2, 3]), "[target][source][lag]"),
        (changed(scores=[[[1.0] * 3, 1.0, [1.0] * 3]] * 3, score_lags=[1, 2, 3]), "[target]"),
        (changed(summary={"a": 1}), '"summary" must be'),
        (changed(summary=[1]), '"summary" must be'),
        (changed(summary=[PAIR, 1]), '"summary" must be'),
        (changed(summary=[PAIR, PAIR | {"source": "x"}]), "summary entry 2 must name"),
        (changed(summary=[PAIR | {"target": "x"}]), "summary entry 1 must name"),
        (changed(summary=[PAIR | {"q": "small"}]), "q of a pair must be a number"),
    ],
)
def test_broken_json_is_refused_in_one_sentence(text, said):
    with pytest.raises(InputError) as caught:
        read_json(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=10)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_value_at_any_place_is_read_or_refused(value):
    for key in ("variables", "max_lag", "edges", "scores", "score_lags", "domains"):
        for change in (value, [value], {"x": value}):
            try:
                read_json(changed(**{key: change}))
            except InputError:
                continue


def test_files_that_are_no_graph_are_refused(tmp_path):
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\x89PNG\xff\xfe")
    empty = tmp_path / "empty.json"
    empty.touch()
    for source, said in (
        (empty, "not valid JSON"),
        (tmp_path / "absent.json", "No such file"),
        (tmp_path, "directory"),
        (binary, "UTF-8"),
    ):
        with pytest.raises(InputError, match=said):
            read_json(source)
    with pytest.raises(InputError, match="Cannot write"):
        to_json(small_graph(), tmp_path / "absent" / "graph.json")


def test_half_a_surrogate_pair_is_refused_when_written(tmp_path):
    with pytest.raises(InputError, match="half of a character pair"):
        to_json(LaggedGraph.from_edges(["\ud800", "b"], 1, []), tmp_path / "graph.json")


class TestStrongestScores:
    @pytest.fixture
    def graph(self, monkeypatch):
        """A graph with more candidates than are written in full."""
        monkeypatch.setattr(json_format, "MOST_SCORES", 40)
        monkeypatch.setattr(json_format, "KEPT_SCORES", 7)
        scores = empty_scores(list("abcd"), 3) + np.random.default_rng(0).normal(size=(4, 4, 3))
        return LaggedGraph.from_scores(scores, scores.values > 2.0)

    def test_of_very_many_candidates_the_strongest_are_written(self, graph):
        text = graph.to_json()
        assert "scores" not in json.loads(text)
        again = read_json(text)
        assert again.edges.equals(graph.edges)
        kept = again.scores.values != 0
        assert kept.sum() == max(7, 5 * len(graph))
        np.testing.assert_array_equal(again.scores.values[kept], graph.scores.values[kept])
        assert graph.scores.values[kept].min() >= graph.scores.values[~kept].max()

    @pytest.mark.parametrize(
        ("entry", "sentence"),
        [
            ("none", "must list"),
            ([0, 1, 1], "must list"),
            ([0, 4, 1, 0.5], "by their places"),
            ([0, 1, 9, 0.5], "none of the lags"),
            ([0, 1, 1, "much"], "must be a number"),
            (5, "must list"),
            ([0, 1, 1, 0.5, 0.5], "must list"),
            ([4, 0, 1, 0.5], "by their places"),
            ([-1, 0, 1, 0.5], "by their places"),
            ([0, -1, 1, 0.5], "by their places"),
            ([True, 0, 1, 0.5], "by their places"),
            ([0, 1.0, 1, 0.5], "by their places"),
        ],
    )
    def test_what_cannot_be_is_refused(self, graph, entry, sentence):
        content = json.loads(graph.to_json())
        content["strongest_scores"] = entry if entry == "none" else [entry]
        with pytest.raises(InputError, match=sentence):
            read_json(json.dumps(content))

    def test_the_first_and_the_last_place_are_read(self, graph):
        content = json.loads(graph.to_json())
        content["strongest_scores"] = [[0, 3, 1, 0.5], [3, 0, 3, "-Infinity"]]
        scores = read_json(json.dumps(content)).scores
        assert scores.sel(target="a", source="d", lag=1) == 0.5
        assert scores.sel(target="d", source="a", lag=3) == -math.inf
        assert (scores != 0).sum() == 2

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("edges", [0, 2])
    def test_so_many_are_written_as_asked_for_or_five_for_an_edge(self, monkeypatch, seed, edges):
        monkeypatch.setattr(json_format, "MOST_SCORES", 47)
        monkeypatch.setattr(json_format, "KEPT_SCORES", 9)
        scores = empty_scores(list("abcd"), 3) + np.random.default_rng(seed).normal(size=(4, 4, 3))
        strongest = np.sort(scores.values.ravel())[::-1]
        chosen = scores.values >= strongest[edges - 1] if edges else scores.values > 99
        graph = LaggedGraph.from_scores(scores, chosen)
        written = json.loads(graph.to_json())["strongest_scores"]
        assert (
            sorted((cell[3] for cell in written), reverse=True)
            == strongest[: 9 + (edges > 0)].tolist()
        )
        for target, source, lag, score in written:
            assert score == scores.values[target, source, lag - 1]

    def test_all_are_written_where_more_are_asked_for_and_unknown_ones_rank_last(self, monkeypatch):
        monkeypatch.setattr(json_format, "MOST_SCORES", 3)
        scores = empty_scores(list("ab"), 1) + np.array([[[1.0], [np.nan]], [[-5.0], [2.0]]])
        graph = LaggedGraph.from_scores(scores, scores.values > 9)
        assert len(json.loads(graph.to_json())["strongest_scores"]) == 4
        monkeypatch.setattr(json_format, "KEPT_SCORES", 3)
        written = json.loads(graph.to_json())["strongest_scores"]
        assert [cell[3] for cell in written] == [1.0, -5.0, 2.0]

    def test_up_to_a_bound_all_scores_are_written(self, monkeypatch, graph):
        monkeypatch.setattr(json_format, "MOST_SCORES", 48)
        assert json.loads(graph.to_json())["scores"] == graph.scores.values.tolist()
        monkeypatch.setattr(json_format, "MOST_SCORES", 47)
        assert "strongest_scores" in json.loads(graph.to_json())


def test_pairs_of_the_summary_are_kept():
    summary = pd.DataFrame([PAIR, PAIR | {"source": "c", "p": 0.5, "q": 0.7}])
    graph = replace(small_graph(), summary=summary)
    again = read_json(to_json(graph)).summary
    pd.testing.assert_frame_equal(again, summary.astype({"q": float}))
    assert read_json(to_json(small_graph())).summary is None


def test_text_is_laid_out_for_people_with_an_edge_on_a_line():
    graph = LaggedGraph.from_edges(["a", "ç"], 1, [("a", "ç", 1, 0.5), ("ç", "a", 1, 0.25)])
    assert to_json(graph) == (
        '{\n  "format": "forecause.graph/1",\n  "variables": ["a", "ç"],\n  "max_lag": 1,\n'
        '  "edges": [\n'
        '    {"source": "a", "target": "ç", "lag": 1, "score": 0.5},\n'
        '    {"source": "ç", "target": "a", "lag": 1, "score": 0.25}\n'
        "  ]\n}\n"
    )
    empty = to_json(LaggedGraph.from_edges(["a"], 1, []))
    assert '\n  "edges": []\n' in empty


def test_a_column_of_text_keeps_words_that_are_also_infinities():
    edges = small_graph().edges.assign(note=["Infinity", "x"], size=[math.inf, -math.inf])
    graph = LaggedGraph(("a", "b", "c"), 3, edges)
    again = read_json(to_json(graph)).edges
    assert again["note"].tolist() == ["Infinity", "x"]
    assert again["size"].tolist() == [math.inf, -math.inf]

"""LaggedGraph: a checked table of edges with named axes."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from forecause.errors import InputError
from forecause.graph import AXES, LaggedGraph, empty_scores

NAMES = ["rain", "wind", "sun"]


def scores_of(values) -> xr.DataArray:
    return empty_scores(NAMES, np.shape(values)[2]) + values


def table(*edges, **columns) -> pd.DataFrame:
    return pd.DataFrame(edges, columns=["source", "target", "lag", "score"]).assign(**columns)


def test_an_edge_of_the_scores_keeps_its_target_source_and_lag():
    scores = scores_of(np.zeros((3, 3, 2)))
    scores.loc[{"target": "wind", "source": "sun", "lag": 2}] = 5.0
    graph = LaggedGraph.from_scores(scores, scores.values > 1)
    assert graph.edges.to_dict("records") == [
        {"source": "sun", "target": "wind", "lag": 2, "score": 5.0}
    ]
    assert graph.max_lag == 2


def test_details_become_columns():
    scores = scores_of(np.arange(18.0).reshape(3, 3, 2))
    graph = LaggedGraph.from_scores(scores, scores.values > 15, {"sign": -scores})
    assert graph.edges["sign"].tolist() == [-17.0, -16.0]


@settings(max_examples=25)
@given(hnp.arrays(bool, (3, 3, 2)))
def test_adjacency_is_the_mask_the_graph_was_made_of(chosen):
    graph = LaggedGraph.from_scores(scores_of(np.ones((3, 3, 2))), chosen)
    assert graph.adjacency.dims == AXES
    assert np.array_equal(graph.adjacency.values, chosen)
    assert list(graph.adjacency["lag"].values) == [1, 2]
    assert len(graph) == chosen.sum()


def test_adjacency_begins_at_lag_0_where_an_edge_has_no_delay():
    graph = LaggedGraph.from_edges(NAMES, 2, [("rain", "wind", 0), ("sun", "sun", 2)])
    assert list(graph.adjacency["lag"].values) == [0, 1, 2]
    assert np.argwhere(graph.adjacency.values).tolist() == [[1, 0, 0], [2, 2, 2]]


@settings(max_examples=25)
@given(st.permutations(range(4)))
def test_edges_are_strongest_first_whatever_order_they_came_in(order):
    edges = [
        ("rain", "wind", 1, 3.0),
        ("rain", "sun", 2, 1.0),
        ("wind", "sun", 1, 1.0),
        ("sun", "sun", 1, np.nan),
    ]
    graph = LaggedGraph.from_edges(NAMES, 2, [edges[i] for i in order])
    assert graph.edges["source"].tolist() == ["rain", "rain", "wind", "sun"]
    assert graph == LaggedGraph.from_edges(NAMES, 2, edges)


def test_equality_sees_every_part():
    edges = table(("rain", "wind", 1, 1.0))
    scores = scores_of(np.zeros((3, 3, 2)))
    plain = LaggedGraph(tuple(NAMES), 2, edges)
    others = [
        LaggedGraph(tuple(NAMES[::-1]), 2, edges),
        LaggedGraph(tuple(NAMES), 3, edges),
        LaggedGraph(tuple(NAMES), 2, edges.assign(lag=2)),
        LaggedGraph(tuple(NAMES), 2, edges.assign(sign="+")),
        LaggedGraph(tuple(NAMES), 2, edges, scores),
        LaggedGraph(tuple(NAMES), 2, edges, None, {"winter": plain}),
    ]
    assert all(other != plain and plain != other for other in others)
    assert LaggedGraph(tuple(NAMES), 2, edges, scores) == others[4]
    assert plain != "a graph"
    with pytest.raises(TypeError):
        hash(plain)


def test_equality_ignores_how_the_table_is_stored():
    edges = table(("rain", "wind", 1, 1.0), ("wind", "rain", 1, 2.0), sign=["+", None], n=[1, 2])
    stored = edges.astype({"sign": "string", "lag": "int8", "n": "Int32"})[edges.columns[::-1]]
    stored.index = [7, 3]
    assert LaggedGraph(tuple(NAMES), 2, edges) == LaggedGraph(tuple(NAMES), 2, stored)


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (pd.DataFrame({"source": [], "target": []}), "['lag', 'score'] are missing"),
        (table(("rain", "fog", 1, 1.0)), "['fog']"),
        (table(("rain", "sun", 3, 1.0)), "from 0 to 2, found 3"),
        (table(("rain", "sun", -1, 1.0)), "found -1"),
        (table(("rain", "sun", 1.5, 1.0)), "found 1.5"),
        (table(("rain", "sun", None, 1.0)), "found nan"),
        (table(("rain", "sun", "1", 1.0)), "found '1'"),
        (table(("rain", "sun", 1, "high")), "must be numbers, found 'high'"),
        (table(("rain", "sun", 1, 1.0), ("rain", "sun", 1, 2.0)), "twice"),
        (table(("sun", "sun", 0, 1.0)), "itself without delay"),
        (table(("rain", "sun", 1, 1.0)).assign(when=[pd.Timestamp(0)]), "type Timestamp"),
    ],
)
def test_edges_that_make_no_sense_are_refused(edges, said):
    with pytest.raises(InputError) as caught:
        LaggedGraph(tuple(NAMES), 2, edges)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("names", "max_lag", "said"),
    [
        (["a", "b", "a"], 1, "found twice: ['a']"),
        (["a", "b\0"], 1, "null character"),
        (["a"], 0, "from 1, found 0"),
        (["a"], 1.5, "from 1, found 1.5"),
    ],
)
def test_frames_that_make_no_sense_are_refused(names, max_lag, said):
    with pytest.raises(InputError) as caught:
        LaggedGraph.from_edges(names, max_lag, [])
    assert said in str(caught.value)


def test_scores_must_carry_their_names():
    scores = scores_of(np.zeros((3, 3, 2)))
    for wrong, said in (
        (scores.transpose("source", "target", "lag"), "must have the axes"),
        (scores.drop_vars("lag"), "coordinate along 'lag'"),
        (scores.isel(source=[1, 0, 2]), "sources of the scores"),
        (scores.isel(target=[0, 1]), "targets of the scores"),
    ):
        with pytest.raises(InputError, match=said):
            LaggedGraph(tuple(NAMES), 2, table(), wrong)


def test_a_domain_has_the_variables_and_lags_of_the_whole():
    other = LaggedGraph.from_edges(NAMES, 3, [])
    with pytest.raises(InputError, match="domain 'winter'"):
        LaggedGraph(tuple(NAMES), 2, table(), None, {"winter": other})

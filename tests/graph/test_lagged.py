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
from forecause.graph.lagged import with_domains

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


def test_without_edges_columns_do_not_matter_for_equality():
    none = table()
    assert LaggedGraph(tuple(NAMES), 2, none) == LaggedGraph(tuple(NAMES), 2, none.assign(sign=[]))
    one = LaggedGraph(tuple(NAMES), 2, table(("rain", "wind", 1, 1.0)))
    assert one != LaggedGraph(tuple(NAMES), 2, none)
    assert LaggedGraph(tuple(NAMES), 2, none) != one


def test_equality_sees_the_scores_of_either():
    scores = scores_of(np.zeros((3, 3, 2)))
    plain, scored, other = (
        LaggedGraph(tuple(NAMES), 2, table(), of) for of in (None, scores, scores + 1)
    )
    assert scored != plain
    assert plain != scored
    assert scored != other
    assert scored == LaggedGraph(tuple(NAMES), 2, table(), scores.copy())


@pytest.mark.parametrize("number", [2**63, -(2**63), 2**64])
def test_whole_numbers_beyond_64_bits_are_refused(number):
    with pytest.raises(InputError, match="beyond 64 bits"):
        LaggedGraph(tuple(NAMES), 2, table(("rain", "sun", 1, 1.0), n=[number]))
    largest = LaggedGraph(tuple(NAMES), 2, table(("rain", "sun", 1, 1.0), n=[2**63 - 1]))
    assert largest.edges["n"].tolist() == [2**63 - 1]


def test_a_column_has_one_settled_type():
    two = (("rain", "sun", 1, 2.0), ("sun", "rain", 1, 1.0))

    def column(*cells):
        values = pd.Series(cells, dtype=object)
        return LaggedGraph(tuple(NAMES), 2, table(*two).assign(x=values)).edges["x"]

    assert column(True, False).dtype == bool
    assert column(1, 2).dtype == "int64"
    for cells, numbers in (
        ((1, None), [1, np.nan]),
        ((1, 2.5), [1, 2.5]),
        ((pd.NA, 2), [np.nan, 2]),
    ):
        found = column(*cells)
        assert found.dtype == "float64"
        np.testing.assert_array_equal(found, numbers)
    for cells, kept in (
        ((True, None), [True, None]),
        (("x", ""), ["x", None]),
        (("x", np.nan), ["x", None]),
        ((True, "x"), [True, "x"]),
        ((pd.NaT, "x"), [None, "x"]),
    ):
        assert column(*cells).tolist() == kept


def test_names_that_are_wrong_are_told_in_order():
    names = list("gfedcba")
    with pytest.raises(InputError, match=r"found twice: \['a', 'b', 'c', 'd', 'e'\]"):
        LaggedGraph.from_edges(names * 2, 1, [])
    unknown = [(name, "rain", 1, 1.0) for name in names]
    with pytest.raises(InputError, match=r"\['a', 'b', 'c', 'd', 'e', 'f', 'g'\]"):
        LaggedGraph(tuple(NAMES), 2, table(*unknown))


def test_equal_scores_are_in_the_order_of_target_source_and_lag():
    edges = [("sun", "wind", 2), ("sun", "wind", 1), ("rain", "wind", 1), ("wind", "rain", 1)]
    found = LaggedGraph.from_edges(NAMES, 2, edges).edges[["target", "source", "lag"]]
    assert found.to_numpy().tolist() == [
        ["rain", "wind", 1],
        ["wind", "rain", 1],
        ["wind", "sun", 1],
        ["wind", "sun", 2],
    ]
    assert found.index.tolist() == [0, 1, 2, 3]


class TestShown:
    def test_links_between_variables_are_shown_and_those_to_the_own_past_counted(self):
        edges = [("rain", "wind", 1, 2.5), ("sun", "sun", 1, 1.0), ("rain", "rain", 2, 0.5)]
        lines = repr(LaggedGraph.from_edges(NAMES, 2, edges)).splitlines()
        assert lines[0] == "1 link among 3 variables, delays up to 2 rows"
        assert lines[1].split() == ["source", "target", "lag", "score"]
        assert lines[2].split() == ["rain", "wind", "1", "2.5"]
        assert lines[3:] == ["and 2 links of a variable to its own past"]

    def test_own_links_alone_are_shown(self):
        lines = repr(LaggedGraph.from_edges(NAMES, 1, [("sun", "sun", 1, 1.0)])).splitlines()
        assert lines[0] == "No link among 3 variables, delays up to 1 row"
        assert lines[2].split() == ["sun", "sun", "1", "1"]
        assert lines[3:] == []

    def test_of_many_links_ten_are_shown_and_the_others_counted(self):
        names = [f"x{i:02}" for i in range(13)]
        edges = [(names[0], name, 1, 20.0 - i) for i, name in enumerate(names[1:])]
        graph = LaggedGraph.from_edges(names, 1, edges)
        lines = repr(graph).splitlines()
        assert lines[0] == "12 links among 13 variables, delays up to 1 row"
        assert [line.split()[1] for line in lines[2:12]] == names[1:11]
        assert lines[12:] == ["... and 2 more in .edges"]
        ten = LaggedGraph.from_edges(names, 1, edges[:10])
        assert "more" not in repr(ten)
        assert ten._repr_html_().count("<tr") == 11

    def test_nothing_is_shown_of_an_empty_graph_but_its_size(self):
        nothing = LaggedGraph.from_edges(["a"], 1, [])
        assert repr(nothing) == "No link among 1 variable, delays up to 1 row"
        assert "<table" not in nothing._repr_html_()


class TestDomains:
    COLD = LaggedGraph.from_edges(NAMES, 2, [("rain", "wind", 1, 3.0), ("sun", "rain", 2, 1.0)])
    WARM = LaggedGraph.from_edges(NAMES, 2, [("rain", "wind", 1, 2.0), ("sun", "wind", 1, 4.0)])

    @pytest.fixture
    def both(self):
        edges = [("rain", "wind", 1, 2.5), ("sun", "wind", 1, 2.0), ("sun", "sun", 1, 1.0)]
        whole = LaggedGraph.from_edges(NAMES, 2, edges)
        return with_domains(whole, {"cold": self.COLD, "warm": self.WARM})

    def test_every_edge_names_where_it_was_found(self, both):
        assert both.edges["domains"].tolist() == ["all", "warm", None]
        assert dict(both.domains) == {"cold": self.COLD, "warm": self.WARM}

    def test_the_invariant_edges_are_those_of_every_domain(self, both):
        expected = LaggedGraph.from_edges(NAMES, 2, [("rain", "wind", 1, 2.5)])
        assert both.invariant == expected
        assert self.COLD.invariant is self.COLD

    def test_what_every_domain_has_is_invariant_though_the_whole_has_it_not(self):
        whole = LaggedGraph.from_edges(NAMES, 2, [])
        found = with_domains(whole, {"cold": self.COLD, "warm": self.WARM}).invariant
        assert found == LaggedGraph.from_edges(NAMES, 2, [("rain", "wind", 1, 3.0)])

    def test_changes_are_scores_of_the_edges_that_some_domains_lack(self, both):
        changes = both.changes
        assert changes.index.tolist() == [("sun", "rain", 2), ("sun", "wind", 1)]
        np.testing.assert_array_equal(changes["cold"], [1.0, np.nan])
        np.testing.assert_array_equal(changes["warm"], [np.nan, 4.0])

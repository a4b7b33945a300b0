"""Every format gives back the graph that went in, whatever its names hold."""

import io
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecause.errors import InputError
from forecause.graph import LaggedGraph
from forecause.graph.export import to_csv, to_dot, to_graphml, to_networkx, to_tigramite
from forecause.graph.json_format import read_json, to_json
from graph_readers import from_dot, from_graphml, from_networkx, from_tigramite, read_csv

NASTY = (
    "",
    'say "hi"',
    "<script>alert(1)</script>",
    "a,b;c",
    "line\nbreak",
    "carriage\rreturn",
    "\r\n",
    "tab\t",
    " space ",
    "back\\slash\\",
    "&amp; &#10;",
    "_x0041_",
    "_x0041\x01",
    "\x01\x1f\x7f\x85",
    "\u2028\u2029",
    "מזג אוויר",
    "\u202eright to left",
    "日本 🌦",
    "NA",
    "Infinity",
    "nan",
    "1",
    "é",
    "e\u0301",
    "\ufeff\ufffe\uffff",
    "]];",
    "${x}",
)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.floats(allow_infinity=True)

quickly = settings(max_examples=30)


@st.composite
def graphs(draw, columns: bool = True) -> LaggedGraph:
    """Any graph: names of any text, edges with details of every type, some of them missing."""
    names = draw(
        st.lists(st.one_of(NAMES, st.sampled_from(NASTY)), min_size=1, max_size=4, unique=True)
    )
    max_lag = draw(st.integers(1, 3))
    place = st.tuples(st.sampled_from(names), st.sampled_from(names), st.integers(1, max_lag))
    rows = draw(st.lists(place, max_size=6, unique=True))
    edges = pd.DataFrame(rows, columns=["source", "target", "lag"])
    count = len(rows)
    details = {
        "score": NUMBERS,
        "sign": st.integers(-1, 1),
        "sure": st.booleans(),
        "p value": st.one_of(st.none(), NUMBERS),
        "mark": st.sampled_from(["-->", "o->", None]),
        "note <&>": st.one_of(st.none(), NAMES),
    }
    for name, cells in details.items() if columns else [("score", NUMBERS)]:
        values = draw(st.lists(cells, min_size=count, max_size=count))
        edges[name] = pd.Series(values, dtype=object)
    return LaggedGraph(tuple(names), max_lag, edges)


def nasty_graph() -> LaggedGraph:
    edges = [(a, b, 1 + i % 2, 0.1 * i) for i, (a, b) in enumerate(pairwise(NASTY))]
    return LaggedGraph.from_edges(NASTY, 2, edges)


@quickly
@given(graphs())
@example(nasty_graph())
def test_json_round_trip(graph):
    assert read_json(to_json(graph)) == graph


@quickly
@given(graphs())
@example(nasty_graph())
def test_networkx_round_trip(graph):
    assert from_networkx(to_networkx(graph)) == graph


@quickly
@given(graphs())
@example(nasty_graph())
def test_graphml_round_trip(graph):
    assert from_graphml(to_graphml(graph)) == graph


@quickly
@given(graphs())
@example(nasty_graph())
def test_dot_round_trip(graph):
    assert from_dot(to_dot(graph)) == graph


@quickly
@given(graphs(columns=False))
@example(nasty_graph())
def test_csv_round_trip(graph):
    assert read_csv(to_csv(graph), graph.variables, graph.max_lag) == graph


@quickly
@given(graphs(columns=False))
def test_tigramite_round_trip_keeps_the_adjacency(graph):
    back = from_tigramite(to_tigramite(graph), graph.variables)
    assert back.adjacency.equals(graph.adjacency)


def test_files_give_back_the_graph(tmp_path):
    graph = nasty_graph()
    formats = [
        (to_json, read_json),
        (to_graphml, from_graphml),
        (to_dot, from_dot),
        (to_csv, lambda path: read_csv(path, graph.variables, graph.max_lag)),
    ]
    for write, read in formats:
        path = tmp_path / write.__name__
        text = write(graph, path)
        assert path.read_bytes().decode("utf-8") == text
        assert read(path) == read(str(path)) == graph


def test_methods_of_the_graph_write_the_same(tmp_path):
    graph = nasty_graph()
    assert LaggedGraph.from_json(graph.to_json()) == graph
    assert graph.to_csv() == to_csv(graph)
    assert graph.to_dot() == to_dot(graph)
    assert graph.to_graphml() == to_graphml(graph)
    assert (graph.to_tigramite() == to_tigramite(graph)).all()
    assert nx.utils.graphs_equal(graph.to_networkx(), to_networkx(graph))


def small_graph() -> LaggedGraph:
    return LaggedGraph.from_edges(["a", "b", "c"], 3, [("a", "b", 1, 0.5), ("c", "b", 3, 0.25)])


# --- the other formats --------------------------------------------------------------------------


def test_csv_is_what_pandas_reads():
    graph = nasty_graph()
    table = pd.read_csv(io.StringIO(to_csv(graph), newline=""), keep_default_na=False)
    for name in ("source", "target", "lag"):
        assert table[name].tolist() == graph.edges[name].tolist()
    assert table["score"].to_numpy() == pytest.approx(graph.edges["score"].to_numpy())


def test_networkx_has_the_lag_as_key_and_keeps_lonely_variables():
    network = small_graph().to_networkx()
    assert set(network.edges(keys=True)) == {("a", "b", 1), ("c", "b", 3)}
    assert network.edges["c", "b", 3] == {"lag": 3, "score": 0.25}
    lonely = LaggedGraph.from_edges(["a", "b"], 2, []).to_networkx()
    assert list(lonely.nodes) == ["a", "b"]


def test_an_edge_column_may_be_called_like_an_argument_of_networkx():
    edges = small_graph().edges.assign(key="k", id="i", label="l", u_for_edge=1, weight=2.0)
    graph = LaggedGraph(("a", "b", "c"), 3, edges)
    assert from_networkx(to_networkx(graph)) == graph
    assert from_dot(to_dot(graph)) == graph
    assert from_graphml(to_graphml(graph)) == graph


def test_graphml_is_what_networkx_reads():
    network = nx.parse_graphml(to_graphml(small_graph()), force_multigraph=True)
    assert list(network.nodes) == ["a", "b", "c"]
    assert dict(network.edges) == dict(to_networkx(small_graph()).edges)


def test_dot_numbers_have_no_exponent():
    graph = LaggedGraph.from_edges(["a", "b"], 1, [("a", "b", 1, 1.5e-300)])
    assert "e-" not in to_dot(graph)
    assert from_dot(to_dot(graph)) == graph


def test_dot_text_reads_as_expected():
    graph = LaggedGraph.from_edges(['a "b"\\', "c\nd"], 2, [('a "b"\\', "c\nd", 2, 0.5)])
    assert to_dot(graph) == (
        "digraph forecause {\n"
        "  max_lag=2;\n"
        '  n0 [label="a \\"b\\"\\\\"];\n'
        '  n1 [label="c\\nd"];\n'
        '  n0 -> n1 [label="2", lag=2, score=0.5];\n'
        "}\n"
    )


def test_dot_draws_the_ends_of_a_mark_and_names_every_kind_of_value():
    marks = ["-->", "o->", "<->", "o-o", "x-x", "odd", None]
    edges = pd.DataFrame(
        [("a", "b", lag, 9.0 - lag, mark) for lag, mark in enumerate(marks, 1)],
        columns=["source", "target", "lag", "score", "mark"],
    )
    lines = LaggedGraph(("a", "b"), 7, edges).to_dot().splitlines()[4:-1]
    drawn = [line.partition(", lag=")[0].partition('"')[2].partition('"')[2] for line in lines]
    assert drawn == [
        "",
        ", dir=both, arrowtail=odot, arrowhead=normal",
        ", dir=both, arrowtail=normal, arrowhead=normal",
        ", dir=both, arrowtail=odot, arrowhead=odot",
        ", dir=both, arrowtail=none, arrowhead=none",
        ", dir=both, arrowtail=odot, arrowhead=none",
        "",
    ]
    edges = (
        edges.drop(columns="mark")
        .iloc[:3]
        .assign(node=["x", None, "y"], up=[np.inf, -np.inf, 2.0], sure=[True, False, True])
    )
    lines = LaggedGraph(("a", "b"), 7, edges).to_dot().splitlines()[4:-1]
    assert [line.partition("score=")[2] for line in lines] == [
        '8.0, "node"="x", up=inf, sure=true];',
        "7.0, up=minus_inf, sure=false];",
        '6.0, "node"="y", up=2.0, sure=true];',
    ]


def test_csv_quotes_what_would_be_read_otherwise():
    notes = ["plain", "a,b", 'say "hi"', "two\nlines", " space", None, "=1+1"]
    edges = pd.DataFrame(
        [("a", "b", lag, float(-lag), note) for lag, note in enumerate(notes, 1)],
        columns=["source", "target", "lag", "score", "note"],
    ).assign(mark="-->", size=[1.5, None, *[2.0] * 5])
    assert to_csv(LaggedGraph(("a", "b"), 7, edges)) == (
        "source,target,lag,score,note,mark,size\n"
        "a,b,1,-1.0,plain,-->,1.5\n"
        'a,b,2,-2.0,"a,b",-->,\n'
        'a,b,3,-3.0,"say ""hi""",-->,2.0\n'
        'a,b,4,-4.0,"two\nlines",-->,2.0\n'
        'a,b,5,-5.0," space",-->,2.0\n'
        "a,b,6,-6.0,,-->,2.0\n"
        "a,b,7,-7.0,'=1+1,-->,2.0\n"
    )


def test_a_lag_window_beyond_all_memory_is_no_array_of_tigramite():
    graph = LaggedGraph.from_edges(["a", "b"], 10**8 // 4 - 1, [])
    with pytest.raises(InputError, match="too large"):
        LaggedGraph.from_edges(["a", "b"], 10**8 // 4, []).to_tigramite()
    assert graph.max_lag + 1 == 25_000_000


def test_both_orders_of_a_pair_in_a_row_may_say_the_same():
    edges = pd.DataFrame(
        [("a", "b", 0, "x-x"), ("b", "a", 0, "x-x"), ("b", "a", 1, "-->"), ("a", "b", 1, "o->")],
        columns=["source", "target", "lag", "mark"],
    ).assign(score=1.0)
    links = LaggedGraph(("a", "b"), 1, edges).to_tigramite()
    assert links.tolist() == [[["", ""], ["x-x", "o->"]], [["x-x", "-->"], ["", ""]]]


def test_tigramite_places_links_by_source_target_lag():
    graph = LaggedGraph.from_edges("abc", 2, [("a", "b", 2), ("c", "a", 0)])
    links = graph.to_tigramite()
    assert links.shape == (3, 3, 3)
    assert links[0, 1, 2] == "-->"
    assert (links[2, 0, 0], links[0, 2, 0]) == ("-->", "<--")
    assert (links != "").sum() == 3


def test_tigramite_marks_survive():
    edges = pd.DataFrame(
        [
            ("a", "b", 1, "o->"),
            ("b", "a", 1, "<->"),
            ("c", "a", 0, "o->"),
            ("a", "b", 0, "x-x"),
            ("b", "c", 2, None),
        ],
        columns=["source", "target", "lag", "mark"],
    ).assign(score=1.0)
    graph = LaggedGraph(("a", "b", "c"), 2, edges)
    links = graph.to_tigramite()
    assert (links[2, 0, 0], links[0, 2, 0], links[1, 0, 0]) == ("o->", "<-o", "x-x")
    back = from_tigramite(links, "abc")
    assert set(
        back.edges[["source", "target", "lag", "mark"]].itertuples(index=False, name=None)
    ) == {
        ("a", "b", 1, "o->"),
        ("b", "a", 1, "<->"),
        ("c", "a", 0, "o->"),
        ("a", "b", 0, "x-x"),
        ("b", "c", 2, "-->"),
    }


def test_tigramite_accepts_our_links():
    """Its own plotting-free check: links read by tigramite give the parents we meant."""
    pytest.importorskip("tigramite")
    from tigramite.graphs import Graphs

    graph = LaggedGraph.from_edges("abc", 3, [("a", "b", 1), ("c", "b", 3), ("c", "a", 0)])
    parents = Graphs.get_dict_from_graph(graph.to_tigramite(), parents_only=True)
    assert {j: set(pairs) for j, pairs in parents.items()} == {
        0: {(2, 0)},
        1: {(0, -1), (2, -3)},
        2: set(),
    }


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ([("a", "b", 0, "-->"), ("b", "a", 0, "-->")], "contradict"),
        ([("a", "b", 1, "arrow")], "not one of tigramite's"),
    ],
)
def test_what_tigramite_cannot_hold_is_refused(edges, said):
    table = pd.DataFrame(edges, columns=["source", "target", "lag", "mark"]).assign(score=1.0)
    with pytest.raises(InputError, match=said):
        LaggedGraph(("a", "b"), 1, table).to_tigramite()


def test_score_order_is_checked_so_that_no_axis_is_swapped():
    scores = xr.DataArray(
        np.zeros((2, 2, 1)),
        dims=("target", "source", "lag"),
        coords={"target": ["a", "b"], "source": ["b", "a"], "lag": [1]},
    )
    with pytest.raises(InputError, match="sources of the scores"):
        LaggedGraph(("a", "b"), 1, small_graph().edges.iloc[:0], scores)


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@sum", "\t=x", "'=x", "''-x", "'x", "x=1"])
def test_names_that_a_spreadsheet_would_run_are_text_and_round_trip(name):
    graph = LaggedGraph.from_edges([name, "b"], 1, [(name, "b", 1)])
    text = to_csv(graph)
    cell = text.splitlines()[1].lstrip('"')
    assert cell.lstrip()[0] not in "=+-@"
    assert read_csv(text, [name, "b"]) == graph

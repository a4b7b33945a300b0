"""What a notebook shows of a run."""

import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from forecause.diagnostics.finding import Finding
from forecause.diagnostics.power import Power
from forecause.effects.direct_effect import Effect
from forecause.progress import NotebookProgress
from forecause.report.notebook import MOST_VARIABLES, graph_svg, notebook_html
from report_runs import NASTY, many_variables, three_variables


def test_a_run_shows_headline_picture_links_and_doubts():
    run = three_variables()
    doubt = Finding("regimes", "What drives b changes over time", gravity="doubt")
    opened = plt.get_fignums()
    text = replace(run, findings=(doubt,))._repr_html_()
    assert "No error rate can be promised: 3 links among 3 variables" in text
    assert "What drives b changes over time." in text
    assert "<b>a raises b after 1 row</b>" in text
    assert text.index("promised") < text.index("What drives b") < text.index("<svg")
    assert plt.get_fignums() == opened
    assert repr(run).startswith("Discovery(3 links among 3 variables, ")


def test_the_picture_is_an_svg_with_every_name():
    text = three_variables(("rain", "river", "soil"))._repr_html_()
    drawn = re.search(r"<svg.*</svg>", text, re.S)
    root = ElementTree.fromstring(drawn[0])
    words = {
        "".join(node.itertext()).strip() for node in root.iter("{http://www.w3.org/2000/svg}text")
    }
    assert {"rain", "river", "soil", "raises", "lowers"} <= words


def test_links_to_its_own_past_are_drawn_where_there_are_no_others():
    graph = three_variables().graph
    own = graph.edges["source"] == graph.edges["target"]
    between, alone = (replace(graph, edges=graph.edges[rows]) for rows in (~own, own))
    nothing = replace(graph, edges=graph.edges.iloc[:0])
    assert graph_svg(graph, "rows") == graph_svg(between, "rows")
    assert graph_svg(alone, "rows").count("<path") > graph_svg(nothing, "rows").count("<path")


def test_names_are_never_markup():
    text = three_variables(NASTY)._repr_html_()
    assert "<script" not in text


class Shown:
    """What a notebook's display was told, in order."""

    def __init__(self):
        self.html = []

    def display(self, content, raw, display_id):
        assert raw
        assert display_id
        self.html.append(content["text/html"])
        return self

    def update(self, content, raw):
        self.html.append(content["text/html"])


def test_progress_is_one_bar_that_moves_and_goes(monkeypatch):
    shown = Shown()
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    with NotebookProgress() as progress:
        progress.say("Expecting about <3> s.")
        progress.step("fitting", 0.0)
        progress.step("fitting", 0.01)  # at once: not worth a message
        progress.step("fitting", 1.0)
    first, start, end, gone = shown.html
    assert "&lt;3&gt;" in first
    assert '<progress max="1" value="0.000">' in start
    assert '<progress max="1" value="1.000">' in end
    assert "fitting · 100%" in end
    assert gone == ""


def test_an_empty_graph_and_one_of_very_many_variables():
    run = three_variables()
    empty = replace(run, graph=replace(run.graph, edges=run.graph.edges.iloc[:0]))
    assert "No variable was found to drive another." in notebook_html(empty)
    many = notebook_html(many_variables(MOST_VARIABLES + 1, 1, 30))
    assert "<svg" not in many
    assert "sensor" in many


def test_a_graph_is_printed_as_a_short_table():
    graph = many_variables(20, max_lag=2, edges=30).graph
    lines = str(graph).splitlines()
    assert lines[0] == "27 links among 20 variables, delays up to 2 rows"
    assert lines[1].split()[:3] == ["source", "target", "lag"]
    assert lines[-2] == "... and 17 more in .edges"
    assert lines[-1] == "and 3 links of a variable to its own past"
    assert len(lines) == 14


def test_graph_data_effect_and_power_have_views_that_escape_names():
    run = three_variables(NASTY)
    effect = Effect(NASTY[0], NASTY[1], 1, 2.0, np.zeros(3), 0.5, 0.4, 0.6)
    table = pd.DataFrame({"from": [0.0], "to": [np.inf], "edges": [3], "recovered": [1.0]})
    power = Power(100, 1, 0, 1.0, 0.0, 0.0, table.assign(found=3, false=0.0))
    for view, told in ((run.graph, "3 links"), (run.data, "1,000 rows"), (effect, "0.4")):
        text = view._repr_html_()
        assert told in text
        assert "<script>" not in text
    assert power.sentence in power._repr_html_()

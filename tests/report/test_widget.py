"""The widget, drawn by a real browser as a notebook would draw it."""

import json
import sys
from types import SimpleNamespace

import pytest

import forecause as fc
from report_runs import NASTY, three_variables

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def drawn(browser):
    """The frame of a widget, drawn by its own code."""
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    page = browser.new_page()
    page.set_default_timeout(300_000)  # a busy machine is no failure

    def frame_of(widget):
        held = json.dumps({"page": widget.page, "height": widget.height}).replace("</", "<\\/")
        module = str(widget._esm).replace("export default", "const widget =")
        page.set_content(
            f"<div id=cell></div><script>{module}; const held = {held};"
            "widget.render({ model: { get: (key) => held[key] }, "
            "el: document.getElementById('cell') });</script>"
        )
        frame = page.frame_locator("iframe")
        frame.locator("#answers").wait_for()
        return frame

    yield frame_of
    page.close()


def test_the_widget_shows_the_page_and_answers_to_clicks(drawn):
    frame = drawn(three_variables().widget(height=700))
    assert frame.locator("h1").inner_text() == "3 links among 3 variables"
    assert frame.locator("#edge-count").inner_text() == "3"
    assert frame.locator("#edge-total").inner_text() == "of 3 links"
    frame.locator("#selfs").click()
    frame.locator("#edge-count", has_text="4").wait_for()
    frame.locator("#answers button").first.click()
    frame.locator("#panel-title").wait_for()
    assert frame.locator("#panel-title").inner_text() == "a raises b"


def test_a_graph_without_its_run_can_be_touched_too(drawn):
    edges = [("a", "b", 1, 0.9), ("b", "c", 2, 0.5), ("c", "c", 1, 0.4)]
    frame = drawn(fc.LaggedGraph.from_edges(["a", "b", "c"], 2, edges).widget())
    assert frame.locator("h1").inner_text() == "2 links among 3 variables"
    assert frame.locator("#verdict").count() == 0
    assert frame.locator("#table tbody tr").count() == 2
    frame.locator("#lags button").nth(1).click()
    frame.locator("#edge-count", has_text="1").wait_for()
    frame.locator("#answers button").nth(1).click()
    frame.locator("#panel-title").wait_for()
    assert frame.locator("#panel-sentence").inner_text() == "b moves c after 2 rows."


def test_the_graph_of_a_run_tells_how_much(drawn):
    graph = three_variables(NASTY).graph
    frame = drawn(graph.widget())
    frame.locator("#answers button").first.click()
    frame.locator("#panel-title").wait_for()
    assert NASTY[0] in frame.locator("#panel-sentence").inner_text()


def test_a_notebook_with_widgets_shows_the_page_by_itself(monkeypatch):
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    run = three_variables()
    assert set(run._repr_mimebundle_()) == {"text/plain", "text/html"}  # no kernel
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.delenv("FORECAUSE_VIEW", raising=False)
    shown = run._repr_mimebundle_()
    assert {WIDGET, "text/html"} <= set(shown)
    assert shown["text/plain"] == repr(run)
    assert "<svg" in shown["text/html"]
    monkeypatch.setenv("FORECAUSE_VIEW", "static")
    assert WIDGET not in run._repr_mimebundle_()

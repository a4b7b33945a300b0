"""The widget, drawn by a real browser as a notebook would draw it."""

import json

import pytest

from report_runs import three_variables


def test_the_widget_shows_the_page_and_answers_to_clicks(browser):
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    widget = three_variables().widget(height=700)
    held = json.dumps({"page": widget.page, "height": widget.height}).replace("</", "<\\/")
    module = str(widget._esm).replace("export default", "const widget =")
    page = browser.new_page()
    page.set_content(
        f"<div id=cell></div><script>{module}; const held = {held};"
        "widget.render({ model: { get: (key) => held[key] }, "
        "el: document.getElementById('cell') });</script>"
    )
    frame = page.frame_locator("iframe")
    frame.locator("#answers").wait_for()
    assert frame.locator("h1").inner_text() == "3 links among 3 variables"
    assert frame.locator("#edge-count").inner_text() == "3"
    assert frame.locator("#edge-total").inner_text() == "of 3 links"
    frame.locator("#selfs").click()
    frame.locator("#edge-count", has_text="4").wait_for()
    frame.locator("#answers button").first.click()
    frame.locator("#panel-title").wait_for()
    assert frame.locator("#panel-title").inner_text() == "a raises b"
    page.close()

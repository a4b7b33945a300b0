"""The page in a real browser: what is clicked, and what the page then says."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from forecause.graph.json_format import read_json
from graph_readers import from_dot, from_graphml, read_csv
from report_runs import NASTY, many_variables, three_variables, with_domains


@pytest.fixture(scope="module")
def run():
    return three_variables()


@pytest.fixture(scope="module")
def path(run, tmp_path_factory):
    return run.report(tmp_path_factory.mktemp("page") / "report.html", truth=run.graph)


@pytest.fixture
def page(open_page, path):
    return open_page(path, "#selfs=1")


def edge_count(page) -> int:
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 190)))")
    shown = int(page.inner_text("#edge-count"))
    assert page.locator("#table tbody tr").count() == shown
    return shown


def until(page, condition):
    """Wait for a condition; the page's own policy forbids the evaluation in playwright's wait."""
    for _ in range(6000):  # five minutes: a busy machine is no failure
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never came true: {condition}")


def slide(page, name, value):
    page.locator(name).evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }",
        value,
    )


def click_on(page, kind, key):
    page.locator("#canvas").scroll_into_view_if_needed()
    spot = page.evaluate(
        "(thing) => forecause.where(thing)",
        {"kind": kind, "key": json.dumps(key, ensure_ascii=False, separators=(",", ":"))}
        if kind == "edge"
        else {"kind": kind, "key": key},
    )
    page.mouse.click(*spot)
    page.wait_for_selector("#panel-title")


def column(page, number):
    return page.locator(f"#table tbody td:nth-child({number})").all_inner_texts()


def test_the_page_opens_with_its_verdict(page, path):
    assert path.stat().st_size < 1_500_000
    assert page.inner_text("h1") == "3 links among 3 variables"
    assert page.inner_text("#edge-total") == "of 4 links"
    assert page.inner_text("#selfs") == "links to itself (1)"
    assert "a raises b after 1 row" in page.inner_text("#answers")
    assert edge_count(page) == 4


def test_the_slider_thins_the_graph_with_a_live_count(page):
    slide(page, "#floor", 1000)
    assert edge_count(page) == 1
    assert column(page, 1) == ["a"]
    assert float(page.inner_text("#floor-value")) == pytest.approx(0.64, abs=1e-3)
    slide(page, "#floor", 0)
    assert edge_count(page) == 4


def test_filters_by_confidence_lag_and_self_links(page, run):
    confidence = sorted(run.graph.edges["confidence"])
    slide(page, "#sure", round(100 * (confidence[1] + confidence[2]) / 2))
    assert edge_count(page) == 2
    slide(page, "#sure", 0)
    page.click("#lags [data-lag='2']")
    assert edge_count(page) == 2
    assert set(column(page, 4)) == {"2"}
    page.click("#lags [data-lag='2']")
    page.click("#selfs")
    assert edge_count(page) == 3
    page.click("#extra")
    assert edge_count(page) == 3 + 9  # of 18 candidates 6 are links to itself


def test_links_to_itself_are_shown_when_asked_for(open_page, path):
    page = open_page(path)
    assert edge_count(page) == 3
    page.click("#selfs")
    assert edge_count(page) == 4


def test_clicking_an_arrow_shows_its_evidence(page, run):
    click_on(page, "edge", ["b", "c", 2])
    assert page.inner_text("#panel-title") == "b lowers c"
    text = page.inner_text("#panel")
    assert "b lowers c after 2 rows" in page.inner_text("#panel-sentence")
    for title in ("Strength per delay", "Response", "Influence over time", "The two series"):
        assert title in text
    assert "rank, mean ± sd" in text
    assert "in the truth" in text
    assert page.locator("#panel svg.chart").count() == 4
    assert page.locator("#panel svg.chart path").count() == 4  # response, influence, two series
    assert page.locator("#table tr[aria-selected=true]").count() == 1


def test_the_bars_of_an_arrow_lead_to_its_other_delays(page):
    click_on(page, "edge", ["a", "b", 1])
    assert "after 1 row" in page.inner_text("#panel")
    page.locator("#panel rect.bar").nth(1).click()
    until(page, "document.querySelector('#panel').innerText.includes('after 2 rows')")
    page.click("#panel .close")
    until(page, "document.querySelector('#panel').innerText.includes('The strongest links')")


def test_clicking_a_variable_shows_series_forecast_and_causes(page):
    click_on(page, "variable", "c")
    assert page.inner_text("#panel-title") == "c"
    text = page.inner_text("#panel")
    assert "2 causes, 1 effect." in text
    assert "Lost without each cause" in text
    assert page.locator("#causes button").all_inner_texts() == [
        "b 2 rows before",
        "c 1 row before",
    ]
    assert page.locator("#panel svg.chart polygon").count() == 1  # the interval
    page.locator("#causes button").first.click()
    until(page, "document.querySelector('#panel-title').innerText === 'b lowers c'")


def test_focus_keeps_only_causes_and_effects(page):
    click_on(page, "variable", "b")
    page.click("#focus-here")
    assert edge_count(page) == 3
    page.click("[data-reach=causes]")
    assert edge_count(page) == 2
    page.click("[data-reach=effects]")
    assert edge_count(page) == 1
    page.click("#unfocus")
    assert edge_count(page) == 4


def test_search_finds_a_variable_and_focuses_on_it(page):
    page.keyboard.press("/")
    page.keyboard.type("C")
    assert page.locator("#finds li").all_inner_texts() == ["c"]
    page.keyboard.press("Enter")
    page.wait_for_selector("#unfocus")
    assert page.inner_text("#unfocus") == "c ×"
    assert edge_count(page) == 2
    page.fill("#find", "nobody")
    assert page.inner_text("#finds") == "No variable is called so."


@pytest.mark.parametrize("shape", ["time", "heat"])
def test_the_other_pictures_answer_to_clicks_too(page, shape):
    page.click(f"#shapes [data-value={shape}]")
    until(page, f"forecause.state.shape === '{shape}'")
    click_on(page, "edge", ["a", "b", 2])
    assert page.inner_text("#panel-title") == "a raises b"
    assert "after 2 rows" in page.inner_text("#panel")


def test_the_heatmap_shows_candidates_that_were_not_chosen(page):
    page.click("#shapes [data-value=heat]")
    until(page, "forecause.state.shape === 'heat'")
    click_on(page, "edge", ["c", "a", 1])
    assert "not chosen" in page.inner_text("#panel-sentence")


def test_every_cell_of_the_heatmap_has_the_score_of_its_pair(page):
    scores = np.array(page.evaluate("forecause.data.graph.scores"))  # (target, source, lag)
    cells = np.array([page.evaluate(f"[...forecause.cells({lag})]") for lag in ("'all'", 1, 2)])
    expected = [scores.max(2), *np.moveaxis(scores, 2, 0)[:2]]
    np.testing.assert_array_equal(cells, [part.ravel() for part in expected])


def test_the_table_sorts_filters_and_opens_edges(page):
    page.click("[data-column=lag]")
    assert edge_count(page) == 4
    assert column(page, 4) == sorted(column(page, 4))
    page.click("[data-column=lag]")
    edge_count(page)
    assert column(page, 4) == sorted(column(page, 4), reverse=True)
    page.click("[data-column=target]")
    edge_count(page)
    assert column(page, 2) == ["b", "b", "c", "c"]
    page.fill("#filter", "lowers")
    until(page, "document.querySelectorAll('#table tbody tr').length === 1")
    page.click("#table tbody tr")
    page.wait_for_selector("#panel-sentence")
    assert "b lowers c" in page.inner_text("#panel-sentence")


def test_the_hash_keeps_the_state(page, open_page, path):
    page.click("#shapes [data-value=time]")
    page.click("#lags [data-lag='1']")
    page.click("#table tbody tr")
    until(page, "location.hash.includes('edge')")
    again = open_page(path, page.evaluate("location.hash"))
    assert edge_count(again) == 2
    assert again.evaluate("forecause.state.shape") == "time"
    assert again.inner_text("#panel-title") == "a raises b"
    nonsense = open_page(path, "#view=99&shape=cube&floor=x&focus=nobody&edge=%7B")
    assert edge_count(nonsense) == 3


def test_the_keyboard_steps_zooms_and_clears(page):
    page.focus("#canvas")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#panel-sentence")
    assert "a raises b after 1 row" in page.inner_text("#panel-sentence")
    page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('#panel-title')?.innerText === 'a'")
    page.keyboard.press("f")
    assert edge_count(page) == 2
    before = page.evaluate("String(forecause.where({kind: 'variable', key: 'b'}))")
    page.keyboard.press("+")
    until(page, f"String(forecause.where({{kind: 'variable', key: 'b'}})) !== '{before}'")
    page.keyboard.press("0")
    page.keyboard.press("Escape")
    assert edge_count(page) == 4


def test_variables_can_be_dragged(page):
    page.locator("#canvas").scroll_into_view_if_needed()
    x, y = page.evaluate("forecause.where({kind: 'variable', key: 'a'})")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 40, steps=4)
    page.mouse.up()
    until(page, f"forecause.where({{kind: 'variable', key: 'a'}})[0] > {x + 50}")
    moved = page.evaluate("forecause.where({kind: 'variable', key: 'a'})")
    assert moved == pytest.approx([x + 60, y + 40], abs=2)


def test_names_stay_text(open_page, tmp_path):
    path = with_domains(three_variables(NASTY)).report(tmp_path / "nasty.html")
    page = open_page(path, "#selfs=1")
    assert page.locator("script").count() == 2
    assert set(column(page, 1)) == set(NASTY)
    click_on(page, "variable", NASTY[0])
    assert page.inner_text("#panel-title") == NASTY[0]
    page.fill("#find", "שלום")
    assert page.locator("#finds li").all_inner_texts() == [NASTY[2]]
    page.keyboard.press("Enter")
    page.wait_for_selector("#unfocus")
    assert page.locator("#table tbody tr").count() > 0


def test_domains_have_tabs_and_what_changed_between_them(open_page, run, tmp_path):
    page = open_page(with_domains(run).report(tmp_path / "domains.html"), "#selfs=1")
    assert page.locator("#views button").all_inner_texts() == ["All data", "summer", "winter"]
    page.click("#views [data-value='1']")
    assert edge_count(page) == 3
    page.select_option("#change-from", "1")
    page.select_option("#change-to", "2")
    text = "3 edges in both; 1 appeared, 0 vanished, 0 changed direction, 0 stronger, 0 weaker."
    until(page, f"document.querySelector('#change-counts').innerText === '{text}'")
    page.select_option("#change-from", "0")
    page.wait_for_selector("[data-change=turned]")
    page.click("[data-change=turned]")
    until(page, "document.querySelector('#panel-title')?.innerText === 'a lowers b'")
    assert page.get_attribute("#views [data-value='2']", "aria-selected") == "true"


def test_two_runs_are_compared(open_page, run, tmp_path):
    edges = run.graph.edges
    fewer = replace(run, graph=replace(run.graph, edges=edges.drop([1, 2])))
    page = open_page(run.report(tmp_path / "both.html", compare=fewer))
    assert page.locator("#views button").all_inner_texts() == ["This run", "Other run"]
    assert "2 edges in both; 0 appeared, 2 vanished" in page.inner_text("#change-counts")
    assert page.locator("[data-change=vanished]").count() == 2


@pytest.mark.parametrize(
    ("name", "read"),
    [("CSV", read_csv), ("JSON", read_json), ("GraphML", from_graphml), ("DOT", from_dot)],
)
def test_filtered_edges_are_copied_in_formats_that_read_back(open_page, tmp_path, name, read):
    run = three_variables(NASTY)
    page = open_page(
        run.report(tmp_path / "r.html"), permissions=["clipboard-read", "clipboard-write"]
    )
    assert edge_count(page) == 3  # without the link to itself
    page.click(f"[data-format={name}]")
    page.wait_for_selector("#toast.on")
    assert page.inner_text("#toast") == f"3 edges copied as {name}"
    graph = read(page.evaluate("navigator.clipboard.readText()"))
    expected = run.graph.edges.query("source != target").reset_index(drop=True)
    assert graph.edges.to_dict("list") == expected.to_dict("list")


def test_dark_mode_follows_the_system_and_the_button(open_page, path):
    page = open_page(path, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.click("#theme")
    assert page.evaluate(background) != dark


def test_every_control_has_a_name(page):
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas, [role=img]")]
        .filter((node) => !(node.getAttribute("aria-label") || node.labels?.length
          || node.textContent.trim())).map((node) => node.outerHTML)"""
    )
    assert nameless == []
    assert "4 links among 3 variables" in page.get_attribute("#canvas", "aria-label")


def test_print_shows_content_and_hides_controls(page):
    page.emulate_media(media="print")
    assert not page.is_visible("#controls")
    assert page.is_visible("#canvas")
    assert page.is_visible("#table")


def test_a_run_without_edges_or_evidence_opens(open_page, run, tmp_path):
    bare = replace(run, graph=replace(run.graph, edges=run.graph.edges.iloc[:0]), evidence={})
    page = open_page(bare.report(tmp_path / "bare.html"))
    assert page.inner_text("h1") == "No link among 3 variables"
    assert edge_count(page) == 0
    for shape in ("time", "heat", "summary"):
        page.click(f"#shapes [data-value={shape}]")
    click_on(page, "variable", "a")
    assert "0 causes, 0 effects." in page.inner_text("#panel")


def test_edges_within_a_row_and_columns_of_text_are_shown(open_page, run, tmp_path):
    graph = run.graph
    instant = {"source": "a", "target": "c", "lag": 0, "score": 0.3, "mark": "o->"}
    edges = pd.concat([graph.edges, pd.DataFrame([instant])], ignore_index=True)
    path = replace(run, graph=replace(graph, edges=edges)).report(tmp_path / "r.html")
    page = open_page(path, "#selfs=1")
    assert edge_count(page) == 5
    page.click("#lags [data-lag='0']")
    assert edge_count(page) == 1
    assert "o->" in page.inner_text("#table tbody")
    for shape in ("heat", "time", "summary"):
        page.click(f"#shapes [data-value={shape}]")
        until(page, f"forecause.state.shape === '{shape}'")
        click_on(page, "edge", ["a", "c", 0])
        assert "after the same row" not in page.inner_text("#panel")
        assert "a moves c within the same row" in page.inner_text("#panel-sentence")


def test_a_hundred_variables_are_thinned_by_the_slider_step_by_step(open_page, tmp_path):
    """How long that takes is in docs/guides/reading-a-report.md."""
    page = open_page(many_variables().report(tmp_path / "large.html"), "#selfs=1")
    assert edge_count(page) == 300
    counts = page.evaluate(
        """async () => {
          const counts = [];
          for (let value = 0; value <= 900; value += 100) {
            document.querySelector("#floor").value = value;
            document.querySelector("#floor").dispatchEvent(new Event("input"));
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
            counts.push(forecause.arrows().length);
          }
          return counts;
        }"""
    )
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) > 5
    assert edge_count(page) < 60

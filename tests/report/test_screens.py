"""The page on a desk, on a phone, in the dark, by keyboard alone, and to a screen reader."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_browser import until

import forecause as fc
from forecause.diagnostics.finding import Finding
from forecause.report.page import graph_page
from report_runs import linear_run, many_variables, three_variables, with_domains

DESK, PHONE = (1400, 900), (380, 820)
AXE = Path(
    os.environ.get(
        "FORECAUSE_AXE", Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
    )
)
SERIOUS = ("serious", "critical")


def told(run):
    """The run with effects, grades and a grave doubt."""
    edges = run.graph.edges
    grades = ["firm", "likely", "tentative", "firm"][: len(edges)]
    edges = edges.assign(change=edges["effect"], change_low=edges["effect"] - 0.1)
    edges = edges.assign(change_high=edges["effect"] + 0.1, grade=grades)
    edges = edges.assign(decided_by="linear", doubtful=False)
    doubt = Finding("regimes", "What drives b changes over time", gravity="doubt")
    return replace(run, graph=replace(run.graph, edges=edges), findings=(doubt,))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return told(three_variables()).report(tmp_path_factory.mktemp("screens") / "report.html")


def box(page, selector):
    # in one step: the table may be drawn again between finding a node and measuring it
    rect = "(css) => document.querySelector(css).getBoundingClientRect().toJSON()"
    found = page.evaluate(rect, selector)
    return found["left"], found["top"], found["right"], found["bottom"]


def test_the_first_screen_is_the_answer(open_page, path):
    page = open_page(path, size=DESK)
    assert box(page, "#canvas")[3] <= DESK[1]
    assert box(page, "#answers li:nth-child(3)")[3] <= DESK[1]
    doubt = box(page, ".alerts.grave li")
    assert box(page, "h1")[3] <= doubt[1] < doubt[3] <= box(page, "#canvas")[1]
    assert box(page, "#verdict")[1] > DESK[1]
    first = page.inner_text("#answers li")
    assert "a raises b after 1 row" in first
    assert "firm" in first
    assert "per standard deviation of a" in first
    assert "By 0.80 [0.70, 0.90] per" in first


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_nothing_covers_a_variable(open_page, path, size):
    page = open_page(path, size=size)
    covers = [box(page, selector) for selector in ("#legend", ".zoom")]
    for name in "abc":
        x, y = page.evaluate("(name) => forecause.where({kind: 'variable', key: name})", name)
        for left, top, right, bottom in covers:
            assert not (left < x + 20 and x - 20 < right and top < y + 14 and y - 14 < bottom)


@pytest.fixture(scope="module")
def forty(tmp_path_factory):
    """Forty metrics with long names that differ little, seven links, and long doubts."""
    names = [f"cpu_percent_of_the_worker_host_{i:02d}_in_the_north" for i in range(40)]
    weight = np.zeros((40, 40, 2))
    for place in range(7):
        weight[place + 1, place, place % 2] = 0.5
    values = np.random.default_rng(0).normal(size=(300, 40))
    run = linear_run(weight, values, names)
    edges = run.graph.edges.assign(change=0.5, change_low=0.4, change_high=0.6, grade="firm")
    doubt = Finding("regimes", "What drives them changes over time " * 15, gravity="doubt")
    run = replace(run, graph=replace(run.graph, edges=edges), findings=(doubt,) * 3)
    return run.report(tmp_path_factory.mktemp("forty") / "report.html")


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_of_forty_metrics_the_linked_are_drawn_under_names_that_differ(open_page, forty, size):
    page = open_page(forty, size=size)
    labels = [box["label"] for box in page.evaluate("forecause.boxes()")]
    assert len(labels) == 8
    assert all(labels)
    assert len(set(labels)) == 8
    assert page.locator("#unlinked button").count() == 32
    assert "Not linked to another variable (32)" in page.inner_text("#unlinked summary")


def test_a_phone_shows_few_warnings_and_a_table_with_delay_and_effect(open_page, forty):
    page = open_page(forty, size=PHONE)
    left, top, right, bottom = box(page, ".alerts.grave")
    assert bottom - top <= PHONE[1] / 3
    for column in ("lag", "change"):
        left, _, right, _ = box(page, f"#table th button[data-column={column}]")
        assert 0 <= left < right <= PHONE[0]


def test_a_phone_shows_the_graph_first_and_never_scrolls_sideways(open_page, path):
    page = open_page(path, size=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert box(page, "#canvas")[1] < PHONE[1] / 2
    assert box(page, "#canvas")[3] <= PHONE[1]
    cut = page.evaluate(
        """() => [...document.querySelectorAll("#answers *, .quality td, h1, .lede, .points li")]
        .filter((node) => node.textContent && node.clientWidth
          && node.scrollWidth > node.clientWidth + 1)
        .map((node) => node.textContent)"""
    )
    assert cut == []


def test_an_arrow_has_the_colour_of_its_larger_effect_and_tells_the_other(open_page, tmp_path):
    run = three_variables()
    edges = run.graph.edges.copy()
    tiny = (edges["source"] == "a") & (edges["lag"] == 2)
    edges.loc[tiny, ["effect", "sign", "score"]] = [-0.02, -1, 0.0004]
    other = replace(run, graph=replace(run.graph, edges=edges))
    page = open_page(other.report(tmp_path / "r.html"))
    arrow = page.evaluate("forecause.arrows().find((one) => one.source === 'a')")
    assert (arrow["way"], arrow["mixed"], arrow["lags"]) == ("up", True, [1, 2])
    assert "the other way at a further delay" in page.inner_text("#legend")


def test_widths_and_lines_tell_strength_and_grade(open_page, path):
    page = open_page(path, "#selfs=1")
    arrows = {(one["source"], one["target"]): one for one in page.evaluate("forecause.arrows()")}
    wide, thin = arrows["a", "b"], arrows["c", "c"]
    # 0.8 against 0.3 sd: the wider line is about as many times wider as its effect is larger
    assert wide["width"] / thin["width"] == pytest.approx(0.8 / 0.3, rel=0.3)
    assert page.inner_text("#legend").count("score") == 2
    assert {"firm", "likely", "tentative"} <= set(page.inner_text("#legend").split())


def test_the_keyboard_alone_reaches_links_evidence_and_filters(open_page, path):
    page = open_page(path, size=DESK)
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
        if page.evaluate("document.activeElement.closest('#answers') !== null"):
            break
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#panel-title') !== null")
    assert page.inner_text("#panel-title") == "a raises b"
    page.keyboard.press("Escape")
    until(page, "document.querySelector('#answers') !== null")
    assert {"theme", "canvas", "find"} <= seen


def test_the_neighbourhood_of_a_variable_among_many(open_page, tmp_path):
    page = open_page(many_variables(60, 3, 150).report(tmp_path / "many.html"), size=DESK)
    labels = page.evaluate("forecause.boxes().filter((one) => one.label)")
    for at, one in enumerate(labels):
        for other in labels[at + 1 :]:
            apart = abs(one["x"] - other["x"]) >= (one["w"] + other["w"]) / 2
            assert apart or abs(one["y"] - other["y"]) >= (one["h"] + other["h"]) / 2
    page.fill("#find", "sensor 7")
    page.keyboard.press("Enter")
    page.wait_for_selector("#unfocus")
    near = page.evaluate("forecause.boxes().map((one) => one.label)")
    assert "sensor 7" in near
    assert len(near) < 30
    page.click("#unfocus")
    page.click("#shapes [data-value=heat]")
    until(page, "forecause.panels().length === 1")
    assert page.evaluate("forecause.panels()[0].cell") >= 10


@pytest.mark.parametrize(
    ("size", "scheme", "hash_"),
    [
        (DESK, "light", ""),
        (DESK, "dark", "#variable=b"),
        (PHONE, "light", '#edge=["a","b",1]'),
        (DESK, "light", "#shape=heat&view=1"),
    ],
)
def test_an_accessibility_checker_finds_nothing_serious(open_page, tmp_path, size, scheme, hash_):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed (npm install --prefix .venv/axe axe-core)")
    path = told(with_domains(three_variables())).report(tmp_path / "r.html")
    page = open_page(path, hash_, size=size, color_scheme=scheme, bypass_csp=True)
    page.add_script_tag(content=AXE.read_text())
    found = page.evaluate("() => axe.run()")
    serious = [
        (one["id"], [node["html"] for node in one["nodes"]][:3])
        for one in found["violations"]
        if one["impact"] in SERIOUS
    ]
    assert serious == []


def test_names_of_thirty_linked_variables_do_not_cover_each_other(open_page, tmp_path):
    run = many_variables(30, 3, 40)
    names = [f"service_{i:02d}_request_latency_seconds" for i in range(30)]
    edges = run.graph.edges.replace(dict(zip(run.graph.variables, names, strict=True)))
    graph = fc.LaggedGraph(names, 3, edges)
    (tmp_path / "graph.html").write_text(graph_page(graph), encoding="utf-8")
    page = open_page(tmp_path / "graph.html", size=DESK)
    shown = page.evaluate("forecause.boxes()")
    assert all(one["label"] for one in shown)
    for at, one in enumerate(shown):
        for other in shown[at + 1 :]:
            apart = abs(one["x"] - other["x"]) >= (one["w"] + other["w"]) / 2
            assert apart or abs(one["y"] - other["y"]) >= (one["h"] + other["h"]) / 2


def overlap(one, other):
    near_x = abs(one["x"] - other["x"]) < (one["w"] + other["w"]) / 2
    return near_x and abs(one["y"] - other["y"]) < (one["h"] + other["h"]) / 2


def test_a_phone_names_a_chosen_variable_and_all_that_it_is_linked_to(open_page, tmp_path):
    run = many_variables(100, 5, 300)
    between = run.graph.edges.query("source == 'sensor 33' or target == 'sensor 33'")
    linked = {*between["source"], *between["target"]}
    assert len(linked) > 4
    page = open_page(run.report(tmp_path / "many.html"), "#variable=sensor+33", size=PHONE)
    boxes = page.evaluate("forecause.boxes()")
    assert linked <= {one["label"] for one in boxes}
    named = [one for one in boxes if one["label"]]
    assert len(boxes) > len(named)  # the others are dots, which hide no letter
    for at, one in enumerate(named):
        assert not any(overlap(one, other) for other in named[at + 1 :])
    page.mouse.click(*page.evaluate("forecause.where({kind: 'variable', key: 'sensor 15'})"))
    until(page, "document.querySelector('#panel-title')?.textContent === 'sensor 15'")


def test_who_decided_an_edge_stands_within_the_table_as_it_opens(open_page, path):
    page = open_page(path, size=DESK)
    heads = page.locator("#table th button")
    columns = [heads.nth(i).get_attribute("data-column") for i in range(heads.count())]
    assert columns.index("decided_by") == columns.index("grade") + 1
    assert box(page, "#table th button[data-column=decided_by]")[2] <= DESK[0]
    assert "doubtful" not in columns

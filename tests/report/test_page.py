import base64
import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import forecause as fc
from forecause.cli import app
from forecause.report.page import BLOCK, SCRIPTS, STYLES, _file
from report_runs import NASTY, linear_run, three_variables, with_domains


@pytest.fixture(scope="module")
def found():
    return with_domains(three_variables(NASTY))


@pytest.fixture
def page(found, tmp_path):
    return found.report(tmp_path / "report.html")


def test_a_page_gives_graph_scores_and_domains_back(found, page):
    again = fc.load_graph(page)
    assert again == found.graph
    assert again.scores.equals(found.scores)
    assert fc.load_graph(str(page)).domains["summer"] == found.graph.domains["summer"]


def test_names_never_become_markup(page):
    text = page.read_text()
    assert NASTY[0] not in text
    assert "&lt;/script&gt;&lt;script&gt;alert" in text
    assert "<" not in BLOCK.search(text)[1]
    assert text.count("</script>") == 2


def test_a_page_refers_to_nothing_outside(page):
    text = page.read_text()
    assert "src=" not in text
    assert "<link" not in text
    assert "@import" not in text
    assert not re.search(r"url\(", text)
    # the only addresses are names of XML formats
    hosts = set(re.findall(r"https?://([^/\"'`\s]+)", text))
    assert hosts <= {"www.w3.org", "graphml.graphdrawing.org"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: "<p>hello</p>", "is not a Forecause report"),
        (lambda text: text.replace('{"format"', '{"format', 1), "is damaged"),
        (lambda text: text.replace("forecause.report/1", "other/9"), "not a report of the format"),
        (lambda text: text.replace('"forecause.graph/1"', '"x"'), "is damaged"),
        (lambda text: text.replace('"edges":', '"wedges":', 1), "is damaged"),
    ],
)
def test_a_damaged_page_is_a_clear_error(page, change, sentence):
    page.write_text(change(page.read_text()))
    with pytest.raises(fc.InputError, match=sentence):
        fc.load_graph(page)


def test_a_page_that_is_not_there(tmp_path):
    with pytest.raises(fc.InputError, match="Cannot read"):
        fc.load_graph(tmp_path / "nothing.html")
    with pytest.raises(fc.InputError, match="Cannot write"):
        three_variables().report(tmp_path / "no folder" / "report.html")


def test_the_verdict_is_there_without_javascript(page):
    text = page.read_text()
    assert "3 links among 3 variables" in text
    assert "No alert was raised." in text
    assert "Nothing important is missing." in text
    assert "forecause discover DATA --max-lag 2 --forecaster linear" in text


def test_alerts_and_forecast_quality_are_shown(tmp_path):
    from dataclasses import replace

    from forecause.diagnostics.finding import Finding

    run = three_variables()
    losses = run.losses.assign(mlp=[0.4, 0.6, 1.7], chosen="mlp")
    run = replace(run, losses=losses, findings=(Finding("odd", "Something <odd> is here"),))
    text = run.report(tmp_path / "r.html").read_text()
    assert "Something &lt;odd&gt; is here." in text
    assert "No alert was raised." not in text
    assert "−80.0 %" in text  # 0.4 against the naive 2.0
    assert "−20.0 %" in text  # 0.4 against the VAR's 0.5
    assert "+240.0 %" in text  # 1.7 against the VAR's 0.5


def test_a_saved_run_writes_its_page_again_without_the_data(tmp_path):
    folder = three_variables().save(tmp_path / "run")
    first = (folder / "report.html").read_text()
    (folder / "report.html").unlink()
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == 0
    assert (folder / "report.html").read_text() == first


def test_two_runs_and_a_truth_come_together_in_one_page(tmp_path):
    one = three_variables().save(tmp_path / "one")
    other = three_variables(seed=1).save(tmp_path / "other")
    out = tmp_path / "both.html"
    arguments = ["--compare", str(other), "--truth", str(one / "graph.json"), "--out", str(out)]
    assert CliRunner().invoke(app, ["report", str(one), *arguments]).exit_code == 0
    content = json.loads(BLOCK.search(out.read_text())[1])
    assert content["compare"]["graph"]["variables"] == ["a", "b", "c"]
    assert len(content["truth"]["edges"]) == 4
    assert content["compare"]["better"] == {"here": 0, "there": 0, "same": 3}


def test_a_truth_about_other_variables_is_refused(tmp_path):
    truth = three_variables(("a", "b", "d")).graph
    with pytest.raises(fc.InputError, match="c only in this run and d only in the true graph"):
        three_variables().report(tmp_path / "r.html", truth=truth)


def test_a_run_of_other_variables_is_not_compared(tmp_path):
    other = three_variables(("a", "b", "d"))
    with pytest.raises(fc.InputError, match="c only in this run and d only in the other run"):
        three_variables().report(tmp_path / "r.html", compare=other)
    assert not (tmp_path / "r.html").exists()


def test_a_run_that_kept_no_evidence_still_has_a_page(tmp_path):
    older = Path(__file__).parent.parent / "store" / "saved_runs" / "0.1-labels"
    folder = shutil.copytree(older, tmp_path / "run")
    (folder / "report.json").unlink()
    again = fc.load(folder)
    assert again.evidence == {}
    assert fc.load_graph(again.report(tmp_path / "r.html")) == again.graph


def test_dates_give_delays_in_time(tmp_path):
    time = np.datetime64("2024-01-01T00") + np.arange(300) * np.timedelta64(1, "h")
    values = np.random.default_rng(0).normal(size=(300, 2))
    run = linear_run([[[0.5], [0.0]], [[0.4], [0.0]]], values, ["a", "b"], time=time)
    text = run.report(tmp_path / "r.html").read_text()
    assert "every hour" in text
    assert "after 1 hour" in text


def test_every_part_of_the_page_is_small_enough_to_read():
    for name in (*SCRIPTS, *STYLES, "page.html.j2"):
        assert len(_file(name).splitlines()) <= 400


def test_the_policy_lets_in_this_style_and_script_alone(tmp_path):
    page = three_variables().report(tmp_path / "page.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert "unsafe" not in policy
    for name, pattern in (
        ("style", r"<style>(.*?)</style>"),
        ("script", r"<script>(.*?)</script>"),
    ):
        (text,) = re.findall(pattern, page, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert " style=" not in page

"""An explained event on the page: the answer, the picture and the causes."""

import re

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.report.event import HEIGHT, LINES, WIDTH, event_section

EVENT = slice(700, 740)


def shop():
    """load -> <db> -> errors; at row 700 something new enters at <db>."""
    noise = np.random.default_rng(0).normal(size=(800, 3))
    noise[EVENT, 1] += 5.0
    values = noise.copy()
    for row in range(1, 800):
        values[row, 1:] += 0.6 * values[row - 1, :2]
    return pd.DataFrame(values, columns=["load", "<db>", "errors"])


@pytest.fixture(scope="module")
def table():
    return shop()


@pytest.fixture(scope="module")
def run(table):
    return fc.discover(table[:700], max_lag=1, forecaster="linear", season="none")


@pytest.fixture(scope="module")
def told(run, table):
    return run.explain(target="errors", data=table[EVENT])


def test_the_section_says_what_the_explanation_says(told):
    section = event_section(told)
    first = section["causes"][0]
    assert first["variable"] == "<db>"
    assert first["path"] == "<db> -> errors"
    assert first["surprise"] == f"{told.causes['surprise'].iloc[0]:.1f}"
    shares = [float(row["share"].rstrip("%")) for row in section["causes"]]
    assert sum(shares) == pytest.approx(100, abs=2)
    assert section["notes"][-1] == told.caveat


def test_lines_stay_in_the_picture_and_break_where_cells_are_missing(run, table):
    event = table[EVENT].copy()
    event.iloc[10:13, 1] = np.nan
    picture = event_section(run.explain(data=event))["picture"]
    assert len(picture["lines"]) == min(LINES, 3)
    for line in picture["lines"]:
        numbers = np.array(re.findall(r"[\d.-]+", line["path"]), dtype=float).reshape(-1, 2)
        assert ((numbers >= 0) & (numbers <= [WIDTH, HEIGHT])).all()
    pieces = {line["name"]: line["path"].count("M") for line in picture["lines"]}
    assert pieces == {"load": 1, "<db>": 2, "errors": 1}


def test_the_page_has_the_event_and_names_are_escaped(run, told, tmp_path):
    page = run.report(tmp_path / "event.html", event=told).read_text(encoding="utf-8")
    assert 'id="event"' in page
    assert "&lt;db&gt; -&gt; errors" in page
    assert "<db>" not in page
    assert 'id="event"' not in run.report(tmp_path / "plain.html").read_text(encoding="utf-8")


def test_the_command_writes_the_page(table, tmp_path, command):
    calm, event = tmp_path / "calm.csv", tmp_path / "event.csv"
    table[:700].to_csv(calm, index=False)
    table[EVENT].to_csv(event, index=False)
    folder = fc.discover(calm, 1, forecaster="linear", season="none").save(tmp_path / "run")
    page = tmp_path / "event.html"
    code, _, _ = command("explain", folder, "--data", event, "--target", "errors", "--page", page)
    assert code == 0
    assert "Most likely it began at &lt;db&gt;" in page.read_text(encoding="utf-8")
    code, _, err = command("explain", folder, "--data", event, "--page", tmp_path / "no" / "x.html")
    assert (code, "no" in err) == (2, True)

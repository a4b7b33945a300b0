"""What the command prints: short, in whole names, within 80 columns."""

from dataclasses import replace
from pathlib import Path

import pytest

from forecause.report.terminal import show_discovery
from report_runs import many_variables, three_variables


@pytest.fixture
def shown(monkeypatch, capsys):
    """What a terminal of 80 columns shows of a run."""
    monkeypatch.setenv("COLUMNS", "80")

    def lines(run, **options) -> list[str]:
        show_discovery(run, Path("out"), **options)
        return capsys.readouterr().out.splitlines()

    return lines


@pytest.fixture(scope="module")
def wide():
    run = many_variables(30, max_lag=3, edges=60)
    return replace(run, data=replace(run.data, notes=tuple(f"Note {i}." for i in range(9))))


def test_a_run_is_told_in_a_headline_five_sentences_and_ten_links(shown, wide):
    lines = shown(wide)
    assert lines[0] == "59 links among 30 variables"
    assert sum(line.startswith("- ") for line in lines) == 5
    assert "... and 49 more in edges.csv" in lines
    assert "1 link of a variable to its own past: edges.csv" in lines
    assert "8 more notes on the page, or with -v." in lines
    assert lines[-1] == "report: out/report.html"
    assert max(map(len, lines)) <= 80


def test_everything_is_told_if_asked(shown, wide):
    text = "\n".join(shown(wide, verbose=True))
    assert all(f"Note {i}." in text for i in range(9))
    assert "held-out squared error" in text


def test_no_name_is_split_or_cut(shown):
    names = ["error rate of the checkout", "request_queue_depth_frontend_total", "c"]
    run = three_variables(names)
    lines = shown(run)
    for name in names:
        assert any(name in line for line in lines), name
    assert max(map(len, lines)) <= 80

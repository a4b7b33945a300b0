"""What the command prints: short, in whole names, within 80 columns."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forecause.data.findings import Change
from forecause.data.panel import Panel
from forecause.diagnostics.finding import Finding
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


def test_codes_for_missing_come_first_and_columns_left_out_are_one_sentence(shown, wide):
    code = Finding("odd-values", "Column 'a' holds -9999 in 3 rows")
    changes = [Change("left out", f"Column {name!r} is constant.", column=name) for name in "xyzwv"]
    panel = Panel.from_arrays([np.eye(3)], list("abc")).with_changes(changes)
    data = replace(wide.data, notes=(*panel.notes, "Another note."))
    run = replace(wide, findings=(*wide.findings, code), panel=panel, data=data)
    lines = shown(run)
    assert lines[2] == "- note: Column 'a' holds -9999 in 3 rows."
    text = " ".join("\n".join(lines).split())
    assert "5 columns were left out: 'x', 'y', 'z' and 2 more; -v says why." in text
    assert "is constant" not in text
    assert "Column 'v' is constant." in "\n".join(shown(run, verbose=True))

"""The suite speed: whole programs give the graphs of the library, and aims are judged by ratios."""

import os

import pytest

from forecause import discover, simulate
from forecause_bench import speed
from forecause_bench.aggregate import Results
from forecause_bench.rivals import run_baseline
from forecause_bench.suite import Aim, Cell, Suite
from forecause_bench.verdict import verdict
from made_results import answer, result

CELL = {"cell": "plain", "rows": 50}


@pytest.fixture(scope="module")
def system():
    return simulate(nodes=3, max_lag=1, rows=400, seed=1, in_degree=1.5)


def edges(graph):
    rows = graph.edges
    return set(zip(rows["source"], rows["target"], rows["lag"], strict=True))


def test_the_command_beside_busy_cores_finds_what_the_library_finds(system, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    (found,) = speed.command_beside_busy_cores(system.panel, 1, 0)
    assert edges(found.graph) == edges(discover(system.panel, 1, forecaster="linear").graph)


def test_the_script_finds_what_pcmci_plus_finds(system):
    pytest.importorskip("tigramite")
    (found,) = speed.tigramite_script(system.panel, 1, 0)
    assert edges(found.graph) == edges(run_baseline("pcmci+", system.panel, 1, 0))


@pytest.mark.parametrize(("seconds", "outcome"), [(3.0, "keeps"), (3.2, "misses")])
def test_an_aim_is_kept_if_the_ratio_of_times_is_small_enough(seconds, outcome):
    suite = Suite(
        "made",
        "Made by hand",
        (Cell("plain", {"nodes": 5, "max_lag": 2}),),
        methods=("forecause", "pcmci+"),
        rows=(50,),
        seeds=1,
        aims=(Aim("plain", "forecause", 1.5, "pcmci+"), Aim("left out", "linear", 1.0, "pcmci+")),
    )
    times = {"forecause": seconds, "pcmci+": 2.0}
    made = [result(m, 0, answer(0.5), **CELL, seconds=s) for m, s in times.items()]
    (line,) = [line for line in verdict(Results(suite, made)) if " the aim " in line]
    assert line.startswith(f"{outcome} the aim on plain: Forecause takes {seconds / 2:.2f} times")

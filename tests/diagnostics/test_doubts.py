"""When no error rate can be promised, the run says so first."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.config import Config
from forecause.data.panel import Panel
from forecause.data.seasons.course import time_taken_out
from forecause.data.windows import Windows
from forecause.diagnostics.doubts import find_doubts
from forecause.errors import ForecauseWarning


def codes(values: np.ndarray, max_lag: int = 3) -> set[str]:
    return {doubt.code for doubt in find_doubts(Windows.of(Panel.of(values), max_lag))}


def sound(seed: int = 0, rows: int = 800) -> np.ndarray:
    return fc.simulate(nodes=4, max_lag=3, rows=rows, seed=seed).values


@pytest.mark.parametrize("seed", range(6))
def test_a_sound_system_raises_none(seed: int) -> None:
    assert codes(sound(seed)) == set()


def test_few_rows_are_told() -> None:
    assert "few-rows" in codes(sound(rows=36))


def test_where_a_screen_leaves_few_inputs_few_rows_are_enough() -> None:
    values = np.random.default_rng(0).normal(size=(1200, 1050))
    assert "few-rows" not in codes(values, max_lag=1)
    assert "few-rows" in codes(values[:, :500], max_lag=1)


def test_near_copies_are_told_and_named() -> None:
    values, rng = sound(), np.random.default_rng(0)
    copy = values[:, :1] + 0.05 * values[:, :1].std() * rng.normal(size=(len(values), 1))
    found = find_doubts(Windows.of(Panel.of(np.hstack([values, copy])), 3))
    (doubt,) = [one for one in found if one.code == "near-duplicates"]
    assert len(doubt.variables) == 2


def test_walks_that_happen_to_agree_are_no_copies() -> None:
    rng = np.random.default_rng(0)
    walk = rng.normal(size=(800, 1)).cumsum(0)
    near = walk + 0.3 * rng.normal(size=(800, 2))
    assert "near-duplicates" not in codes(near)


def test_memory_beyond_the_window_names_the_lag() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(900, 3))
    values[8:, 1] += 0.6 * values[:-8, 0]
    values[8:, 0] += 0.6 * values[:-8, 0]
    found = find_doubts(Windows.of(Panel.of(values), 3))
    (doubt,) = [one for one in found if one.code == "short-window"]
    assert "--max-lag 8" in doubt.sentence


def test_a_cycle_that_drifts_is_told() -> None:
    rng = np.random.default_rng(2)
    phase = 2 * np.pi * np.cumsum(1 / (20 + 8 * np.linspace(0, 1, 1000)))
    values = rng.normal(size=(1000, 3)) + 3 * np.sin(phase[:, None] + np.arange(3))
    assert "cycle" in codes(values)


def test_mechanisms_that_change_are_told_but_not_of_known_domains() -> None:
    halves = [fc.simulate(nodes=3, max_lag=2, rows=500, seed=s).values for s in (1, 2)]
    panel = Panel.of(np.vstack(halves))
    assert "changing-effects" in {d.code for d in find_doubts(Windows.of(panel, 2))}
    known = panel.with_domain(np.repeat([0, 1], 500), ("early", "late"))
    assert "changing-effects" not in {d.code for d in find_doubts(Windows.of(known, 2))}


@pytest.mark.parametrize("curved", [True, False])
def test_a_season_that_passes_through_a_curve_is_told_and_one_that_is_added_on_is_not(
    curved: bool,
) -> None:
    rng, rows = np.random.default_rng(1), 900
    heat, demand = np.zeros(rows), np.zeros(rows)
    for row in range(1, rows):
        heat[row] = 0.7 * heat[row - 1] + rng.normal()
    heat += 3 * np.sin(2 * np.pi * np.arange(rows) / 24)
    demand[1:] = heat[:-1] ** 2 / 3 if curved else 2 * heat[:-1]
    demand += rng.normal(size=rows)
    panel = time_taken_out(Panel.of(np.column_stack([heat, demand])), Config.of())
    assert panel.course is not None
    told = [
        doubt for doubt in find_doubts(Windows.of(panel, 2)) if doubt.code == "changing-effects"
    ]
    assert len(told) == curved
    assert not told or "with a cycle of 24 rows" in told[0].sentence


def test_a_doubted_run_warns_keeps_its_doubts_and_has_only_tentative_edges(
    tmp_path: object,
) -> None:
    values, rng = sound(), np.random.default_rng(0)
    table = pd.DataFrame(values, columns=list("abcd"))
    table["e"] = table["a"] + 0.05 * table["a"].std() * rng.normal(size=len(table))
    with pytest.warns(ForecauseWarning, match="nearly the same"):
        run = fc.discover(table, max_lag=3, forecaster="linear")
    assert run.doubts
    assert set(run.graph.edges["grade"]) == {"tentative"}
    assert len({alert.code for alert in run.alerts}) == len(run.alerts)
    run.save(f"{tmp_path}/run")
    again = fc.load(f"{tmp_path}/run")
    assert again.doubts == run.doubts
    assert list(again.graph.edges["grade"]) == list(run.graph.edges["grade"])
    assert "No error rate can be promised" in run.report(f"{tmp_path}/page.html").read_text()


def test_a_sound_run_is_silent_and_its_clear_edges_are_firm() -> None:
    table = pd.DataFrame(sound(), columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = fc.discover(table, max_lag=3, forecaster="linear")
    assert run.doubts == ()
    assert "firm" in set(run.graph.edges["grade"])

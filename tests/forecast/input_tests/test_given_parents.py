"""Claims about the tests given plausible parents and about the summary tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import forecause as fc
import forecause.forecast.input_tests.given_parents as tests
from forecause.config.thresholds import Thresholds, using
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.edges import summary_tests
from forecause.edges.summary_tests import SummaryTests
from forecause.regression.robust import Wald

NAMES = [f"X{i}" for i in range(12)]


def _panel(rows: int = 400, seed: int = 3) -> Panel:
    """X0 drives X1 by a line at lag 1 and X2 by a square at lag 2."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 3))
    x[1:, 1] += 0.5 * x[:-1, 0]
    x[2:, 2] += 0.6 * x[:-2, 0] ** 2
    return Panel.from_arrays([x], ["X0", "X1", "X2"])


def conditional_tests(panel: Panel, max_lag: int) -> tests.ConditionalTests:
    windows = Windows.of(panel, max_lag)
    allowed = np.ones((windows.shape[1], windows.inputs), dtype=bool)
    return tests.ConditionalTests.of(windows, allowed)


@pytest.fixture(scope="module")
def found() -> tests.ConditionalTests:
    return conditional_tests(_panel(), 2)


def test_a_group_is_tested_as_residual_sums_of_squares_would(found: tests.ConditionalTests) -> None:
    given, tested = np.array([0, 1, 5]), np.array([9, 10])
    y, z = found.outcome(1), found.features

    def left(columns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
        return float(np.linalg.lstsq(z[:, columns], y)[1][0])

    both = np.concatenate([given, tested])
    freedom = len(y) - len(both)
    f = (left(given) - left(both)) / 2 / (left(both) / freedom)
    p_value = found.tests_of(1).group_p_values(given, [tested])[0]
    assert p_value == pytest.approx(stats.f.sf(f, 2, freedom), rel=1e-5)


def test_errors_for_unequal_variance_are_those_of_the_wald_test(
    found: tests.ConditionalTests,
) -> None:
    wald = Wald.of(found.sample, found.design, [1]).p_values[0]
    group = found.design.groups[0] + 1
    given = np.setdiff1d(np.arange(found.design.width + 1), group)
    with using(Thresholds.of({"tests": {"unequal_spread": -1e9}})):
        p_value = tests.robust_p_value(found.features, found.outcome(1), given, group)
    assert p_value == pytest.approx(wald[0], rel=1e-4)


def test_lines_and_bends_are_found_at_their_lags(found: tests.ConditionalTests) -> None:
    p_values = found.inputs.by_lag(found.p_values())
    assert {tuple(map(int, place)) for place in np.argwhere(p_values < 1e-6)} == {
        (1, 0, 0),
        (2, 0, 1),
    }
    assert found.models[2].bent[0]  # lag 2 of X0 is the first input and enters as a spline


def test_a_summary_edge_is_found_whatever_its_lag(found: tests.ConditionalTests) -> None:
    p_values = SummaryTests(found).joint_p_values()
    assert {tuple(map(int, place)) for place in np.argwhere(p_values < 1e-6)} == {(1, 0), (2, 0)}


def test_what_is_not_allowed_is_neither_tested_nor_given() -> None:
    free = conditional_tests(_panel(), 2)
    free.allowed[1] = False
    p_values = free.p_values()
    assert np.isnan(p_values[1]).all()
    assert np.isfinite(p_values[[0, 2]]).all()


def test_equal_p_values_combine_to_themselves() -> None:
    p_values = np.array([[1e-200, 1e-9, 0.02, 0.7]] * 2)
    combined = tests.cauchy_combination(p_values, np.array([0.9, 0.1]))
    np.testing.assert_allclose(combined, p_values[0], rtol=1e-6)


def test_no_double_precision_is_lost(found: tests.ConditionalTests) -> None:
    assert found.features.dtype == np.float64


def test_a_run_tells_which_variable_drives_which_at_all(tmp_path) -> None:
    run = fc.discover(_panel(), max_lag=2, forecaster="additive")
    assert run.summary is not None
    pairs = run.summary[run.summary["q"] <= 1e-6]
    assert set(zip(pairs["source"], pairs["target"], strict=True)) == {("X0", "X1"), ("X0", "X2")}
    loaded = fc.LaggedGraph.from_json(run.graph.to_json(tmp_path / "graph.json"))
    pd.testing.assert_frame_equal(loaded.summary, run.summary)
    counted = fc.discover(_panel(), max_lag=2, forecaster="additive", select="top-k")
    assert counted.summary is None


def test_of_very_many_pairs_the_hopeless_ones_are_not_listed(monkeypatch) -> None:
    panel = Panel.from_arrays([np.random.default_rng(2).normal(size=(300, 12))], NAMES)
    windows = Windows.of(panel, 10)  # 120 inputs: no joint tests
    p_values = xr.DataArray(
        np.random.default_rng(3).uniform(size=(12, 12, 10)),
        dims=("target", "source", "lag"),
        coords={"target": NAMES, "source": NAMES, "lag": range(1, 11)},
    )
    p_values[0, 1] = 1e-9
    every = xr.ones_like(p_values, dtype=bool)
    whole = summary_tests.summary_edges(windows, p_values, every)
    assert len(whole) == 144
    monkeypatch.setattr(summary_tests, "MOST_PAIRS", 100)
    listed = summary_tests.summary_edges(windows, p_values, every)
    pd.testing.assert_frame_equal(listed, whole[whole["q"] <= 0.5].reset_index(drop=True))
    assert 1 <= len(listed) < 144

"""The certainty of an edge: its own evidence and how it survives other analyses."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.edges.certainty import KNOT_QUANTILES, _smaller, certainty, gone_in_calm, grade
from forecause.graph.axes import labelled_together
from forecause.regression.robust import wald_p_values
from forecause.regression.splines import curve_features


def windows(rows: int = 700, fades: bool = False) -> Windows:
    """a drives b at lag 1, in the first half alone if it fades."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, 2))
    size = np.where(np.arange(rows - 1) < rows / 2, 0.6, 0.0) if fades else 0.3
    values[1:, 1] += size * values[:-1, 0]
    return Windows.of(Panel.of(values), 2)


def q_values(of: Windows, value: float) -> xr.DataArray:
    named = {"q": np.full((2, 2, 2), value)}
    return labelled_together(named, of.panel.variables, {})["q"]


def test_tests_of_single_columns_are_those_of_statsmodels() -> None:
    regression = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(3)
    design = np.column_stack([rng.normal(size=(200, 4)), np.ones(200)])
    target = design[:, 0] * 0.3 + rng.normal(size=200) * (1 + np.abs(design[:, 1]))
    fitted = regression.OLS(target, design).fit(cov_type="HC3", use_t=True)
    found = wald_p_values(design, target[:, None], 4, 1)[0]
    np.testing.assert_allclose(found, fitted.pvalues[:4], rtol=1e-6)
    joint = fitted.f_test(np.eye(5)[:2]).pvalue
    assert wald_p_values(design, target[:, None], 2, 2)[0, 0] == pytest.approx(joint, rel=1e-5)


def test_curves_are_straight_beyond_their_outer_knots() -> None:
    past = np.linspace(-10, 10, 400)[:, None, None]
    features = curve_features(past, KNOT_QUANTILES)[:, 0, 0]  # (window, feature)
    for feature in features.T:
        np.testing.assert_allclose(np.diff(feature[385:], 2), 0, atol=1e-8)


def test_an_edge_that_is_there_is_surer_than_one_that_is_not() -> None:
    own = windows()
    sure = certainty(own, q_values(own, 0.01))
    assert float(sure[1, 0, 0]) > 0.9
    assert float(sure[0, 1, 1]) < 0.5


def test_what_holds_in_one_half_only_is_less_sure() -> None:
    steady, fading = windows(), windows(fades=True)
    q = q_values(steady, 1e-4)
    assert float(certainty(fading, q)[1, 0, 0]) < float(certainty(steady, q)[1, 0, 0])


def test_a_smaller_q_value_is_surer_and_none_is_unknown() -> None:
    own = windows()
    assert float(certainty(own, q_values(own, 1e-6))[0, 1, 1]) > float(
        certainty(own, q_values(own, 0.04))[0, 1, 1]
    )
    assert np.isnan(certainty(own, q_values(own, np.nan))).all()


def test_grades_are_words_for_the_certainty() -> None:
    assert [grade(sure) for sure in (0.99, 0.9, 0.5, float("nan"))] == [
        *("firm", "likely", "tentative", "tentative")
    ]


def test_the_smaller_of_two_p_values_counts_twice() -> None:
    line, curve = np.array([0.01, 0.2, 0.9]), np.array([0.03, 0.1, 0.8])
    np.testing.assert_allclose(_smaller(line, curve), [0.02, 0.2, 1.0])
    assert _smaller(line, line) is line  # where curves were not tried, there is one test


def test_a_link_that_only_large_values_show_is_not_firm() -> None:
    rng = np.random.default_rng(0)
    values, event = rng.normal(size=(700, 2)), np.where(rng.uniform(size=700) < 0.03, 6.0, 0.0)
    values[:, 0] += event
    values[1:, 1] += event[:-1]
    rare, steady = Windows.of(Panel.of(values), 2), windows()
    assert grade(float(certainty(steady, q_values(steady, 1e-6))[1, 0, 0])) == "firm"
    assert grade(float(certainty(rare, q_values(rare, 1e-6))[1, 0, 0])) == "likely"
    assert gone_in_calm(rare)[1, 0].tolist() == [True, False]
    assert not gone_in_calm(steady).any()

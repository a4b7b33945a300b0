"""Least squares from moments against statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm

from forecause.data import Panel
from forecause.errors import InputError
from forecause.refine.candidates import LaggedProducts
from forecause_bench.rivals.autoregression import Design, edge_tests, full_regression, lags_of


@pytest.fixture(scope="module")
def panel(make_panel):
    return make_panel(rows=(200, 100))


@pytest.fixture(scope="module")
def oracle(panel):
    """statsmodels' fit of the last variable on all lags, with an intercept."""
    made = Design.of(panel, 2)
    inputs = sm.add_constant(made.past.reshape(len(made.past), -1))
    return sm.OLS(made.target[:, 3], inputs).fit()


def test_coefficients_t_and_p_are_those_of_statsmodels(panel, oracle):
    fit = full_regression(LaggedProducts.of(panel, 2))
    np.testing.assert_allclose(fit.coefficients[:, 3], oracle.params[1:], atol=1e-12)
    np.testing.assert_allclose(fit.t[:, 3], oracle.tvalues[1:], rtol=1e-9)
    np.testing.assert_allclose(fit.p[:, 3], oracle.pvalues[1:], rtol=1e-7)


@pytest.mark.parametrize("source", range(4))
def test_the_test_of_a_group_is_the_f_test_of_statsmodels(source, panel, oracle):
    moments = LaggedProducts.of(panel, 2)
    group = lags_of(moments, source) - moments.variables
    restriction = np.eye(len(oracle.params))[group + 1]
    expected = oracle.f_test(restriction).pvalue
    found = full_regression(moments).group_p(group)[3]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_edges_are_read_by_target_source_and_lag(make_panel):
    moments = LaggedProducts.of(make_panel({("a", "b", 2): 0.9}, "ab", rows=(500,)), 2)
    strength = np.abs(edge_tests(moments, np.ones((2, 2, 2), dtype=bool))[0])
    assert np.unravel_index(strength.argmax(), strength.shape) == (1, 0, 1)


def test_inputs_that_are_sums_of_others_are_refused(make_panel):
    values = make_panel(rows=(100,)).values
    total = values.sum(1, keepdims=True)
    panel = Panel.from_arrays([np.hstack([values, total])], list("abcde"))
    with pytest.raises(InputError, match="sums or copies"):
        full_regression(LaggedProducts.of(panel, 2))


def test_more_inputs_than_windows_are_refused(make_panel):
    moments = LaggedProducts.of(make_panel(rows=(36,)), 10)
    with pytest.raises(InputError, match="40 lagged inputs needs more than 41 windows, found 26"):
        full_regression(moments)


def test_lag_one_comes_first_and_no_window_crosses_series(make_panel):
    panel = make_panel(rows=(40, 30))
    made = Design.of(panel, 3)
    scaled = (panel.values - panel.values.mean(0)) / panel.values.std(0)
    assert made.past.shape == (37 + 27, 3, 4)
    assert made.past.dtype == np.float64
    np.testing.assert_allclose(made.target[0], scaled[3])
    np.testing.assert_allclose(made.past[0, 0], scaled[2])
    np.testing.assert_allclose(made.past[0, 2], scaled[0])
    np.testing.assert_allclose(made.target[37], scaled[43])


def test_too_few_rows_are_refused(make_panel):
    with pytest.raises(InputError, match="Too few rows"):
        Design.of(make_panel(rows=(15,)), 2)

"""Least squares from moments against statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm

from forecause.data import Panel
from forecause.errors import InputError
from forecause.regression.design import Design, Moments
from forecause.regression.ols import by_edge, full_regression, lags_of


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
    fit = full_regression(Moments.of(panel, 2))
    np.testing.assert_allclose(fit.coefficients[:, 3], oracle.params[1:], atol=1e-12)
    np.testing.assert_allclose(fit.t[:, 3], oracle.tvalues[1:], rtol=1e-9)
    np.testing.assert_allclose(fit.p[:, 3], oracle.pvalues[1:], rtol=1e-7)


@pytest.mark.parametrize("source", range(4))
def test_the_test_of_a_group_is_the_f_test_of_statsmodels(source, panel, oracle):
    moments = Moments.of(panel, 2)
    group = lags_of(moments, source) - moments.variables
    restriction = np.eye(len(oracle.params))[group + 1]
    expected = oracle.f_test(restriction).pvalue
    found = full_regression(moments).group_p(group)[3]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_edges_are_read_by_target_source_and_lag(make_panel):
    moments = Moments.of(make_panel({("a", "b", 2): 0.9}, "ab", rows=(500,)), 2)
    strength = np.abs(by_edge(moments, full_regression(moments).t))
    assert np.unravel_index(strength.argmax(), strength.shape) == (1, 0, 1)


def test_inputs_that_are_sums_of_others_are_refused(make_panel):
    values = make_panel(rows=(100,)).values
    total = values.sum(1, keepdims=True)
    panel = Panel.from_arrays([np.hstack([values, total])], list("abcde"))
    with pytest.raises(InputError, match="sums or copies"):
        full_regression(Moments.of(panel, 2))


def test_more_inputs_than_windows_are_refused(make_panel):
    moments = Moments.of(make_panel(rows=(36,)), 10)
    with pytest.raises(InputError, match="40 lagged inputs needs more than 41 windows, found 26"):
        full_regression(moments)

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from forecause.forecast.input_tests.kept import variance_p_values
from systems import chain, windows_of


def changing_spread(rows, spread, seed=0):
    """v1 follows v0 in the mean (lag 1) and `spread` of v2 in its standard deviation (lag 2)."""
    x = np.random.default_rng(seed).normal(size=(rows, 3))
    for t in range(2, rows):
        x[t, 1] = 0.8 * x[t - 1, 0] + spread(x[t - 2, 2]) * x[t, 1]
    return x


@pytest.mark.parametrize("rows", [400, 3000])
@pytest.mark.parametrize(
    "spread", [lambda z: np.exp(0.5 * z), lambda z: 0.5 + np.abs(z)], ids=["monotone", "even"]
)
def test_it_finds_the_parent_of_the_variance_and_no_other(rows, spread):
    found = variance_p_values(windows_of(changing_spread(rows, spread), 2))
    assert found[1, 2, 1] < 1e-5
    assert int((found < 1e-3).sum()) == 1  # the parent of the mean has no part in it


def test_without_an_effect_on_the_variance_p_values_are_uniform():
    found = [variance_p_values(windows_of(chain(700, seed), 2)) for seed in range(20)]
    assert stats.kstest(np.concatenate(found).ravel(), "uniform").pvalue > 0.01


def test_with_few_windows_it_is_the_t_test_of_statsmodels():
    values = changing_spread(40, lambda z: np.exp(z))
    windows = windows_of(values, max_lag=2)
    found = variance_p_values(windows)
    window = np.concatenate([b.rows.astype(np.float64) for b in windows.batches(100)])
    design = sm.add_constant(window[:, :-1].reshape(len(window), -1))
    mean = sm.OLS(window[:, -1, 1], design).fit()
    studentised = mean.resid**2 / (1 - mean.get_influence().hat_matrix_diag)
    spread = sm.OLS(np.log(studentised + 1e-4 * np.mean(mean.resid**2)), design).fit()
    by_step = spread.pvalues[1:].reshape(2, 3)  # (step, source), oldest first
    np.testing.assert_allclose(found[1], by_step[::-1].T, rtol=1e-4)

import numpy as np
import statsmodels.api as sm

from forecause.data import Panel, Windows
from forecause.forecast.significance import edge_p_values


def test_straight_tests_are_the_t_tests_of_a_regression_with_lags_in_order(chain_windows):
    p_values = edge_p_values(chain_windows, [False] * 3)
    window = chain_windows.draw(np.arange(len(chain_windows))).double().numpy()
    lag1, lag2, now = window[:, 1], window[:, 0], window[:, 2]
    design = sm.add_constant(np.column_stack([lag1, lag2]))
    for target in range(3):
        reference = sm.OLS(now[:, target], design).fit().pvalues[1:].reshape(2, 3)
        for lag in (1, 2):
            found = p_values[target].sel(lag=lag).values
            np.testing.assert_allclose(found, reference[lag - 1], rtol=1e-3, atol=1e-300)


def test_a_parabola_is_seen_by_the_curved_test_alone():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    x[1:, 1] += x[:-1, 0] ** 2
    windows = Windows.of(Panel.from_arrays([x], ["a", "b"]), 1)
    straight, curved = edge_p_values(windows, [False] * 2), edge_p_values(windows, [True] * 2)
    edge = {"target": "b", "source": "a", "lag": 1}
    assert float(straight.sel(edge)) > 1e-4
    assert float(curved.sel(edge)) < 1e-50


def test_p_values_of_unrelated_variables_are_uniform():
    found = []
    for seed in range(20):
        x = np.random.default_rng(seed).normal(size=(600, 4))
        windows = Windows.of(Panel.from_arrays([x], list("abcd")), 2)
        found.append(edge_p_values(windows, [True, True, False, False]).values)
    shares = np.array([np.mean(np.array(found) < level) for level in (0.05, 0.2, 0.5)])
    np.testing.assert_allclose(shares, (0.05, 0.2, 0.5), atol=0.05)


def test_with_few_windows_the_straight_test_stands_in_for_the_curved_one():
    x = np.random.default_rng(0).normal(size=(100, 4))
    windows = Windows.of(Panel.from_arrays([x], list("abcd")), 2)
    assert edge_p_values(windows, [True] * 4).equals(edge_p_values(windows, [False] * 4))

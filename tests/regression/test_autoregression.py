import numpy as np
from statsmodels.tsa.api import VAR

from forecause.regression.autoregression import Autoregression


def values(rows=400, seed=0):
    """Three variables of order 3, far from zero and of different size."""
    rng = np.random.default_rng(seed)
    latest = np.array([[0.5, 0.2, 0.0], [0.0, 0.4, 0.3], [0.1, 0.0, 0.6]])
    found = np.zeros((rows, 3))
    for t in range(3, rows):
        found[t] = latest @ found[t - 1] - 0.3 * found[t - 3] + rng.normal(size=3)
    return found * [1.0, 100.0, 0.01] + [1000.0, 0.0, 5.0]


def test_order_and_forecasts_are_those_of_statsmodels():
    known = values()
    expected = VAR(known).fit(maxlags=8, ic="aic")
    found = Autoregression.fitted([known], 8)
    assert len(found.weights) == expected.k_ar == 3
    ahead = expected.forecast(known[-3:], 10)
    np.testing.assert_allclose(found.path(known, 10), ahead, rtol=1e-6)


def test_no_row_reaches_over_a_gap_or_a_missing_value():
    known = values()
    gap = [known[:200], known[203:]]
    missing = known.copy()
    missing[200:203, 1] = np.nan
    one, other = (Autoregression.fitted(parts, 1) for parts in (gap, [missing]))
    np.testing.assert_allclose(one.weights, other.weights, rtol=0.02, atol=1e-6)

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


def seasonal(rows, period=6):
    """One variable that repeats itself after so many rows, so that all lags are wanted."""
    rng = np.random.default_rng(1)
    found = rng.normal(size=(rows, 1))
    for t in range(period, rows):
        found[t] = found[t - period] + 0.001 * rng.normal()
    return found


def order_of(*stretches, most=8):
    return len(Autoregression.fitted(list(stretches), most).weights)


def test_no_more_lags_are_tried_than_rows_terms_and_stretches_allow(monkeypatch):
    assert order_of(seasonal(200)) >= 6
    assert order_of(seasonal(200), most=5) <= 5
    assert order_of(seasonal(18)) == 6  # three rows for each term
    assert order_of(seasonal(17)) <= 5
    short = seasonal(130).reshape(-1, 13, 1)
    assert order_of(*short) == 6  # half of the longest stretch
    assert order_of(*short, short[0][:4]) == 6
    assert order_of(*short[:, :11]) <= 5
    monkeypatch.setattr("forecause.regression.autoregression.MOST_TERMS", 5)
    assert order_of(seasonal(200)) <= 5
    assert order_of(np.ones((4, 2))) == 1


def test_the_last_rows_are_learned_from(monkeypatch):
    known = values(400)
    known[:200] *= 3.0
    monkeypatch.setattr("forecause.regression.autoregression.MOST_ROWS", 150)
    found, expected = (Autoregression.fitted([part], 1) for part in (known, known[-151:]))
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-4, atol=1e-9)


def test_before_a_short_history_stands_its_first_row():
    model = Autoregression.fitted([values()], 3)
    for rows in (1, 2, 3):
        history = values()[100 : 100 + rows]
        latest = np.concatenate([np.repeat(history[:1], 3 - rows, axis=0), history])[::-1]
        expected = model.constant + np.einsum("ls,lst->t", latest, model.weights)
        found = model.path(history, 5)
        np.testing.assert_allclose(found[0], expected)
        assert found.shape == (5, 3)


def test_what_never_varies_is_forecast_as_it_is():
    known = values()
    known[:, 1] = 7.0
    ahead = Autoregression.fitted([known], 2).path(known, 4)
    np.testing.assert_allclose(ahead[:, 1], 7.0)
    assert np.isfinite(ahead).all()

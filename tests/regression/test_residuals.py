import numpy as np
import pytest
from scipy.stats import norm

from forecause.regression.residuals import Residuals, product_t_values


def test_t_values_of_products_are_those_of_single_sums():
    rng = np.random.default_rng(0)
    factors, errors = rng.normal(size=(200, 4)), rng.normal(size=200)
    found = product_t_values(factors, errors)
    for i, j in np.ndindex(4, 4):
        each = factors[:, i] * factors[:, j] * errors
        np.testing.assert_allclose(found[i, j], each.sum() / np.sqrt((each**2).sum()), rtol=1e-9)


def test_noise_that_grows_with_a_product_is_no_hint_of_it():
    rng = np.random.default_rng(1)
    t = []
    for _ in range(300):
        factors = rng.normal(size=(400, 2))
        errors = rng.normal(size=400) * (0.1 + (factors[:, 0] * factors[:, 1]) ** 2)
        t.append(product_t_values(factors, errors)[0, 1])
    assert np.mean(np.abs(t) > 2) < 0.08


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_p_value_of_a_correlation_is_two_sided(sign):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 2))
    values[1:, 1] += sign * 0.1 * values[:-1, 0]
    starts = np.array([0, 200])
    found, p_values = Residuals.of(values, np.arange(400), starts).correlation(1)
    now = np.r_[1:200, 201:400]  # no pair crosses the two stretches
    a, b = values[now], values[now - 1]
    a, b = a - a.mean(0), b - b.mean(0)
    for i, j in np.ndindex(2, 2):
        products = a[:, i] * b[:, j]
        assert found[i, j] == pytest.approx(np.corrcoef(a[:, i], b[:, j])[0, 1])
        z = products.sum() / np.sqrt((products**2).sum())
        assert p_values[i, j] == pytest.approx(2 * norm.sf(abs(z)))

import numpy as np

from forecause.regression.residuals import product_t_values


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

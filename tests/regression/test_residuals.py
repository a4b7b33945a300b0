import numpy as np
import pytest
from scipy.stats import chi2, norm

from forecause.config.thresholds import THRESHOLDS
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


def made(rows=300, columns=4, seed=2):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, columns))
    values[:, 1] += 0.2 * values[:, 0]
    return Residuals.of(values + 3, np.arange(rows) + 10, np.array([0, 150]))


def test_a_correlation_that_is_too_small_is_not_tested():
    residuals = made()
    whole, p_values = residuals.correlation(0)
    for least in (0.1, 0.02):  # few and many pairs are tested in two ways
        found, tested = residuals.correlation(0, least)
        np.testing.assert_allclose(found, whole)
        np.testing.assert_allclose(tested, np.where(np.abs(whole) >= least, p_values, 1.0))


@pytest.mark.parametrize(("more", "is_told"), [(0, True), (-1, False)])
def test_of_too_few_pairs_nothing_is_told(more, is_told):
    count = THRESHOLDS.diagnosis.least_pairs + more
    values = np.random.default_rng(3).normal(size=(count + 1, 2))
    residuals = Residuals.of(values, np.arange(count + 1), np.array([0]))
    found, p_values = residuals.correlation(1)
    assert found.any() == is_told
    assert (p_values < 1).any() == is_told
    assert residuals.memory(1).any() == is_told


def test_memory_is_the_autocorrelation_within_stretches():
    residuals = made()
    centred = residuals.values - residuals.values.mean(0)
    found = residuals.memory(3)
    for lag in (1, 2, 3):
        # row 150, the second stretch's first, is at place 140
        now = np.array([i for i in range(lag, 300) if not 140 <= i < 140 + lag])
        expected = (centred[now] * centred[now - lag]).mean(0) / centred.var(0)
        np.testing.assert_allclose(found[lag - 1], expected)


def test_all_pairs_taken_as_one_add_up_what_each_tells():
    residuals, columns = made(), np.array([0, 1, 3])
    left = residuals.values[:, columns] - residuals.values[:, columns].mean(0)
    without = np.zeros((4, 4), dtype=bool)
    without[0, 3] = without[3, 0] = True
    for leave_out in (None, without):
        pairs = [(0, 1), (0, 2), (1, 2)] if leave_out is None else [(0, 1), (1, 2)]
        evidence, squares = {}, []
        for i, j in pairs:
            products = left[:, i] * left[:, j]
            evidence[i, j] = products.sum() ** 2 / (products**2).sum() * (1 - 30 / 300)
            squares.append(np.corrcoef(left[:, i], left[:, j])[0, 1] ** 2)
        found = residuals.together(columns, 30, leave_out)
        total = sum(evidence.values())
        assert found.p_value == pytest.approx(chi2.sf(total, len(pairs)), rel=1e-6)
        beyond_chance = max(1 - len(pairs) / total, 0)
        assert found.size == pytest.approx(np.sqrt(np.mean(squares) * beyond_chance), rel=1e-6)
        for one in range(3):
            own = [value for pair, value in evidence.items() if one in pair]
            assert found.of_each[one] == pytest.approx(chi2.sf(sum(own), len(own)), rel=1e-6)


def test_without_any_pair_nothing_moves_together():
    found = made().together(np.array([2]), 10)
    assert (found.p_value, found.size, found.of_each.tolist()) == (1.0, 0.0, [1.0])
    hopeless = made().together(np.array([0, 1]), 1000)  # more inputs than rows
    assert (hopeless.p_value, hopeless.size) == (1.0, 0.0)


def test_sizes_are_in_units_of_the_median_and_cut():
    residuals = made()
    found = residuals.sizes(np.array([1, 3]), 2.0)
    size = np.abs(residuals.values[:, [1, 3]])
    expected = np.minimum(size / np.median(size, axis=0), 2.0)
    np.testing.assert_allclose(found.values, expected)
    assert found.values.max() == 2.0
    np.testing.assert_array_equal(found.rows, residuals.rows)


def test_residuals_are_found_by_their_rows_and_a_stretch_begins_with_its_first():
    residuals = made()
    np.testing.assert_array_equal(residuals.at(np.array([10, 12])), residuals.values[[0, 2]])
    assert np.flatnonzero(np.diff(residuals.stretch)).tolist() == [139]  # row 150 is place 140


def test_what_never_varies_goes_with_nothing():
    values = np.random.default_rng(4).normal(size=(200, 2))
    values[:, 1] = 5.0
    residuals = Residuals.of(values, np.arange(200), np.array([0]))
    correlation, p_values = residuals.correlation(0)
    assert correlation[0, 1] == 0
    assert p_values[0, 1] == 1
    assert residuals.memory(1)[0, 1] == 0
    assert product_t_values(np.zeros((5, 2)), np.ones(5)).tolist() == [[0, 0], [0, 0]]

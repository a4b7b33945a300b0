"""Benjamini-Hochberg against scipy, and what its q-values promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import cauchy, false_discovery_control, sem

from forecause.regression.p_values import (
    adjusted_p_values,
    cauchy_combination,
    clearly_better,
    gain_over_blocks,
)

p_arrays = arrays(
    np.float64, array_shapes(min_dims=1, max_dims=3, max_side=6), elements=st.floats(0, 1)
)


@given(p_arrays)
def test_q_values_match_scipy_over_all_candidates_together(p):
    expected = false_discovery_control(p.ravel()).reshape(p.shape)
    np.testing.assert_allclose(adjusted_p_values(p), expected)


@given(p_arrays)
def test_q_values_keep_the_order_of_the_p_values_and_never_fall_below_them(p):
    q = adjusted_p_values(p)
    assert (q >= p).all()
    assert (np.diff(q.ravel()[np.argsort(p.ravel())]) >= 0).all()


def test_the_false_share_stays_at_the_level_when_most_hypotheses_are_null():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(400, 100))
    p[:, :20] = rng.beta(0.05, 20, size=(400, 20))  # 20 real effects per experiment
    chosen = np.array([adjusted_p_values(row) <= 0.1 for row in p])
    false_share = chosen[:, 20:].sum(1) / np.maximum(chosen.sum(1), 1)
    assert 0.05 < false_share.mean() < 0.1


def test_no_p_values_give_no_q_values():
    assert adjusted_p_values(np.empty((0, 3))).shape == (0, 3)


def test_a_gain_is_counted_in_standard_errors_of_its_mean_over_blocks():
    rng = np.random.default_rng(0)
    before, after = rng.normal(1.0, 1.0, size=(40, 3)), rng.normal(size=(40, 3))
    of_block = (before - after).reshape(4, 10, 3).mean(1)
    found = gain_over_blocks(before, after, blocks=4)
    np.testing.assert_allclose(found, of_block.mean(0) / sem(of_block, axis=0), rtol=1e-12)


def test_what_was_not_tested_does_not_count_among_the_tests():
    p = np.array([0.01, np.nan, 0.03, 0.5, np.nan])
    expected = np.array([0.03, np.nan, 0.045, 0.5, np.nan])
    np.testing.assert_allclose(adjusted_p_values(p), expected)
    assert np.isnan(adjusted_p_values([np.nan])).all()


@given(arrays(np.float64, (3, 4), elements=st.floats(1e-4, 1 - 1e-4)))
def test_p_values_are_combined_by_the_mean_of_cauchy_quantiles(p):
    weights = np.array([0.2, 0.3, 0.5])
    expected = cauchy.sf(weights @ cauchy.isf(p))
    np.testing.assert_allclose(cauchy_combination(p, weights), expected, rtol=1e-6)
    plain = cauchy.sf(cauchy.isf(p).mean(0))
    np.testing.assert_allclose(cauchy_combination(p), plain, rtol=1e-6)


def test_a_tiny_p_value_counts_by_its_weight_and_keeps_its_digits():
    p = np.array([[1e-13, 1e-14, 1e-16, 1e-200, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5]])
    expected = [1e-12, 1e-13, 1e-15, 1e-199, 1e-299]
    found = cauchy_combination(p, np.array([0.1, 0.9]))
    np.testing.assert_allclose(found, expected, rtol=0.01)


def test_a_p_value_of_one_does_not_outweigh_a_tiny_one():
    found = cauchy_combination(np.array([[1.0], [1e-14]]))
    np.testing.assert_allclose(found, 2e-14, rtol=0.02)
    assert 0.999 < cauchy_combination(np.array([[1.0], [0.5]]))[0] <= 1


@pytest.mark.parametrize("by", [0.5, 1.0, 2.0])
def test_errors_are_clearly_lower_if_they_are_by_so_many_standard_errors(by):
    errors = np.tile([1.0, 3.0], 50)  # sd 1, standard error 0.1
    assert clearly_better(errors, np.full(100, 2.0 - 0.101 * by), by)
    assert not clearly_better(errors, np.full(100, 2.0 - 0.099 * by), by)
    assert not clearly_better(errors, np.full(100, 2.0 + 0.101 * by), by)
    assert clearly_better(errors, errors - 0.01)
    assert not clearly_better(errors, errors)


def test_a_gain_is_the_mean_over_twenty_blocks_unless_told():
    rng = np.random.default_rng(1)
    before, after = rng.normal(1.0, size=(400, 1)), rng.normal(size=(400, 1))
    of_block = (before - after).reshape(20, 20).mean(1)
    np.testing.assert_allclose(
        gain_over_blocks(before, after), of_block.mean() / sem(of_block), rtol=1e-12
    )
    assert np.isfinite(gain_over_blocks(before, before)).all()

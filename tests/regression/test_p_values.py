"""Benjamini-Hochberg against scipy, and what its q-values promise."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import false_discovery_control, sem

from forecause.regression.p_values import adjusted_p_values, gain_over_blocks

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

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from forecause.data.windows import moments_of
from forecause.errors import InputError
from forecause.regression.moments import Moments, lowest


def flat(past):
    return past.reshape(len(past), -1)


def regression(windows, target):
    window = windows.draw(np.arange(len(windows))).rows.astype(float)
    design = sm.add_constant(flat(window[:, :-1]))
    return sm.OLS(window[:, -1, target], design).fit()


def test_coefficients_and_loss_are_those_of_least_squares(chain_windows):
    moments = moments_of(chain_windows, flat)
    coefficients = moments.solve()
    for target in range(3):
        reference = regression(chain_windows, target)
        np.testing.assert_allclose(coefficients[:, target], reference.params, atol=1e-7)
        mse = float((reference.resid**2).mean())
        assert float(moments.loss(coefficients)[target]) == pytest.approx(mse, rel=1e-9)


def test_group_tests_are_the_f_tests_of_statsmodels(chain_windows):
    groups = [np.array([0]), np.array([1, 4]), np.array([2, 3, 5])]
    p_values = moments_of(chain_windows, flat).group_p_values(groups)
    for target in range(3):
        reference = regression(chain_windows, target)
        for g, features in enumerate(groups):
            restriction = np.zeros((len(features), 7))
            restriction[np.arange(len(features)), features + 1] = 1
            expected = float(reference.f_test(restriction).pvalue)
            assert p_values[target, g] == pytest.approx(expected, rel=1e-4, abs=1e-300)


def test_a_feature_that_never_varies_costs_no_degree_of_freedom(chain_windows):
    def padded(past):
        return np.concatenate([flat(past), np.zeros((len(past), 1))], axis=1)

    plain = moments_of(chain_windows, flat).group_p_values([np.array([0])])
    with_zero = moments_of(chain_windows, padded).group_p_values([np.array([0, 6])])
    np.testing.assert_allclose(plain, with_zero, rtol=1e-6)


def test_more_inputs_than_windows_is_refused(chain_windows):
    few = chain_windows.at(np.arange(6))
    with pytest.raises(InputError, match=r"found 6 windows for 6 inputs"):
        moments_of(few, flat).group_p_values([np.array([0])])


def test_the_inverse_is_that_of_the_gram_matrix(chain_windows):
    moments = moments_of(chain_windows, flat)
    both = moments.inverse() @ moments.gram
    np.testing.assert_allclose(both, np.eye(len(both)), atol=1e-6)


def test_wide_designs_are_solved_as_narrow_ones_are():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1500, 1100))
    targets = features[:, :2] + rng.normal(size=(1500, 2))
    moments = Moments.summed([(features, targets)])
    expected = np.linalg.lstsq(sm.add_constant(features), targets, rcond=None)[0]
    np.testing.assert_allclose(moments.solve(), expected, atol=1e-6)


@given(left=st.integers(0, 6), right=st.integers(0, 6), steps=st.data())
def test_the_lowest_place_of_a_valley_is_found(left, right, steps):
    down, up = (
        np.cumsum(steps.draw(st.lists(st.integers(1, 9), min_size=size, max_size=size)))
        for size in (left, right)
    )
    valley = [*down[::-1].tolist(), 0, *up.tolist()]
    assert lowest(valley.__getitem__, len(valley)) == left


def test_moments_without_a_part_are_those_of_the_rest(chain_windows):
    every = moments_of(chain_windows)
    early, late = chain_windows.split(0.3)
    left, own = every.without(moments_of(late)), moments_of(early)
    assert left.count == own.count == len(early)
    for name in ("gram", "cross", "square"):
        expected = np.asarray(getattr(own, name))
        np.testing.assert_allclose(np.asarray(getattr(left, name)), expected, atol=1e-6)

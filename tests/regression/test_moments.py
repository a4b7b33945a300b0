import numpy as np
import pytest
import statsmodels.api as sm
import torch

from forecause.data.streams import moments_of
from forecause.errors import InputError


def flat(past):
    return past.flatten(1)


def regression(windows, target):
    window = windows.draw(np.arange(len(windows))).rows.double()
    design = sm.add_constant(window[:, :-1].flatten(1).numpy())
    return sm.OLS(window[:, -1, target].numpy(), design).fit()


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
        return torch.cat([flat(past), torch.zeros(len(past), 1, dtype=past.dtype)], dim=1)

    plain = moments_of(chain_windows, flat).group_p_values([np.array([0])])
    with_zero = moments_of(chain_windows, padded).group_p_values([np.array([0, 6])])
    np.testing.assert_allclose(plain, with_zero, rtol=1e-6)


def test_more_inputs_than_windows_is_refused(chain_windows):
    few = chain_windows.at(np.arange(6))
    with pytest.raises(InputError, match=r"found 6 windows for 6 inputs"):
        moments_of(few, flat).group_p_values([np.array([0])])

import numpy as np
from statsmodels.tsa.api import VAR

from forecause.forecast.forecaster import FitData, squared_errors
from forecause.forecast.linear import Linear, LinearModel


def fitted(windows, held_out, ridges=(0.0,)):
    model = LinearModel(windows.shape, Linear(ridges=ridges))
    model.fit(FitData(windows, held_out))
    return model


def test_without_penalty_it_is_the_vector_autoregression_of_statsmodels(chain_windows):
    model = fitted(chain_windows, chain_windows)
    reference = VAR(chain_windows.panel.values).fit(2, trend="c")
    sd, mean = chain_windows.scale.sd, chain_windows.scale.mean
    # weight (target, step, source), oldest first, in standard deviations
    weight = model.weight[:, ::-1] * sd[:, None, None] / sd
    np.testing.assert_allclose(
        weight.transpose(1, 0, 2), reference.coefs, atol=1e-5, err_msg="lag matrices"
    )
    intercept = model.intercept * sd + mean - weight.sum(1) @ mean
    np.testing.assert_allclose(intercept, reference.params[0], atol=1e-5)


def test_the_penalty_is_the_one_that_does_best_on_held_out_windows(chain_windows):
    few, late = chain_windows.at(np.arange(12)), chain_windows.at(np.arange(500, 1500))
    losses = {r: squared_errors(fitted(few, late, (r,)), late).mean() for r in (0.0, 0.1, 10.0)}
    best = min(losses, key=losses.get)
    chosen = fitted(few, late, tuple(losses))
    assert best != 0.0  # twelve windows for six inputs: least squares overfits
    np.testing.assert_allclose(chosen.weight, fitted(few, late, (best,)).weight, rtol=1e-6)


def test_its_jacobian_is_its_coefficients(chain_windows):
    model = fitted(chain_windows, chain_windows)
    jacobian = model.jacobian(chain_windows.draw(np.arange(4)).past)
    np.testing.assert_array_equal(jacobian, np.broadcast_to(model.weight, (4, 3, 2, 3)))

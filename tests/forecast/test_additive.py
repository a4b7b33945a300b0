import numpy as np
import pytest
import torch
from scipy.interpolate import CubicSpline

from forecause.data import Panel, Windows, streams
from forecause.data.streams import place_knots
from forecause.forecast.backward import ATTN_LRP
from forecause.forecast.forecaster import FitData, Forecaster, squared_errors
from forecause.forecast.models.additive import Additive, AdditiveModel
from forecause.forecast.models.linear import Linear, LinearModel
from forecause.regression.splines import spline_slopes, spline_terms


def parabola_windows(rows=3000):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, 2))
    x[1:, 1] = 0.5 * x[:-1, 0] ** 2 + 0.5 * x[1:, 1]
    return Windows.of(Panel.from_arrays([x], ["cause", "effect"]), 1)


@pytest.fixture(scope="module")
def parabola():
    windows = parabola_windows()
    model = AdditiveModel(windows.shape, Additive())
    early, late = windows.split(0.2)
    model.fit(FitData(early, late))
    return windows, model


def test_the_basis_spans_the_natural_cubic_splines_on_its_knots():
    knots = np.array([-1.3, -0.4, 0.2, 0.9, 1.8])
    spline = CubicSpline(knots, [0.3, -1.0, 2.0, 0.1, 0.7], bc_type="natural")
    x = np.linspace(-1.3, 1.8, 200)
    terms = spline_terms(torch.tensor(x)[:, None], torch.tensor(knots)[None])[:, 0].numpy()
    design = np.column_stack([np.ones_like(x), terms])
    fit = design @ np.linalg.lstsq(design, spline(x), rcond=None)[0]
    np.testing.assert_allclose(fit, spline(x), atol=1e-10)


def test_beyond_the_outer_knots_the_basis_is_straight():
    knots = torch.tensor([[-1.0, 0.0, 0.5, 1.0]], dtype=torch.float64)
    far = torch.tensor([[1.5], [2.5], [9.0]], dtype=torch.float64)
    slopes = spline_slopes(far, knots)
    torch.testing.assert_close(slopes, slopes[:1].expand_as(slopes))


def test_slopes_are_the_derivative_of_the_terms():
    knots = torch.tensor([[-1.0, 0.1, 0.6, 1.2]], dtype=torch.float64)
    x = torch.linspace(-2, 2, 31, dtype=torch.float64)[:, None].requires_grad_()
    terms = spline_terms(x, knots)
    for k in range(terms.shape[-1]):
        (derivative,) = torch.autograd.grad(terms[..., k].sum(), x, retain_graph=True)
        torch.testing.assert_close(spline_slopes(x, knots)[..., k], derivative)


def test_it_fits_a_curve_that_a_line_cannot(parabola):
    windows, model = parabola
    line = LinearModel(windows.shape, Linear())
    line.fit(FitData(windows, windows))
    late = windows.split(0.2)[1]
    effect = 1
    assert squared_errors(line, late).mean(0)[effect] > 0.95
    # 0.25 of the variance of 0.5 z^2 + 0.5 e is noise: var 0.5 and 0.25
    assert squared_errors(model, late).mean(0)[effect] < 0.37


def test_its_own_jacobian_is_the_one_of_autograd(parabola):
    windows, model = parabola
    past = windows.draw(np.arange(50)).past
    torch.testing.assert_close(model.jacobian(past), Forecaster.jacobian(model, past))


def test_under_lrp_the_relevance_of_an_input_is_the_height_of_its_curve(parabola):
    windows, model = parabola
    past = windows.draw(np.arange(50)).past
    relevance = model.jacobian(past, ATTN_LRP) * past[:, None]
    curves = model.curves(past[:, None].expand(-1, 2, -1, -1))
    torch.testing.assert_close(relevance, curves, atol=1e-5, rtol=1e-4)


def test_a_two_valued_variable_enters_as_a_line():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2))
    x[:, 0] = rng.integers(0, 2, 500)
    windows = Windows.of(Panel.from_arrays([x], ["switch", "y"]), 1)
    knots = place_knots(windows, 5)
    bends = spline_terms(windows.draw(np.arange(100)).target, knots)[..., 1:]
    assert (bends[:, 0] == 0).all()
    assert (bends[:, 1] != 0).any()


def test_knots_are_quantiles_of_windows_spread_over_all_of_them(monkeypatch):
    values = np.random.default_rng(0).normal(size=(4001, 2))
    windows = Windows.of(Panel.from_arrays([values], ["a", "b"]), 1)
    shares = [0.05, 0.275, 0.5, 0.725, 0.95]
    scaled = (values[1:] - values.mean(0)) / values.std(0)
    np.testing.assert_allclose(
        place_knots(windows, 5), np.quantile(scaled, shares, axis=0).T, atol=1e-5
    )
    monkeypatch.setattr(streams, "ENOUGH_FOR_KNOTS", 1000)
    np.testing.assert_allclose(
        place_knots(windows, 5), np.quantile(scaled[::4], shares, axis=0).T, atol=1e-5
    )

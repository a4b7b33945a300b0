import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from forecause.data import Panel, Windows
from forecause.data import windows as streams
from forecause.data.windows import place_knots
from forecause.forecast.additive import Additive, AdditiveModel
from forecause.forecast.attribution.readouts import ATTN_LRP
from forecause.forecast.forecaster import FitData, squared_errors
from forecause.forecast.linear import Linear, LinearModel
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
    terms = spline_terms(x[:, None], knots[None])[:, 0]
    design = np.column_stack([np.ones_like(x), terms])
    fit = design @ np.linalg.lstsq(design, spline(x), rcond=None)[0]
    np.testing.assert_allclose(fit, spline(x), atol=1e-10)


def test_beyond_the_outer_knots_the_basis_is_straight():
    knots = np.array([[-1.0, 0.0, 0.5, 1.0]])
    far = np.array([[1.5], [2.5], [9.0]])
    slopes = spline_slopes(far, knots)
    np.testing.assert_allclose(slopes, np.broadcast_to(slopes[:1], slopes.shape), atol=1e-12)


def test_slopes_are_the_derivative_of_the_terms():
    knots = np.array([[-1.0, 0.1, 0.6, 1.2]])
    x, h = np.linspace(-2, 2, 31)[:, None], 1e-6
    derivative = (spline_terms(x + h, knots) - spline_terms(x - h, knots)) / (2 * h)
    np.testing.assert_allclose(spline_slopes(x, knots), derivative, atol=1e-7)


def test_it_fits_a_curve_that_a_line_cannot(parabola):
    windows, model = parabola
    line = LinearModel(windows.shape, Linear())
    line.fit(FitData(windows, windows))
    late = windows.split(0.2)[1]
    effect = 1
    assert squared_errors(line, late).mean(0)[effect] > 0.95
    # 0.25 of the variance of 0.5 z^2 + 0.5 e is noise: var 0.5 and 0.25
    assert squared_errors(model, late).mean(0)[effect] < 0.37


def test_its_jacobian_is_its_slope(parabola):
    windows, model = parabola
    past = windows.draw(np.arange(50)).past.astype(np.float64)
    slopes, h = model.jacobian(past), 1e-5
    for source in range(2):
        moved = np.zeros_like(past)
        moved[:, 0, source] = h
        slope = (model(past + moved) - model(past - moved)) / (2 * h)
        np.testing.assert_allclose(slopes[:, :, 0, source], slope, atol=1e-5)


def test_under_lrp_the_relevance_of_an_input_is_the_height_of_its_curve(parabola):
    windows, model = parabola
    past = windows.draw(np.arange(50)).past
    relevance = model.jacobian(past, ATTN_LRP) * past[:, None]
    for target, source in np.ndindex(2, 2):
        curve = model.contribution(target, 0, source, past[:, 0, source])
        np.testing.assert_allclose(relevance[:, target, 0, source], curve, atol=1e-5, rtol=1e-4)


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

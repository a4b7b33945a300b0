"""Natural cubic splines against SciPy, finite differences and values worked out by hand."""

import numpy as np
from scipy.interpolate import CubicSpline

from forecause.regression.splines import (
    BENDS,
    KNOT_QUANTILES,
    Splines,
    bends_of,
    curve_features,
    spline_slopes,
    spline_terms,
)

KNOTS = np.array([[0.0, 1.0, 2.0], [-1.0, 0.5, 3.0]])  # (variable, knot)


def test_terms_are_those_worked_out_by_hand():
    # of the knots 0, 1, 2: (x^3 - (x - 2)^3) / 2 - ((x - 1)^3 - (x - 2)^3), each part from its knot
    x = np.array([-1.0, 1.0, 2.0, 4.0])[:, None]
    np.testing.assert_allclose(bends_of(x, KNOTS[:1])[:, 0, 0], [0.0, 0.5, 3.0, 9.0])
    terms = spline_terms(x, KNOTS[:1])[:, 0]
    np.testing.assert_allclose(terms, np.column_stack([x, [0.0, 0.125, 0.75, 2.25]]))


def test_every_natural_cubic_spline_is_a_sum_of_the_terms():
    rng = np.random.default_rng(0)
    knots = np.sort(rng.normal(size=6))
    x = np.linspace(knots[0], knots[-1], 200)
    spline = CubicSpline(knots, rng.normal(size=6), bc_type="natural")(x)
    terms = np.column_stack([np.ones(200), spline_terms(x[:, None], knots[None])[:, 0]])
    weights, *_ = np.linalg.lstsq(terms, spline, rcond=None)
    np.testing.assert_allclose(terms @ weights, spline, atol=1e-8)


def test_slopes_are_finite_differences():
    x, h = np.random.default_rng(1).normal(1, 2, size=(50, 2)), 1e-5
    expected = (spline_terms(x + h, KNOTS) - spline_terms(x - h, KNOTS)) / (2 * h)
    np.testing.assert_allclose(spline_slopes(x, KNOTS), expected, atol=1e-6)


def test_where_all_knots_are_one_nothing_bends():
    x = np.linspace(-3, 3, 20)[:, None]
    np.testing.assert_array_equal(spline_terms(x, np.ones((1, 4)))[:, 0, 1:], 0.0)


def test_curves_have_their_knots_at_quantiles_of_the_latest_values():
    past = np.random.default_rng(2).normal(size=(300, 2, 3)) * [[[1.0], [5.0]]]
    knots = np.quantile(past[:, 0], (0.1, 0.5, 0.9), axis=0).T
    found = curve_features(past, (0.1, 0.5, 0.9))
    np.testing.assert_allclose(found[:, 1], spline_terms(past[:, 1], knots))


class TestBendsOfInputs:
    def inputs(self):
        rng = np.random.default_rng(3)
        levels = rng.integers(0, 2, size=400)
        return np.column_stack([rng.gamma(2.0, size=400), rng.normal(size=400), levels])

    def of(self, curved=(True, True, True)):
        return Splines.of(self.inputs(), np.array(curved))

    def test_they_have_mean_0_and_sd_1_and_go_with_no_line(self):
        inputs, bends = self.inputs(), self.of().bends(self.inputs())
        assert bends.shape == (400, 3 * BENDS)
        curved = bends[:, : 2 * BENDS]
        np.testing.assert_allclose(curved.mean(0), 0, atol=1e-9)
        np.testing.assert_allclose(curved.std(0), 1, atol=1e-9)
        for place in range(2 * BENDS):
            correlation = np.corrcoef(curved[:, place], inputs[:, place // BENDS])[0, 1]
            assert abs(correlation) < 1e-9

    def test_they_are_bends_at_the_quantiles_of_the_input(self):
        inputs = self.inputs()
        knots = np.quantile(inputs[:, :1], KNOT_QUANTILES, axis=0).T
        raw = bends_of(inputs[:, :1], knots)[:, 0]
        line = np.column_stack([np.ones(400), inputs[:, 0]])
        expected = raw - line @ np.linalg.lstsq(line, raw, rcond=None)[0]
        found = self.of().bends(inputs)[:, :BENDS]
        np.testing.assert_allclose(found, expected / expected.std(0), atol=1e-6)

    def test_they_are_the_same_in_any_unit(self):
        inputs = self.inputs()
        tiny = Splines.of(1e-4 * inputs, np.array([True] * 3))
        np.testing.assert_allclose(tiny.bends(1e-4 * inputs), self.of().bends(inputs), atol=1e-7)

    def test_what_has_too_few_values_or_is_not_to_bend_does_not(self):
        assert self.of().curved.tolist() == [True, True, False]
        assert not self.of().bends(self.inputs())[:, 2 * BENDS :].any()
        straight = self.of((True, False, True)).bends(self.inputs())
        assert not straight[:, BENDS : 2 * BENDS].any()
        assert straight[:, :BENDS].any()

    def test_new_rows_are_measured_by_the_rows_that_were_learned_from(self):
        splines, inputs = self.of(), self.inputs()
        some = splines.bends(inputs)[7:9]
        np.testing.assert_allclose(splines.bends(inputs[7:9]), some)
        np.testing.assert_allclose(
            splines.bends(inputs[7:9], np.array([1])), some[:, BENDS : 2 * BENDS]
        )

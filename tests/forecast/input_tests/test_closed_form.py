import numpy as np
import pytest
import statsmodels.api as sm
import xarray as xr

from asked import closed_form_answers, request_of
from forecause.config.thresholds import THRESHOLDS, Thresholds, using
from forecause.data.windows import inputs_of, place_knots, sample_of
from forecause.errors import InputError
from forecause.forecast.input_tests import closed_form
from forecause.forecast.input_tests.closed_form import closed_form_tests
from forecause.forecast.input_tests.designs import KNOTS, Designs
from forecause.regression.p_values import adjusted_p_values
from forecause.regression.robust import Wald
from forecause.regression.sample import Design
from forecause.simulation import simulate
from systems import CHAIN_EDGES, windows_of

GIVEN_ALL_ALONE = Thresholds.of({"tests": {"enough_per_input": 0.001}})


def p_values_of(windows, suspects=None):
    return closed_form_answers(windows, suspects)["p_value"]


def robust_p_values(windows, groups, targets):
    places = np.arange(windows.inputs)
    design = Design(places, lambda values: values, groups, np.arange(len(groups)))
    return Wald.of(sample_of(windows), design, targets).p_values


def product_system(rows=3000, seed=0):
    """v2 follows the product of v0 and v1: neither shows anything on its own."""
    x = np.random.default_rng(seed).normal(size=(rows, 4))
    x[1:, 2] += x[:-1, 0] * x[:-1, 1]
    return x


def test_robust_tests_are_the_hc3_wald_tests_of_statsmodels(chain_windows):
    groups = [np.array([0]), np.array([1, 4]), np.array([2, 3, 5])]
    found = robust_p_values(chain_windows, groups, range(3))
    alone = robust_p_values(chain_windows, groups, [1])
    np.testing.assert_allclose(alone[0], found[1], rtol=1e-6)
    window = chain_windows.draw(np.arange(len(chain_windows))).rows.astype(np.float64)
    design = sm.add_constant(window[:, :-1].reshape(len(window), -1))
    for target in range(3):
        fit = sm.OLS(window[:, -1, target], design).fit(cov_type="HC3", use_t=True)
        for g, features in enumerate(groups):
            restriction = np.zeros((len(features), 7))
            restriction[np.arange(len(features)), features + 1] = 1
            expected = float(fit.f_test(restriction).pvalue)
            assert found[target, g] == pytest.approx(expected, rel=1e-3, abs=1e-200)


def test_noise_that_grows_with_an_input_does_not_make_it_a_cause():
    false_edges = 0
    for seed in range(30):
        x = np.random.default_rng(seed).normal(size=(400, 2))
        x[1:, 1] *= np.exp(x[:-1, 0])  # v0 drives the variance of v1, not its mean
        false_edges += float(p_values_of(windows_of(x)).sel(target="v1", source="v0", lag=1)) < 0.05
    assert false_edges <= 6  # classical tests reject in more than half of these


def test_lags_are_in_order(chain_windows):
    p_values = p_values_of(chain_windows)
    assert float(p_values.sel(target="b", source="a", lag=1)) < 1e-50
    assert float(p_values.sel(target="c", source="b", lag=2)) < 1e-50
    assert float(p_values.sel(target="b", source="a", lag=2)) > 1e-4
    assert float(p_values.sel(target="c", source="b", lag=1)) > 1e-4


def test_a_parabola_is_seen():
    x = np.random.default_rng(0).normal(size=(2000, 2))
    x[1:, 1] += x[:-1, 0] ** 2
    p_values = p_values_of(windows_of(x))
    assert float(p_values.sel(target="v1", source="v0", lag=1)) < 1e-50


def test_lines_that_were_asked_for_see_no_parabola():
    x = np.random.default_rng(0).normal(size=(2000, 2))
    x[1:, 1] += x[:-1, 0] ** 2
    for rows in (150, 2000):  # given plausible parents, and given all others
        windows = windows_of(x[:rows])
        line = closed_form_answers(windows, kinds=("linear",))["p_value"]
        assert float(line.sel(target="v1", source="v0", lag=1)) > 1e-3
        curve = closed_form_answers(windows, kinds=("additive",))["p_value"]
        assert float(curve.sel(target="v1", source="v0", lag=1)) < 1e-10


def test_a_target_keeps_the_kind_that_forecasts_it_best():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3000, 5))
    x[1:, 1] += x[:-1, 0]
    x[1:, 2] += x[:-1, 0] ** 2
    x[1:, 4] += x[:-1, 0] * x[:-1, 3] + 0.5 * x[:-1, 0]
    windows = windows_of(x)
    suspects = request_of(windows).suspects.copy()
    suspects.loc[{"target": "v4", "source": ["v0", "v3"]}] = True
    tests = closed_form_tests(request_of(windows, suspects))
    assert tests.decided_by == ("linear", "linear", "additive", "linear", "products")
    assert {0, 3} <= set(tests.products[4])


def test_a_target_without_an_allowed_input_is_not_tested():
    for rows in (120, 1500):
        windows = windows_of(np.random.default_rng(0).normal(size=(rows, 3)), 2)
        allowed = request_of(windows).allowed.copy()
        allowed.loc[{"target": "v1"}] = False
        p_values = closed_form_answers(windows, allowed=allowed)["p_value"]
        assert np.isnan(p_values.sel(target="v1")).all()
        assert np.isfinite(p_values.sel(target=["v0", "v2"])).all()


def test_a_product_is_seen_once_its_factors_are_suspected():
    windows = windows_of(product_system())
    nothing = p_values_of(windows)
    suspects = xr.zeros_like(nothing, dtype=bool)
    suspects.loc[{"target": "v2", "source": ["v0", "v1"]}] = True
    found = p_values_of(windows, suspects)
    for factor in ("v0", "v1"):
        assert float(found.sel(target="v2", source=factor, lag=1)) < 1e-20
    assert float(found.sel(target="v2", source="v3", lag=1)) > 1e-3


def test_p_values_of_unrelated_variables_are_uniform():
    found = [
        p_values_of(windows_of(np.random.default_rng(seed).normal(size=(600, 4)), 2)).values
        for seed in range(20)
    ]
    shares = np.array([np.mean(np.array(found) < level) for level in (0.05, 0.2, 0.5)])
    np.testing.assert_allclose(shares, (0.05, 0.2, 0.5), atol=0.05)


def test_with_few_windows_only_lines_are_tested():
    x = np.random.default_rng(0).normal(size=(125, 4))
    windows = windows_of(x, 2)
    straight = robust_p_values(windows, list(np.arange(8)[:, None]), range(4))
    with using(GIVEN_ALL_ALONE):
        found = p_values_of(windows).sel(lag=1).values
    np.testing.assert_allclose(found, straight[:, 4:], rtol=1e-9)


def test_with_few_windows_tests_given_plausible_parents_show_more():
    found = []
    for chosen in (GIVEN_ALL_ALONE, THRESHOLDS):
        true = false = 0
        for seed in range(8):
            system = simulate(
                nodes=8, max_lag=5, in_degree=2, mechanism="linear", rows=200, seed=seed
            )
            with using(chosen):
                p_values = p_values_of(windows_of(system.values, 5)).values
            edges = adjusted_p_values(p_values) <= 0.1
            causes = system.graph.adjacency.values.astype(bool)
            true, false = true + (edges & causes).sum(), false + (edges & ~causes).sum()
        found.append((true, false))
    (true, _), (more, false) = found
    assert more > 1.3 * true
    assert false < 0.15 * (more + false)


def test_a_few_rows_more_do_not_undo_many_edges():
    """One volatility behind all: no few parents suffice, and no test believes that they do."""
    rng = np.random.default_rng(3)
    level = np.zeros(1300)
    for row in range(1, len(level)):
        level[row] = 0.98 * level[row - 1] + 0.12 * rng.normal()
    returns = np.abs(rng.normal(size=(1300, 4)) * np.exp(0.7 * level[:, None]))
    found = []
    for rows in (1190, 1230):  # 99 and 102 windows per input
        p_values = p_values_of(windows_of(returns[:rows], 3)).values
        between = p_values[~np.eye(4, dtype=bool)]
        found.append(int((adjusted_p_values(between) <= 0.05).sum()))
    assert abs(found[0] - found[1]) <= 2


def test_suspects_do_not_crowd_the_windows_again():
    system = simulate(nodes=8, max_lag=5, in_degree=2, mechanism="linear", rows=200, seed=0)
    windows = windows_of(system.values, 5)
    found = p_values_of(windows)
    suspected = p_values_of(windows, xr.ones_like(found, dtype=bool))
    xr.testing.assert_equal(suspected, found)


def test_noise_alone_has_no_edges_where_inputs_crowd_the_windows():
    noise = [np.random.default_rng(seed).normal(size=(150, 4)) for seed in range(30)]
    false = [adjusted_p_values(p_values_of(windows_of(x, 5)).values).min() <= 0.05 for x in noise]
    assert sum(false) <= 5  # 1.5 are to be expected


def test_more_inputs_than_windows_is_refused():
    x = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(InputError, match=r"found 24 windows for 24 inputs"):
        p_values_of(windows_of(x, 6))


def test_a_strong_edge_is_stable_and_noise_is_not(chain_windows):
    stability = closed_form_answers(chain_windows)["stability"]
    for source, target, lag in CHAIN_EDGES:
        assert float(stability.sel(target=target, source=source, lag=lag)) == 1.0
    others = np.sort(stability.values.ravel())[:-3]
    assert others.max() < 0.6
    assert others.mean() < 0.15


def test_what_a_fit_leaves_is_of_the_windows_it_was_given(chain_windows):
    forms = closed_form.ClosedForms(chain_windows, 1.0)
    fit = forms._fit("linear", forms.designs.straight(np.arange(6)), [0, 1, 2], 1e9)
    forms.hinting = forms.hinting.at_most(500)
    fewer = forms._fit("linear", fit.design, fit.targets, 1e9)
    assert len(fit.left) == len(chain_windows)
    assert len(fewer.left) == len(forms.hinting) < len(fit.left)


def test_stored_spline_terms_are_those_made_anew(chain_windows):
    inputs, sample = inputs_of(chain_windows), sample_of(chain_windows)
    latest, knots = sample.rows[0][:, -3:], place_knots(chain_windows, KNOTS)
    fresh, stored = (Designs(inputs, latest, knots) for _ in range(2))
    [wider] = stored.store_terms([sample])
    some = np.array([0, 2, 5])
    for made in ("straight", "curved", "factors", "pairs"):
        expected = getattr(fresh, made)(some).features(sample.rows[0])
        found = getattr(stored, made)(some).features(wider.rows[0])
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_array_equal(
        wider.following(wider.rows[0], [1]), sample.following(sample.rows[0], [1])
    )


def test_with_many_inputs_a_bent_cause_is_still_found():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 60))
    x[1:, 0] += 0.5 * (x[:-1, 7] ** 2 - 1)
    x[2:, 1] += 0.3 * x[:-2, 8]
    p_values = p_values_of(windows_of(x, max_lag=2))
    assert p_values.sel(target="v0", source="v7", lag=1) < 1e-8
    assert p_values.sel(target="v1", source="v8", lag=2) < 1e-8
    assert int((adjusted_p_values(p_values.values) < 0.02).sum()) <= 3

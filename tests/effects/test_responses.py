"""Responses: total effects by every path, against closed forms; their bands."""

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.effects.coefficient_draws import coefficient_errors
from forecause.effects.responses import Raise, recursion

DIRECT = 0.8


def chain_frame(rows=1500, seed=0):
    """x -> y -> z, each 0.8 after one row, with noise of sd 1."""
    noise = np.random.default_rng(seed).normal(size=(rows, 3))
    values = noise.copy()
    for row in range(1, rows):
        values[row, 1] += DIRECT * values[row - 1, 0]
        values[row, 2] += DIRECT * values[row - 1, 1]
    return pd.DataFrame(values, columns=list("xyz"))


@pytest.fixture(scope="module")
def run():
    return fc.discover(chain_frame(), max_lag=2, forecaster="linear", season="none")


def test_the_total_effect_along_a_chain_is_the_product_of_its_links(run):
    told = run.response("x", horizon=4, amount=1.0)
    best = told.at("z", 2)
    assert best["effect"] == pytest.approx(0.64, abs=0.06)
    assert best["low"] < 0.64 < best["high"]
    assert list(told.table.columns) == ["source", "target", "after", "effect", "low", "high"]
    assert "z" in run.response("x", amount=1.0, through="y").sentence


def test_the_direct_effect_is_not_the_total_one(run):
    direct, total = (run.effect("x", "z", 2, total=whole) for whole in (False, True))
    assert abs(direct.change) < 0.1
    assert total.change == pytest.approx(0.64, abs=0.08)
    assert "direct" in repr(direct)
    assert "total" in repr(total)


def test_paths_and_the_direct_share_tell_how_an_effect_travels(run):
    told = run.response("x", 3)
    assert told.direct_share["y"] == pytest.approx(1.0)
    assert told.direct_share["z"] == 0.0
    through = run.response("x", 3, through="y")
    assert through.at("z", 2)["effect"] == pytest.approx(told.at("z", 2)["effect"])
    assert run.response("x", 3, through="z").at("y", 1)["effect"] == 0.0


def test_what_is_held_adds_up(run):
    once, held = (run.response("x", 3, amount=2.0, held=h) for h in (False, True))
    course = once.table.query("target == 'z'")["effect"].cumsum()
    assert np.allclose(held.table.query("target == 'z'")["effect"], course)
    assert (held.table.query("target == 'x'")["effect"] == 2.0).all()


def test_impulse_responses_are_powers_of_the_matrix():
    matrix = np.random.default_rng(1).normal(size=(3, 3)) / 3
    moved = recursion(matrix[None, :, None, :], Raise([1], np.array([2.0]), 4))
    for row in range(5):
        expected = 2.0 * np.linalg.matrix_power(matrix, row)[:, 1]
        np.testing.assert_allclose(moved[0, row], expected)


def test_draws_of_coefficients_have_the_covariance_that_statsmodels_calls_hc3():
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(2)
    past = rng.normal(size=(150, 4))
    targets = (past @ rng.normal(size=4) + rng.normal(size=150) * np.abs(past[:, 0]))[:, None]
    fitted, errors = coefficient_errors(past, targets, 20_000, seed=0)
    oracle = api.OLS(targets[:, 0], api.add_constant(past)).fit(cov_type="HC3")
    np.testing.assert_allclose(fitted[0], oracle.params[1:])
    np.testing.assert_allclose(np.cov(errors[:, 0].T), oracle.cov_params()[1:, 1:], atol=4e-4)


def test_uncertainty_of_a_chain_comes_from_its_links_in_closed_form(run):
    shares = run.variance_shares(3).query("target == 'z' and after == 3").set_index("source")
    parts = np.array([DIRECT**4, DIRECT**2, 1.0])
    np.testing.assert_allclose(shares["share"][list("xyz")], parts / parts.sum(), atol=0.05)


def test_a_curved_response_is_the_mean_over_states_of_the_data():
    rng = np.random.default_rng(3)
    x = rng.normal(size=1500)
    y = np.concatenate([[0.0], x[:-1] ** 2]) + 0.3 * rng.normal(size=1500)
    run = fc.discover(
        pd.DataFrame({"x": x, "y": y}), max_lag=1, forecaster="additive", season="none"
    )
    assert not run.causal.forecaster.is_straight
    told = run.response("x", 2, amount=1.0).at("y", 1)  # E[(x + 1)^2 - x^2] = 1
    assert told["low"] < 1.0 < told["high"]
    assert told["effect"] == pytest.approx(1.0, abs=0.25)


def test_a_band_reaches_what_a_missing_link_would_do():
    run = fc.discover(
        chain_frame(), max_lag=1, forecaster="linear", season="none", forbid=[("x", "y")]
    )
    told = run.response("x", 1).at("y", 1)
    assert told["effect"] == 0.0
    assert told["low"] <= 0 < DIRECT * chain_frame()["x"].std() < told["high"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"source": "w"}, "Unknown variable 'w'"),
        ({"source": "x", "horizon": 0}, "horizon must be 1 to"),
        ({"source": "x", "horizon": 1.5}, "horizon must be a whole number"),
        ({"source": "x", "amount": 0.0}, "other than 0"),
        ({"source": "x", "amount": float("nan")}, "amount must be a number"),
        ({"source": "x", "amount": "much"}, "amount must be a number"),
        ({"source": "x", "amount": 1e12}, "at most 1,000,000 standard deviations"),
        ({"source": "x", "seed": -1}, "seed must be at least 0"),
        ({"source": "x", "through": "x"}, "name another"),
    ],
)
def test_questions_that_make_no_sense_are_refused(run, asked, said):
    with pytest.raises(fc.InputError, match=said):
        run.response(**asked)


def test_a_picture_has_a_panel_for_every_target_that_moves(run):
    figure = run.response("x", 4).plot()
    assert [axis.get_title() for axis in figure.axes] == ["y", "z"]

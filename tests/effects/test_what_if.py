"""Effects and futures under an action, against what the system's equations say."""

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.networks import settings as network_settings
from systems import chain

TABLE = pd.DataFrame(chain(4000), columns=list("abc")) * [2.0, 1.0, 3.0] + [10.0, 0.0, -5.0]


@pytest.fixture(scope="module")
def found():
    return fc.discover(TABLE, 2, forecaster="linear")


def test_an_effect_is_the_coefficient_in_the_datas_units(found):
    effect = found.effect("a", "b", 1)
    assert effect.shift == pytest.approx(TABLE["a"].std(), rel=1e-3)
    # 0.8 per unit of the unscaled a, which is half of the scaled one
    assert effect.mean == pytest.approx(0.4 * effect.shift, rel=0.05)
    assert effect.sd == pytest.approx(0, abs=1e-5)  # linear: the same everywhere
    assert len(effect.samples) == 200
    assert "common cause" in effect.caveat


def test_the_effect_of_a_curve_differs_between_windows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    y = np.concatenate([[0], np.abs(x[:-1])]) + 0.3 * rng.normal(size=3000)
    found = fc.discover(np.column_stack([x, y]), 1, forecaster="additive")
    effect = found.effect("x0", "x1", 1)
    low, high = np.quantile(effect.samples, [0.05, 0.95])
    assert low < -0.3 < 0.3 < high


def test_no_edge_no_effect(found):
    assert found.effect("c", "a", 1).mean == 0.0


@pytest.mark.parametrize("arguments", [("z", "b", 1), ("a", "z", 1), ("a", "b", 0), ("a", "b", 3)])
def test_an_effect_that_cannot_be_is_refused(found, arguments):
    with pytest.raises(fc.InputError):
        found.effect(*arguments)


def test_holding_a_cause_moves_its_effects_after_their_lags_and_nothing_else(found):
    plain, held = found.forecast(8), found.simulate_do({"a": 14.0}, 8)
    difference = (held - plain).to_numpy()
    np.testing.assert_allclose(held["a"], 14.0, rtol=1e-5)
    assert abs(difference[0, 1:]).max() == 0
    # a is 2 raw units above its mean: b follows by 0.8 * 2 from the second step on
    assert held["b"].iloc[2:].mean() == pytest.approx(1.6, abs=0.15)
    assert abs(difference[1:3, 2]).max() < 0.4  # c waits for b, two steps more
    assert held["c"].iloc[-1] < plain["c"].iloc[-1] - 2
    assert "common cause" in held.attrs["caveat"]


def test_a_course_can_be_given_step_by_step(found):
    held = found.simulate_do({"a": [12.0, 8.0, 12.0]}, 3)
    np.testing.assert_allclose(held["a"], [12.0, 8.0, 12.0], rtol=1e-5)


def test_without_an_action_it_is_the_forecast(found):
    pd.testing.assert_frame_equal(found.simulate_do({}, 4), found.forecast(4))


def test_noisy_futures_spread_as_the_noise_does_and_repeat_with_the_seed(found):
    drawn = found.simulate_do({}, 2, draws=2000, seed=1)
    first = drawn.xs(1, level="step")
    assert first["b"].std() == pytest.approx(1.0, rel=0.1)
    assert first["b"].mean() == pytest.approx(found.forecast(1)["b"].iloc[0], abs=0.1)
    pd.testing.assert_frame_equal(drawn, found.simulate_do({}, 2, draws=2000, seed=1))


@pytest.mark.parametrize(
    ("do", "sentence"),
    [({"z": 1.0}, "Unknown variable"), ({"a": [1.0, 2.0]}, "one number or at 4 numbers")],
)
def test_an_action_that_cannot_be_is_refused(found, do, sentence):
    with pytest.raises(fc.InputError, match=sentence):
        found.simulate_do(do, 4)


def reached_from(graph, held):
    """What there is a path to, through edges at any lag."""
    found, left = {held}, [held]
    while left:
        after = set(graph.edges.loc[graph.edges["source"] == left.pop(), "target"]) - found
        found |= after
        left += after
    return found


@pytest.mark.parametrize("kind", ["auto", "linear", "additive", "dictionary", "trees", "mlp"])
def test_what_has_no_path_from_what_is_held_does_not_move(kind):
    rng = np.random.default_rng(1)
    values = chain(500)
    values = np.column_stack([values, rng.normal(size=(500, 2))])
    values[1:, 3] += values[:-1, 0] * values[:-1, 2]  # d follows a product
    run = fc.discover(
        pd.DataFrame(values, columns=list("abcde")), 2, forecaster=kind, preset="quick"
    )
    assert run.graph.edges["source"].isin(["a"]).any()
    plain = run.forecast(6)
    for held in "abcde":
        moved = run.simulate_do({held: 3.0}, 6)
        free = [name for name in "abcde" if name not in reached_from(run.graph, held)]
        pd.testing.assert_frame_equal(plain[free], moved[free], check_exact=True)
    drawn = [run.simulate_do(do, 3, draws=20) for do in ({}, {"e": 3.0})]
    free = [name for name in "abcde" if name not in reached_from(run.graph, "e")]
    pd.testing.assert_frame_equal(drawn[0][free], drawn[1][free], check_exact=True)


PUBLISHED = network_settings.DeepTransformer(layers=1, width=8, training={"max_steps": 20})


@pytest.mark.parametrize("kind", ["transformer", "cnn", "vector", "pretrained", PUBLISHED])
def test_so_of_every_network_however_little_it_learned(kind, monkeypatch):
    monkeypatch.setattr(network_settings, "QUICK_STEPS", 20)
    table = pd.DataFrame(chain(300), columns=list("abc"))
    run = fc.discover(
        table, 2, forecaster=kind, preset="quick", require=["a -> b @ 1"], forbid=["* -> c"]
    )
    plain, moved = run.forecast(4), run.simulate_do({"a": 3.0}, 4)
    assert (plain["b"].iloc[1:] != moved["b"].iloc[1:]).all()
    pd.testing.assert_series_equal(plain["c"], moved["c"], check_exact=True)


def test_so_beside_a_season_and_gaps():
    values = chain(960)
    values[:, 2] += 4 * np.sin(2 * np.pi * np.arange(960) / 24)
    values[100:103, 0] = values[500:520, 1] = np.nan
    table = pd.DataFrame(values, columns=list("abc"))
    run = fc.discover(table, 2, season=[24], forbid=["* -> c"])
    plain, moved = run.forecast(24), run.simulate_do({"a": 3.0}, 24)
    assert plain["c"].max() - plain["c"].min() > 6  # the season goes on
    assert (plain["b"].iloc[1:] != moved["b"].iloc[1:]).all()
    pd.testing.assert_series_equal(plain["c"], moved["c"], check_exact=True)


def test_a_required_edge_moves_its_target_and_a_forbidden_one_does_not():
    table = pd.DataFrame(chain(600), columns=list("abc"))
    run = fc.discover(
        table, 2, forecaster="linear", require=["c -> a @ 2"], forbid=["a -> b", "b -> b"]
    )
    moved = run.simulate_do({"c": 30.0}, 4) - run.forecast(4)
    assert (moved["a"].iloc[:2] == 0).all()
    assert (moved["a"].iloc[2:] != 0).all()
    assert run.effect("a", "b", 1).mean == 0.0
    assert (run.causal.forecaster.allowed[1, :, 0] == 0).all()


def test_a_saved_run_has_the_same_futures(found, tmp_path):
    again = fc.load(found.save(tmp_path / "run"))
    for ask in (
        lambda run: run.forecast(4),
        lambda run: run.simulate_do({"a": 14.0}, 4, draws=5),
        lambda run: run.forecast(2, bands=True),
    ):
        pd.testing.assert_frame_equal(ask(found), ask(again))
    assert again.causal.forecast_by == found.causal.forecast_by


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"steps": 10**9}, "At most 5,000 steps can be forecast, found 1000000000"),
        ({"steps": 10**5}, "At most 5,000 steps"),
        ({"steps": 10**400}, "At most 5,000 steps"),
        ({"steps": float("nan")}, "must be a whole number, found nan"),
        ({"steps": 2.5}, "must be a whole number, found 2.5"),
        ({"steps": True}, "must be a whole number, found True"),
        ({"steps": "x" * 9000}, "must be a whole number"),
        ({"steps": 0}, "at least 1, found 0"),
        ({"steps": 3000, "bands": True}, "At most 2,000 steps of 2,000 futures"),
    ],
)
def test_a_forecast_that_would_never_end_is_refused(found, asked, sentence):
    with pytest.raises(fc.InputError, match=sentence) as caught:
        found.forecast(**asked)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("draws", [10**9, -1, 0.5, float("nan")])
def test_futures_without_number_are_refused(found, draws):
    with pytest.raises(fc.InputError, match=r"draws|futures"):
        found.simulate_do({}, steps=2, draws=draws)


@pytest.mark.parametrize("number", ["x", 1.5, True, float("nan"), None])
@pytest.mark.parametrize(
    "ask",
    [
        lambda run, number: run.response("a", number),
        lambda run, number: run.variance_shares(number),
        lambda run, number: run.effect("a", "b", number),
        lambda run, number: run.effect("a", "b", number, total=True),
        lambda run, number: run.power(repeats=number or 0),
        lambda run, number: run.evaluate(number, data=TABLE[:300]),
    ],
    ids=["response", "shares", "effect", "total", "power", "evaluate"],
)
def test_what_is_no_whole_number_of_rows_is_refused(found, ask, number):
    told = r"at least 1|must be 1 to|between 1 and|must be a whole number"
    with pytest.raises(fc.InputError, match=told):
        ask(found, number)


def test_whole_numbers_may_be_those_of_numpy(found):
    assert found.effect("a", "b", np.int64(1)).change == found.effect("a", "b", 1).change
    assert len(found.evaluate(np.int64(2), np.int64(1), data=TABLE[:300]).table)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (fc.Push(float("nan")), "push of 'a' must be a number"),
        (fc.Push("much"), "push of 'a' must be a number"),
        (fc.Push(1.0, step=1.5), "must be a whole number"),
        (fc.Push(1e12), "more than 1,000,000 standard deviations"),
        (float("nan"), "'a' must be held at numbers"),
        ([1.0, float("inf"), 2.0], "'a' must be held at numbers"),
        ("high", "'a' must be held at numbers"),
    ],
)
def test_what_cannot_be_done_to_a_variable_is_refused(found, asked, sentence):
    with pytest.raises(fc.InputError, match=sentence):
        found.simulate_do({"a": asked}, steps=3)

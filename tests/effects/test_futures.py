"""Futures of the causal forecaster: what has no path does not move, whoever forecasts."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from forecause.data import Panel
from forecause.data.summary import DataSummary
from forecause.data.windows import Windows
from forecause.effects.actions import Push
from forecause.effects.answering import CAVEAT, Models
from forecause.effects.direct_effect import effect
from forecause.effects.futures import bands, future
from forecause.effects.responses import response
from forecause.errors import InputError
from forecause.forecast.forecaster import FitData, Forecaster
from forecause.forecast.guard import fit_causal
from forecause.forecast.linear import Linear
from forecause.forecast.selection import Fitted
from forecause.graph.lagged import LaggedGraph
from systems import chain

EDGES = [("a", "b", 1), ("b", "c", 2), ("c", "c", 1)]


def run_of(values, edges, joint=None, labels=(), names=tuple("abc"), max_lag=2, with_causal=True):
    """As much of a run as futures need, its graph being given."""
    panel = Panel.from_arrays([np.asarray(values, dtype=float)], list(names))
    if labels:
        panel = _replaced(panel, labels=labels)
    windows = Windows.of(panel, max_lag)
    graph = LaggedGraph.from_edges(list(panel.coding.variables), max_lag, edges)
    early, late = windows.split(0.2)
    settings = Linear(labels=panel.coding.label_columns(windows.scale.mean))
    model = settings.build(windows.shape)
    model.fit(FitData(early, late))
    fitted = Fitted(model, None, early, late, None, joint)
    losses = pd.DataFrame({"linear": model.noise_variance[panel.coding.first], "chosen": "linear"})
    return SimpleNamespace(
        graph=graph,
        forecaster=model,
        causal=fit_causal(windows, graph, fitted) if with_causal else None,
        data=DataSummary.of(windows),
        timing={},
        panel=panel,
        windows=windows,
        losses=losses,
    )


def _replaced(panel, **changes):
    from dataclasses import fields

    kept = {field.name: getattr(panel, field.name) for field in fields(panel) if field.init}
    return type(panel)(**{**kept, **changes})


def curved(rows=1500, seed=0):
    """b follows a^2, c the product of a and b; d has nothing to do with them."""
    x = np.random.default_rng(seed).normal(size=(rows, 4))
    x[1:, 1] = 0.8 * x[:-1, 0] ** 2 + 0.3 * x[1:, 1]
    x[1:, 2] = x[:-1, 0] * x[:-1, 1] + 0.3 * x[1:, 2]
    return x


@pytest.fixture(scope="module")
def linear_run():
    return run_of(chain(2000), EDGES)


@pytest.fixture(scope="module")
def curved_run():
    edges = [("a", "b", 1), ("a", "c", 1), ("b", "c", 1), ("d", "d", 1)]
    return run_of(curved(), edges, joint=frozenset({2}), names=tuple("abcd"))


@pytest.mark.parametrize("draws", [0, 50])
def test_what_has_no_path_does_not_move_at_all(linear_run, curved_run, draws):
    for run, held, free in ((linear_run, "b", ["a"]), (curved_run, "b", ["a", "d"])):
        plain = future(run, 6, draws=draws, seed=3)
        moved = future(run, 6, do={held: 2.0}, draws=draws, seed=3)
        pd.testing.assert_frame_equal(plain[free], moved[free], check_exact=True)
        np.testing.assert_allclose(moved[held], 2.0, rtol=1e-5)
        assert (plain["c"] != moved["c"]).any()


def test_nothing_moves_under_no_action(curved_run):
    pd.testing.assert_frame_equal(
        future(curved_run, 4), future(curved_run, 4, do={}), check_exact=True
    )


def test_a_rival_forecasts_and_the_causal_forecaster_says_what_an_action_does():
    run = run_of(chain(1000), [("a", "b", 1), ("c", "c", 1)])  # b -> c is not in the graph
    assert run.causal.forecast_by[2] != "causal"
    plain, moved = future(run, 6), future(run, 6, do={"b": 3.0})
    assert plain.attrs["forecast_by"]["c"] == run.causal.forecast_by[2]
    pd.testing.assert_frame_equal(plain[["a", "c"]], moved[["a", "c"]], check_exact=True)
    np.testing.assert_allclose(moved["b"], 3.0, rtol=1e-5)
    by_dense = run.causal.guarded(run.data.sampled.past)[:, 2]
    by_cause = run.causal.forecaster(run.data.sampled.past)[:, 2]
    assert np.abs(by_dense - by_cause).max() > 0.3


def test_the_forecast_of_a_curved_system_is_the_mean_of_what_may_happen(curved_run):
    assert not Models.of(curved_run).causal.is_straight
    ahead = future(curved_run, 5)
    # a has mean 0, so b = .8 a^2 has mean .8 however long the wait; without noise it would be 0
    assert ahead["b"].iloc[2:].mean() == pytest.approx(0.8, abs=0.1)
    drawn = future(curved_run, 5, draws=4000, seed=1).groupby("step").mean()
    np.testing.assert_allclose(ahead["b"], drawn["b"], atol=0.12)


def test_the_first_step_has_no_chance_in_it(curved_run):
    past = ((curved_run.data.latest[0] - curved_run.data.mean) / curved_run.data.sd).astype(
        np.float32
    )
    expected = curved_run.causal.guarded(past[None])[0] * curved_run.data.sd + curved_run.data.mean
    for steps in (1, 5):
        np.testing.assert_allclose(future(curved_run, steps).iloc[0], expected, atol=1e-5)


def test_bands_are_as_wide_as_blocked_residuals_say(linear_run):
    first = bands(linear_run, 2).query("variable == 'b' and step == 1").iloc[0]
    noise = np.sqrt(linear_run.causal.forecaster.noise_variance[1]) * linear_run.data.sd[1]
    assert first["high_80"] - first["low_80"] == pytest.approx(2 * 1.2816 * noise, rel=0.1)


def test_the_effect_says_that_it_is_direct(linear_run):
    through_b = effect(linear_run, "a", "c", 2)  # a moves c by way of b alone
    assert through_b.mean == 0.0
    assert "direct" in repr(through_b)
    assert effect(linear_run, "a", "b", 1).mean == pytest.approx(0.8, rel=0.1)


def test_an_old_run_answers_by_its_dense_forecaster_and_says_so():
    run = run_of(chain(600), EDGES, with_causal=False)
    told = future(run, 3, do={"a": 1.0})
    assert "without a causal forecaster" in told.attrs["caveat"]
    assert future(run, 3).attrs["caveat"] == CAVEAT
    assert len(bands(run, 2)) == 6


def test_labels_are_drawn_by_the_same_chance_in_both_arms():
    from forecause.data.variables import Label

    rng = np.random.default_rng(5)
    level = rng.integers(2, size=800)
    y = np.concatenate([[0.0], 2.0 * level[:-1]]) + rng.normal(size=800)
    values = np.column_stack([np.eye(2)[level], y, rng.normal(size=800)])
    run = run_of(
        values,
        [("w", "y", 1)],
        labels=(Label("w", ("no", "yes"), 0),),
        names=("w=no", "w=yes", "y", "z"),
        max_lag=1,
    )
    plain, moved = (future(run, 4, do=do, draws=300, seed=2) for do in ({}, {"z": 5.0}))
    pd.testing.assert_frame_equal(plain.drop(columns="z"), moved.drop(columns="z"))
    assert set(np.unique(plain["w=yes"].round(6))) == {0.0, 1.0}
    yes = future(run, 4, do={"w": "yes"})
    assert yes["y"].iloc[1:].mean() == pytest.approx(2.0, abs=0.2)
    np.testing.assert_allclose(yes["w=yes"], 1.0, atol=1e-5)


def test_a_value_that_runs_away_does_not_move_what_has_no_path():
    class Unstable(Forecaster):
        def forward(self, past, rules=None, domain=None):
            weight = np.diag([50.0, 0.5, 0.5]).astype(np.float32)
            return past[:, -1] @ weight

        def fit(self, fit_data):
            raise NotImplementedError

    run = run_of(chain(300), EDGES)
    model = Unstable((2, 3), Linear())
    run.causal = None
    run.forecaster = model
    plain, moved = future(run, 200), future(run, 200, do={"a": [1.0] * 199 + [2.0]})
    assert np.isfinite(plain.to_numpy()).all()
    pd.testing.assert_frame_equal(plain[["b", "c"]], moved[["b", "c"]], check_exact=True)


def test_a_push_is_a_response_on_top_of_the_forecast(linear_run):
    plain = future(linear_run, 4)
    pushed = future(linear_run, 4, do={"a": Push(2.0)})
    told = response(linear_run, "a", 3, amount=2.0)
    moved = (pushed - plain)["b"].to_numpy()
    assert moved[0] == pytest.approx(0.0, abs=1e-5)
    expected = told.table.query("target == 'b'")["effect"]
    np.testing.assert_allclose(moved[1:], expected, atol=1e-5)
    assert (pushed - plain)["a"].iloc[0] == pytest.approx(2.0, abs=1e-5)
    with pytest.raises(InputError, match="must be 1 to 4"):
        future(linear_run, 4, do={"a": Push(1.0, step=9)})

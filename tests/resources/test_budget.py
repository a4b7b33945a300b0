"""Keeping to a time: what is cut first, and that a run says so."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forecause as fc
from forecause.config.options import parse_budget
from forecause.errors import InputError
from forecause.forecast.linear import Linear
from forecause.networks.settings import MLP, DeepTransformer, Transformer
from forecause.resources.cost import LEAST_EFFORT, USEFUL_STEPS, Cost, plan_for, slowdown
from systems import chain, edge_set

STEPS = {"mlp": 6000, "transformer": 6000}
COST = Cost(
    {"start": 1.0, "tests": 9.0, "linear": 1.0, "mlp": 60.0, "transformer": 600.0}, 1, STEPS
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1.5h", 5400), ("45", 45), (30, 30), (2.5, 2.5)],
)
def test_durations_are_read(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5m", "0", "10 days", "m", -3])
def test_other_durations_are_refused(text):
    with pytest.raises(InputError, match="time budget like 90s, 10m or 2h, found"):
        parse_budget(text)


def test_time_enough_changes_nothing():
    plan = plan_for(1000, COST, "auto")
    assert (plan.networks, plan.effort, plan.notes) == ({}, 1.0, ())


def test_the_costly_network_is_cut_first():
    plan = plan_for(300, COST, "auto")
    assert set(plan.networks) == {"transformer"}
    share = plan.networks["transformer"]
    assert share.steps == pytest.approx(6000 * (270 - 11 - 60) / 600, abs=1)
    assert not share.halved
    assert plan.notes[0].startswith("To keep to 5 min: 1,9")


def test_too_little_time_leaves_networks_out_or_halves_the_one_asked_for():
    plan = plan_for(20, COST, "auto")
    assert plan.leaves_out("transformer")
    assert "no transformer" in plan.notes[0]
    asked = plan_for(20, COST, "transformer")
    assert not asked.leaves_out("transformer")
    assert asked.networks["transformer"].halved
    assert 1 <= asked.networks["transformer"].steps < USEFUL_STEPS


def test_tests_are_cut_when_they_alone_would_take_too_long():
    plan = plan_for(10, COST, "auto")
    assert LEAST_EFFORT <= plan.effort == pytest.approx(9 / 2 / 11)
    assert "of the windows are read and tested" in plan.notes[0]


@given(
    st.floats(1, 10_000),
    st.lists(st.floats(0.01, 10_000), min_size=5, max_size=5),
    st.integers(1, 5),
)
def test_what_is_planned_fits_the_budget_unless_the_fixed_part_does_not(budget, seconds, fits):
    cost = Cost(dict(zip(COST.seconds, seconds, strict=True)), 1, STEPS)
    plan = plan_for(budget, replace(cost, fits=fits), "auto")
    fixed = sum(seconds[:3]) * plan.effort
    networks = 0.0
    for kind in STEPS:
        if not plan.leaves_out(kind):
            networks += fits * (plan.seconds(kind) or cost.seconds[kind])
    assert networks <= max(0.0, 0.9 * budget - fixed) * (1 + 1e-9)


def test_the_plan_is_applied_to_a_networks_settings():
    plan = plan_for(300, COST, "auto")
    settings = plan.applied(Transformer())
    assert settings.training.max_steps == plan.networks["transformer"].steps
    assert settings.width == Transformer().width
    assert plan.applied(MLP()) == MLP()
    assert plan.applied(Linear()) == Linear()


def test_a_network_without_a_half_is_trained_for_fewer_steps_of_its_own_width():
    cost = Cost({"start": 1.0, "deep-transformer": 3000.0}, 1, {"deep-transformer": 6000},
                frozenset({"deep-transformer"}))  # fmt: skip
    plan = plan_for(60, cost, "deep-transformer")
    settings = plan.applied(DeepTransformer())
    assert settings.width == DeepTransformer().width
    assert settings.training.most_steps(10**6) == pytest.approx(6000 * 53 / 3000, abs=1)


def test_half_a_network():
    assert MLP(hidden=32).halved().hidden == 16
    half = Transformer(width=32, heads=4).halved()
    assert (half.width, half.heads) == (16, 2)


def test_a_run_with_a_budget_says_what_was_cut_and_still_finds_the_link(monkeypatch):
    """As on a slow machine, whatever this one is: half a second a step, of which few fit."""
    monkeypatch.setattr("forecause.resources.cost.matmul_speed", lambda: 1e10)
    monkeypatch.setattr("forecause.resources.cost.step_seconds", lambda *_, **__: 0.5)
    monkeypatch.setattr("forecause.method.slowdown", lambda: 1.0)
    values = np.random.default_rng(0).normal(size=(1500, 4))
    values[1:, 1] += values[:-1, 0]
    found = fc.discover(values, 2, forecaster="transformer", budget="10m")
    assert found.config.run.budget == 600.0
    assert found.forecaster.settings.training.max_steps < Transformer().training.max_steps
    assert any(note.startswith("To keep to 10 min:") for note in found.data.notes)
    assert edge_set(found.graph) == {("x0", "x1", 1)}


def test_the_published_model_within_seconds_still_gives_its_three_edges_per_target():
    table = pd.DataFrame(chain(120), columns=list("abc"))
    found = fc.discover(table, max_lag=1, preset="paper", budget="2s")
    assert (found.graph.edges.groupby("target").size() == 3).all()
    assert "of 6,000 steps" in " ".join(found.data.notes)


def test_a_machine_that_takes_twice_as_long_gives_half_the_steps_in_the_same_time():
    kind = "deep-transformer"
    cost = Cost({"tests": 4.0, kind: 1000.0}, 1.0, {kind: 6000}, frozenset({kind}))
    idle, busy = (plan_for(180, replace(cost, slowdown=slow), kind) for slow in (1.0, 2.0))
    [one], [other] = idle.networks.values(), busy.networks.values()
    assert pytest.approx(one.steps / other.steps, rel=0.01) == (180 * 0.9 - 4.0) / (90 * 0.9 - 4.0)
    assert other.seconds == pytest.approx(2 * (90 * 0.9 - 4.0))


def test_how_busy_the_machine_is_shows_in_seconds_for_each_at_its_best(monkeypatch):
    class Clock:
        """Of every three seconds that pass this process gets one."""

        now = 0.0

        def perf_counter(self):
            return 3 * self.now

        def process_time(self):
            self.now += 0.001  # of one product
            return self.now

    twice_as_fast = 2 * 512**3 / 0.0005
    monkeypatch.setattr("forecause.resources.cost.time", Clock())
    monkeypatch.setattr("forecause.resources.cost.matmul_speed", lambda: twice_as_fast)
    assert slowdown() == pytest.approx(6.0, rel=0.15)

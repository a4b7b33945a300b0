"""What is said to be expected before a run."""

from dataclasses import replace

import numpy as np
import pytest

from forecause.data import Panel, Windows
from forecause.errors import InputError
from forecause.forecast.additive import Additive
from forecause.forecast.linear import Linear
from forecause.method import discover
from forecause.networks.settings import MLP
from forecause.resources.cost import (
    LEARNED,
    PRODUCTS,
    SCREEN_SHARE,
    TESTS,
    Cost,
    expected_cost,
    fit_seconds,
    in_words,
    matmul_speed,
    memory_gb,
)
from systems import chain


def windows_of(rows, variables, max_lag):
    values = np.random.default_rng(0).normal(size=(rows, variables))
    return Windows.of(Panel.from_arrays([values], [f"v{i}" for i in range(variables)]), max_lag)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (42.4, "42 s"), (150, "2 min"), (5400, "1.5 h")]
)
def test_durations_are_told_as_people_say_them(seconds, words):
    assert in_words(seconds) == words


def test_the_sentence_names_the_range_and_of_long_work_the_costliest_stage():
    cost = Cost({TESTS: 8.0, "additive": 32.0}, 0.64)
    assert cost.sentence == (
        "Expecting about 16 to 74 s, mostly for the forecaster additive, and 0.6 GB."
    )
    short = Cost({TESTS: 1.0, "mlp": 2.0}, 0.5, unsure=frozenset({"mlp"}))
    assert short.sentence == "Expecting about 1 to 7 s and 0.5 GB."


def test_the_range_counts_how_busy_others_keep_the_machine_and_may():
    cost = Cost({TESTS: 8.0}, 0.5, slowdown=10.0)
    assert cost.sentence == (
        "Expecting about 21 s to 4 min, mostly for the tests, and 0.5 GB (other programs keep this "
        "machine busy)."
    )
    idle = Cost({TESTS: 8.0, "mlp": 60.0}, 0.5, unsure=frozenset({"mlp"}))
    busy = replace(idle, slowdown=4.0)
    assert busy.least == pytest.approx(4 / 1.5 * idle.least)
    assert busy.most_of_plain == pytest.approx(4 * 1.5 * idle.most_of_plain)
    assert busy.most == pytest.approx(4 * 1.5 * idle.most)


def test_what_waits_for_a_sign_of_joint_functions_counts_at_most_alone():
    known = {"steps": {"mlp": 1000}, "earliest": {"mlp": 0.5}}
    cost = Cost({TESTS: 10.0, "mlp": 60.0}, 0.64, unsure=frozenset({"mlp"}), **known)
    assert (cost.least, cost.most_of_plain, cost.most) == pytest.approx((4, 20, 20 + 108))
    assert "4 to 20 s, up to 2 min where effects are joint, mostly for" in cost.sentence


def test_a_network_that_was_asked_for_may_stop_early():
    known = {"steps": {"mlp": 1000}, "earliest": {"mlp": 0.5}}
    cost = Cost({TESTS: 10.0, "mlp": 60.0}, 0.64, **known)
    assert (cost.least, cost.most) == pytest.approx((4 + 12, 20 + 108))
    twice = replace(cost, fits=2)
    assert (twice.least, twice.most) == pytest.approx((4 + 24, 20 + 216))


def test_every_stage_is_there_and_networks_have_steps():
    cost = expected_cost(windows_of(600, 3, 2), [Linear(), Additive(), MLP()])
    assert set(cost.seconds) == {TESTS, PRODUCTS, LEARNED, "linear", "additive", "mlp"}
    assert cost.unsure == {PRODUCTS, "mlp", LEARNED}
    assert cost.steps == {"mlp": 6000}
    assert cost.earliest == {"mlp": 400 / 6000}  # it has rivals
    assert all(value > 0 for value in cost.seconds.values())


def test_the_cost_of_closed_forms_grows_with_rows_until_they_are_sampled():
    few, many = windows_of(1000, 40, 5), windows_of(4000, 40, 5)
    speed = matmul_speed()
    solving = 25 * 800**3 / 3 / speed
    grown = (fit_seconds(many, 800) - solving) / (fit_seconds(few, 800) - solving)
    assert grown == pytest.approx(3995 / 995)
    assert fit_seconds(many, 20_000) == pytest.approx((4e11 + 25 * 20_000**3 / 3) / speed)


def test_a_table_on_disk_does_not_count_as_memory(tmp_path):
    windows = windows_of(1000, 5, 1)
    path = tmp_path / "table.npy"
    np.save(path, windows.panel.values)
    mapped = Windows.of(Panel.of(path), 1)
    assert memory_gb(windows, [Linear()]) - memory_gb(mapped, [Linear()]) == pytest.approx(4e-5)


def test_very_many_inputs_are_screened_at_a_cost_that_grows_with_inputs_times_targets():
    wide = windows_of(3000, 2200, 2)
    assert memory_gb(wide, [Linear()]) < 3.0  # a Gram matrix of all inputs alone has its parts
    screening = 2 * 4 * len(wide) * 4400 * 2200 / (SCREEN_SHARE * matmul_speed())
    assert fit_seconds(wide, 4400) == pytest.approx(screening)


def test_what_the_machine_cannot_hold_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("forecause.resources.cost.machine_gb", lambda: 0.01)
    monkeypatch.setattr("forecause.resources.fitting.fit_best", None)
    with pytest.raises(InputError, match="GB of memory, and this machine has"):
        discover(chain(200), max_lag=1, forecaster="linear")

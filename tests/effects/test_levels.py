"""Labels as causes and as outcomes: a level stands in place of the others."""

import json

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from mixed import mixed

SHIFT = {"sun": 0.9, "rain": 0.0, "snow": -0.9}  # of y, two rows later


def contrast(level, shares):
    """What y gains where a level holds instead of the others, by how often these do."""
    others = {name: share for name, share in shares.items() if name != level}
    usual = sum(share * SHIFT[name] for name, share in others.items()) / sum(others.values())
    return SHIFT[level] - usual


@pytest.fixture(scope="module")
def table():
    return mixed(3000)


@pytest.fixture(scope="module", params=["linear", "additive"])
def run(request, table):
    return fc.discover(fc.read(table, labels=["weather"]), 2, forecaster=request.param)


@pytest.mark.parametrize("level", SHIFT)
def test_a_level_moves_a_number_by_what_it_differs_from_the_others(run, table, level):
    true = contrast(level, table["weather"].value_counts(normalize=True))
    for told in (
        run.effect(f"weather={level}", "y", 2),
        run.effect(f"weather={level}", "y", 2, total=True),
    ):
        assert told.change == pytest.approx(true, abs=0.12)
        assert told.low < true < told.high
        assert told.high - told.low < 0.4
    assert run.effect(f"weather={level}", "y", 2).mean == pytest.approx(true, abs=0.12)
    assert run.effect(f"weather={level}", "z", 1).mean == 0.0


def test_what_levels_are_pushed_to_adds_up_to_nothing(run):
    told = run.response("x", 3).table
    levels = told[told["target"].str.startswith("weather=")]
    after_one = levels[levels["after"] == 1].set_index("target")["effect"]
    assert after_one["weather=sun"] > 0.2
    assert after_one["weather=rain"] < -0.2
    assert after_one.sum() == pytest.approx(0.0, abs=0.01)


def test_a_number_that_makes_a_level_likely_has_an_effect_on_its_probability(table):
    run = fc.discover(fc.read(table, labels=["weather"]), 2, forecaster="additive")
    told = run.effect("x", "weather=sun", 1)
    assert told.mean == pytest.approx(run.response("x", 1).at("weather=sun", 1)["effect"], abs=0.05)
    assert 0.2 < told.low < told.change < told.high < 0.4


def test_a_level_that_is_held_acts_in_every_row(run, table):
    true = contrast("sun", table["weather"].value_counts(normalize=True))
    held = run.response("weather=sun", 5, held=True)
    assert held.at("y", 1)["effect"] == 0.0
    for after in (2, 3, 5):
        assert held.at("y", after)["effect"] == pytest.approx(true, abs=0.12)
    once = run.response("weather=sun", 5)
    assert once.at("y", 3)["effect"] == pytest.approx(0.0, abs=0.05)
    assert "weather=sun instead of another level" in once.sentence
    assert set(once.direct_share.index) == {"x", "y", "z"}


def test_two_levels_say_what_the_number_0_or_1_says():
    rng = np.random.default_rng(0)
    on = (rng.random(1500) < 0.3).astype(float)
    y = rng.normal(size=1500)
    y[1:] += 0.8 * on[:-1]
    data = pd.DataFrame({"on": on, "y": y})
    number = fc.discover(data, 1, forecaster="linear").effect("on", "y", 1)
    run = fc.discover(fc.read(data, labels=["on"]), 1, forecaster="linear")
    (level,) = [name for name in run.data.columns if name.startswith("on=1")]
    label = run.effect(level, "y", 1)
    assert label.shift == 1.0
    assert label.change == pytest.approx(number.change / number.shift, abs=0.01)
    width = (number.high - number.low) / number.shift
    assert label.high - label.low == pytest.approx(width, rel=0.25)


def test_questions_about_labels_that_make_no_sense_are_refused(run):
    with pytest.raises(fc.InputError, match="name one of its levels: weather=sun, weather="):
        run.effect("weather", "y", 2)
    with pytest.raises(fc.InputError, match="Unknown variable 'weather=fog'"):
        run.effect("weather=fog", "y", 2)
    with pytest.raises(fc.InputError, match="leave the amount out"):
        run.response("weather=sun", 3, amount=2.0)
    with pytest.raises(fc.InputError, match="through itself"):
        run.response("weather=sun", 3, through="weather")


def test_the_command_tells_the_effect_of_every_level(run, table, tmp_path, command):
    folder = run.save(tmp_path / "run")
    code, out, _ = command("effect", folder, "weather", "y", "--lag", "2", "--json")
    levels = [f"weather={name}" for name in run.data.labels[0].levels]
    assert code == 0
    assert [row["source"] for row in json.loads(out)] == levels
    code, out, _ = command("effect", folder, "weather=sun", "y")
    assert code == 0
    assert "weather=sun instead of another level" in out

"""Reading columns of labels into a panel."""

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.data import Panel, Windows
from forecause.data.variables import Label, Variables


def weather(rows=60, levels=("sun", "rain", "snow")):
    return np.array(levels, dtype=object)[np.arange(rows) % len(levels)]


def table(rows=60, **columns):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=rows), **columns, "b": rng.normal(size=rows)})


def test_a_label_becomes_one_column_per_level_in_its_place():
    panel = Panel.of(table(weather=weather()), labels=["weather"])
    assert panel.variables == ("a", "weather=sun", "weather=rain", "weather=snow", "b")
    assert panel.coding.variables == ("a", "weather", "b")
    assert panel.coding.of_column.tolist() == [0, 1, 1, 1, 2]
    levels = panel.values[:, 1:4]
    np.testing.assert_array_equal(levels.sum(1), 1)
    np.testing.assert_array_equal(levels.argmax(1), np.arange(60) % 3)


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (np.arange(60) % 3 * 10, ("0", "10", "20")),
        (np.array([2.0, 1.0] * 30), ("1", "2")),
        (np.array([0.5, 0.25] * 30), ("0.25", "0.5")),
        (np.arange(60) % 2 == 0, ("False", "True")),
        (pd.Categorical(weather(), categories=["snow", "sun", "rain"]), ("sun", "rain", "snow")),
    ],
)
def test_numbers_keep_their_order_and_text_that_of_its_appearance(values, levels):
    panel = Panel.of(table(weather=values), labels=["weather"])
    assert panel.labels == (Label("weather", levels, 1),)


def test_other_names_for_the_same_levels_give_the_same_values():
    one = Panel.of(table(weather=weather()), labels=["weather"])
    two = Panel.of(table(weather=weather(levels=("z", "y", "x"))), labels=["weather"])
    np.testing.assert_array_equal(one.values, two.values)


def test_a_label_comes_out_of_a_csv_and_may_be_missing_there(tmp_path):
    data = table(weather=weather())
    data.loc[[3, 7], "weather"] = None
    data.to_csv(tmp_path / "data.csv", index=False)
    panel = Panel.of(tmp_path / "data.csv", labels="weather")
    assert np.isnan(panel.values[[3, 7], 1:4]).all()
    assert np.isfinite(panel.values[4]).all()
    windows = Windows.of(panel, 1)
    assert not {3, 4, 7, 8} & set(windows.rows.tolist())


def test_several_tables_share_their_levels():
    parts = [
        table(weather=weather(levels=("sun", "rain"))),
        table(weather=weather(levels=("fog",))),
    ]
    panel = Panel.of(parts, labels=["weather"])
    assert panel.labels[0].levels == ("sun", "rain", "fog")
    assert panel.values[60:, 3].all()


def test_rare_levels_are_pooled_or_missing_and_the_user_is_told():
    cells = weather()
    cells[:12] = ["fog", "hail"] * 6
    pooled = Panel.of(table(weather=cells), labels=["weather"])
    assert pooled.labels[0].levels == ("sun", "rain", "snow", "other")
    assert pooled.values[:12, 4].all()
    assert any("('fog', 'hail') were pooled as 'other'" in note for note in pooled.notes)
    cells = weather()
    cells[:4] = "fog"
    missing = Panel.of(table(weather=cells), labels=["weather"])
    assert sorted(missing.labels[0].levels) == ["rain", "snow", "sun"]
    assert np.isnan(missing.values[:4, 1:4]).all()
    assert any("('fog') count as missing" in note for note in missing.notes)


def test_interpolation_fills_numbers_but_never_makes_up_labels():
    data = table(weather=weather())
    data.loc[5, ["a", "weather"]] = [np.nan, None]
    panel = Panel.of(data, labels=["weather"], interpolate=2)
    assert np.isfinite(panel.values[5, 0])
    assert np.isnan(panel.values[5, 1:4]).all()


def test_a_label_sorted_by_series_stays_with_its_rows():
    data = table(weather=weather(), run=["p", "q"] * 30)
    panel = Panel.of(data, labels=["weather"], series="run")
    first = data[data["run"] == "p"]["weather"].tolist()
    names = [panel.labels[0].levels[level] for level in panel.values[:30, 1:4].argmax(1)]
    assert names == first


@pytest.mark.parametrize(
    ("column", "asked", "sentence"),
    [
        (["sun"] * 60, ["weather"], "holds only 'sun' in 10 rows or more, expected at least 2"),
        ([None] * 60, ["weather"], "holds no label in 10 rows or more"),
        (["sun"] * 55 + ["fog"] * 5, ["weather"], "holds only 'sun' in 10 rows or more"),
        (weather(), ["wether"], "no label column 'wether'.*did you mean 'weather'"),
        ([1, "1"] * 30, ["weather"], "differ in type but not in text"),
        ([[1], [2]] * 30, ["weather"], "must be text, numbers or booleans"),
    ],
)
def test_what_cannot_be_a_label_is_told_in_a_sentence(column, asked, sentence):
    with pytest.raises(fc.InputError, match=sentence):
        Panel.of({"a": np.arange(60.0), "weather": pd.Series(column)}, labels=asked)


def test_too_many_levels_are_refused():
    data = {"a": np.random.default_rng(0).normal(size=400), "hour": np.arange(400) % 24}
    with pytest.raises(fc.InputError, match="24 different labels, expected at most 12"):
        Panel.of(data, labels=["hour"])


def test_a_column_has_one_role():
    data = table(weather=weather())
    with pytest.raises(fc.InputError, match="was named as time, series or domain"):
        Panel.of(data, labels=["weather"], domain="weather")
    with pytest.raises(fc.InputError, match="name no columns"):
        Panel.of(Panel.of(data, labels=["weather"]), domain="weather")


def test_weights_turn_squared_errors_into_the_brier_score_of_the_levels():
    rng = np.random.default_rng(1)
    panel = Panel.of(table(weather=rng.choice(["x", "y", "z"], 60)), labels=["weather"])
    scale = Windows.of(panel, 1).scale
    chance = rng.dirichlet(np.ones(3), 60)
    truth = panel.values[:, 1:4]
    errors = np.zeros((60, 5))
    errors[:, 1:4] = ((truth - chance) / scale.sd[1:4]) ** 2
    brier = ((truth - chance) ** 2).sum(1).mean()
    reference = ((truth - scale.mean[1:4]) ** 2).sum(1).mean()
    weighted = (errors @ panel.coding.weights(scale.mean)).mean(0)
    assert weighted[1] == pytest.approx(brier / reference)


def test_numbers_alone_are_columns_of_their_own():
    coding = Variables.of(["a", "b"])
    assert coding.variables == ("a", "b")
    assert coding.of_column.tolist() == coding.first.tolist() == [0, 1]
    assert coding.numeric_columns.tolist() == [0, 1]


def test_a_text_column_of_few_values_offers_to_be_a_label():
    panel = Panel.of({"a": np.arange(60.0), "weather": pd.Series(weather())})
    assert panel.variables == ("a",)
    assert 'labels=["weather"]) makes it a variable' in panel.notes[0]

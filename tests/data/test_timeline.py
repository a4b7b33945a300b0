"""The time column: recognised, checked, and broken at its gaps."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from forecause.data import Panel
from forecause.errors import InputError

ROWS = 40
HOURS = pd.date_range("2024-01-31", periods=ROWS, freq="h")


def table(**columns) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(columns).assign(a=rng.normal(size=ROWS), b=rng.normal(size=ROWS))


def refusal(data, **roles) -> str:
    with pytest.raises(InputError) as caught:
        Panel.of(data, **roles)
    return str(caught.value)


@pytest.mark.parametrize(
    "columns",
    [
        {"when": HOURS},
        {"when": HOURS.tz_localize("Europe/Oslo")},
        {"when": HOURS.strftime("%Y-%m-%d %H:%M")},
        {"Date": HOURS.strftime("%d/%m/%Y %H:%M")},
        {"Timestamp": HOURS.astype("int64")},
        {"TIME": np.arange(ROWS) * 0.1},
        {"t": np.arange(ROWS)},
        {"step": np.arange(ROWS)[::1] + 7},
        {"index": range(ROWS)},
        {"Unnamed: 0": range(ROWS)},
        {"": range(1, ROWS + 1)},
        {"date": pd.date_range("2024-01-01", periods=ROWS).date},
        {"date": pd.period_range("2020-01", periods=ROWS, freq="M")},
        {"date": pd.date_range("2024-01-15", periods=ROWS).strftime("%Y%m%d").astype(int)},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_a_time_column_is_recognised_and_named_in_the_notes(columns):
    panel = Panel.of(table(**columns))
    assert panel.variables == ("a", "b")
    assert len(panel.time) == ROWS
    assert len(panel.starts) == 1
    (note,) = panel.notes
    assert "taken as the time" in note


@pytest.mark.parametrize(
    "columns",
    [
        {"t": np.random.default_rng(1).normal(size=ROWS)},
        {"step": [0, 1] * (ROWS // 2)},
        {"index": [0] * (ROWS // 2) + [1] * (ROWS // 2)},
        {"year": range(2000, 2000 + ROWS)},
        {"c": np.arange(ROWS) ** 2},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_a_variable_is_not_mistaken_for_the_time(columns):
    panel = Panel.of(table(**columns))
    assert panel.time is None
    assert panel.notes == ()
    assert len(panel.variables) == 3


def test_a_pandas_index_counts_as_the_time():
    for index in (
        HOURS,
        HOURS.rename("when"),
        HOURS.to_period("h"),
        pd.Index(range(5, 45), name="t"),
    ):
        panel = Panel.of(table().set_index(index))
        assert panel.variables == ("a", "b")
        assert len(panel.time) == ROWS
        assert "The index" in panel.notes[0]
    assert Panel.of(table().set_index(pd.Index(range(5, 45)))).time is None


def test_a_named_column_is_used_without_a_note():
    panel = Panel.of(table(year=range(2000, 2040)), time="year")
    assert panel.variables == ("a", "b")
    assert panel.time.tolist() == list(range(2000, 2040))
    assert panel.notes == ()


def test_one_of_two_date_columns_is_left_out():
    panel = Panel.of(table(written=HOURS, time=HOURS))
    assert panel.variables == ("a", "b")
    assert (
        "Column 'written' holds dates and was left out; if it is the time, say time=\"written\""
        in panel.notes[1]
    )


def test_gaps_break_the_stretch_and_are_counted():
    hours = HOURS.delete([10, 11, 20, 30]).append(
        pd.DatetimeIndex(["2024-03-01"] * 4) + pd.to_timedelta(range(4), "h")
    )
    panel = Panel.of(table(time=hours))
    assert panel.starts.tolist() == [0, 10, 18, 27, 36]
    assert panel.notes[1].startswith("4 gaps in time; no window crosses them. If the times are")


def test_a_month_is_not_a_gap_and_one_and_a_half_steps_are_not():
    assert (
        len(Panel.of(table(date=pd.date_range("2020-01-01", periods=ROWS, freq="MS"))).starts) == 1
    )
    steps = np.ones(ROWS)
    steps[10] = 1.5
    assert len(Panel.of(table(t=np.cumsum(steps))).starts) == 1
    steps[10] = 1.6
    panel = Panel.of(table(t=np.cumsum(steps)))
    assert panel.starts.tolist() == [0, 10]
    assert panel.notes[1] == "1 gap in time; no window crosses it."


def test_each_series_has_its_own_usual_step():
    time = np.r_[np.arange(20) * 1.0, np.arange(20) * 60.0]
    panel = Panel.of(table(time=time, id=["s"] * 20 + ["t"] * 20), series="id")
    assert panel.starts.tolist() == [0, 20]


def test_rows_out_of_order_are_sorted_and_it_is_said():
    time = np.arange(ROWS)
    time[[7, 8]] = time[[8, 7]]
    ours, sorted_before = Panel.of(table(time=time)), table(time=time).sort_values("time")
    np.testing.assert_array_equal(ours.values, sorted_before[["a", "b"]])
    assert ours.time.tolist() == list(range(ROWS))
    assert ours.notes[1] == "The rows were sorted by 'time': the time went back in 1 place."
    shuffled = table(date=HOURS).sample(frac=1, random_state=0)
    np.testing.assert_array_equal(Panel.of(shuffled).values, table()[["a", "b"]])


def test_a_table_with_the_newest_row_first_is_turned_round():
    panel = Panel.of(table(date=HOURS)[::-1])
    np.testing.assert_array_equal(panel.values, table()[["a", "b"]])
    assert "ran backwards in time (column 'date') and were turned round" in panel.notes[1]


def test_rows_are_sorted_within_their_series():
    time = np.repeat(np.arange(20), 2)
    time[[11, 13]] = time[[13, 11]]  # the rows of series t are 2, 4, 6, ...
    frame = table(time=time, id=["s", "t"] * 20)
    panel = Panel.of(frame, series="id")
    wanted = frame.sort_values(["id", "time"])[["a", "b"]]
    np.testing.assert_array_equal(panel.values, wanted)


def test_a_time_that_repeats_once_is_averaged():
    frame = table(date=[*HOURS[:10], HOURS[9], *HOURS[10:-1]])
    panel = Panel.of(frame)
    assert panel.rows == ROWS - 1
    np.testing.assert_allclose(panel.values[9], frame[["a", "b"]].iloc[9:11].mean())
    np.testing.assert_array_equal(panel.values[10:], frame[["a", "b"]].iloc[11:])
    assert panel.notes[1].startswith("1 row with a time that was there already (column 'date'")


@pytest.mark.parametrize(
    ("form", "step"),
    [("%Y-%m", "MS"), ("%YM%m", "MS"), ("quarter", "QS")],
)
def test_months_and_quarters_are_times(form, step):
    dates = pd.date_range("2010-01-01", periods=ROWS, freq=step)
    text = [f"{d.year}Q{d.quarter}" if form == "quarter" else d.strftime(form) for d in dates]
    panel = Panel.of(table(when=text))
    assert panel.variables == ("a", "b")
    assert pd.DatetimeIndex(panel.time).equals(dates)
    assert panel.starts.tolist() == [0]
    written_otherwise = [f"Q{d.quarter} {d.year}" for d in dates]
    if form == "quarter":
        assert (Panel.of(table(when=written_otherwise)).time == panel.time).all()


def test_time_that_appears_twice_is_refused():
    said = refusal(table(time=np.repeat(np.arange(20), 2)))
    assert "The time 0 in column 'time' appears twice (row 2)" in said
    assert "series=" in said


@pytest.mark.parametrize("name", ["Time", "step"])
def test_time_that_starts_again_suggests_several_series(name):
    said = refusal(table(**{name: np.tile(np.arange(10), 4)}))
    assert f"The time in column {name!r} starts again in row 11 (0 after 9)" in said
    assert "series=" in said


def test_time_may_start_again_in_every_series():
    frame = table(time=np.tile(np.arange(10), 4), id=np.repeat(list("wxyz"), 10))
    panel = Panel.of(frame, series="id")
    assert panel.starts.tolist() == [0, 10, 20, 30]
    assert panel.series_names == ("w", "x", "y", "z")
    assert panel.variables == ("a", "b")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["week"] + ["x"] * 39, "cannot be read as dates or numbers: found 'week' in row 1"),
        ([*HOURS[:5].astype(str), "later", *HOURS[6:].astype(str)], "found 'later' in row 6"),
        ([*range(20), None, *range(21, 40)], "no value in row 21"),
        ([*HOURS[:20], None, *HOURS[21:]], "no value in row 21"),
        ([True, False] * 20, "cannot be read"),
    ],
)
def test_a_named_time_that_cannot_be_read_is_refused(values, said):
    assert said in refusal(table(clock=values), time="clock")


def test_time_of_polars_is_read_the_same_way():
    frame = table(date=HOURS.delete([5]).append(HOURS[-1:] + pd.Timedelta("1h")))
    ours, other = Panel.of(frame), Panel.of(pl.DataFrame(frame.to_dict("list")))
    assert ours.starts.tolist() == other.starts.tolist() == [0, 5]
    assert ours.notes == other.notes

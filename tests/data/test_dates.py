"""Dates as people write them are read for what they mean."""

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.data.dates import dates_or_numbers

MOMENT = pd.Timestamp("2022-10-25 14:05")
DAY, WEEK, MONTH = (
    pd.Timestamp("2022-10-25"),
    pd.Timestamp("2022-10-24"),
    pd.Timestamp("2022-10-01"),
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("10/25/2022 2:05 PM", MOMENT),
        ("25/10/2022 02:05:00 pm", MOMENT),
        ("10/25/22 14:05", MOMENT),
        ("25.10.2022 14:05", MOMENT),
        ("25.10.22", DAY),
        ("25-Oct-22", DAY),
        ("25 Oct 2022", DAY),
        ("2022-W43", WEEK),
        ("10/2022", MONTH),
    ],
)
def test_a_date_is_read_however_it_is_written(text, meant):
    assert (dates_or_numbers(np.array([text, None, text], dtype=object))[[0, 2]] == meant).all()


@pytest.mark.parametrize("freq", ["MS", "QS", "D"])
@pytest.mark.parametrize("form", ["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%y", "%y-%m-%d"])
def test_the_order_of_day_and_month_is_that_of_even_steps(freq, form):
    days = pd.date_range("2000-01-01", periods=60, freq=freq)
    texts = days.strftime(form).to_numpy(object)
    assert (dates_or_numbers(texts) == days.to_numpy()).all()
    assert (dates_or_numbers(texts[::-1]) == days.to_numpy()[::-1]).all()


def test_months_of_a_german_table_are_months_and_it_is_said(tmp_path):
    first = pd.date_range("2000-01-01", periods=60, freq="MS")
    frame = pd.DataFrame({"Datum": first.strftime("%d.%m.%Y"), "a": np.arange(60) % 7})
    frame.to_csv(tmp_path / "t.csv", index=False)
    panel = fc.read(tmp_path / "t.csv")
    assert pd.DatetimeIndex(panel.time).equals(first)
    assert "The column 'Datum' was taken as the time, its dates as day.month.year." in panel.notes


def test_no_order_is_named_where_only_one_is_possible(tmp_path):
    days = pd.date_range("2000-01-01", periods=60, freq="D")
    frame = pd.DataFrame({"day": days.strftime("%d.%m.%Y"), "a": np.arange(60) % 7})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert "The column 'day' was taken as the time." in fc.read(tmp_path / "t.csv").notes


def test_days_and_months_that_no_order_explains_are_no_dates():
    assert dates_or_numbers(np.array(["13/01/2022", "01/13/2022"], dtype=object)) is None

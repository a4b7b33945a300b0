"""Lags and times to come, in the data's own calendar."""

import numpy as np
import pandas as pd
import pytest

from forecause.data import Panel
from forecause.data.summary import delay_text, rows_to_come, sampling_text, timing


def timed(freq, rows=60):
    stamps = pd.date_range("2020-01-01", periods=rows, freq=freq)
    return timing(Panel.of(pd.DataFrame({"when": stamps, "x": np.arange(rows)}), time="when"))


@pytest.mark.parametrize(
    ("freq", "every", "two", "following"),
    [
        ("MS", "every month", "2 months", "2025-01-01"),
        ("QS", "every quarter", "2 quarters", "2035-01-01"),
        ("YS", "every year", "2 years", "2080-01-01"),
        ("D", "every day", "2 days", "2020-03-01"),
        ("B", "every day", "2 days", "2020-03-25"),
        ("15min", "every 15 minutes", "30 minutes", "2020-01-01 15:00:00"),
        ("W", "every week", "2 weeks", "2021-02-28"),
    ],
)
def test_calendars_are_recognised(freq, every, two, following):
    found = timed(freq)
    assert sampling_text(found) == every
    assert delay_text(2, found) == two
    assert str(rows_to_come(found, 0, 1)[0]).removesuffix(" 00:00:00") == following


def test_a_year_of_months_is_a_year():
    assert delay_text(12, timed("MS")) == "1 year"
    assert delay_text(1, timed("D")) == "1 day"


def test_gaps_keep_the_usual_step():
    stamps = pd.date_range("2024-01-01", periods=50, freq="h").delete([10, 11, 30])
    table = pd.DataFrame({"when": stamps, "x": np.arange(47)})
    found = timing(Panel.of(table, time="when"))
    assert delay_text(3, found) == "3 hours"
    assert str(rows_to_come(found, 0, 2)[-1]) == "2024-01-03 03:00:00"


def test_numbers_count_on_and_rows_without_times_have_none():
    table = pd.DataFrame({"t": np.arange(50) * 0.5, "x": np.arange(50)})
    assert rows_to_come(timing(Panel.of(table, time="t")), 0, 2).to_list() == [25.0, 25.5]
    assert rows_to_come(timing(Panel.of(table[["x"]])), 0, 2) is None
    assert delay_text(2, timing(Panel.of(table[["x"]]))) == "2 rows"

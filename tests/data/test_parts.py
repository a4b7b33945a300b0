"""A regular grid of time: against pandas' own resampling."""

import numpy as np
import pandas as pd
import pytest

from forecause import InputError, Panel

ROWS = 200
RNG = np.random.default_rng(0)
TIMES = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(RNG.integers(0, 9000, ROWS)), "min")
FRAME = pd.DataFrame({"time": TIMES, "a": RNG.normal(size=ROWS), "b": RNG.normal(size=ROWS)})
FRAME.loc[FRAME.index % 3 > 0, "b"] = np.nan  # sampled at another rate


@pytest.mark.parametrize("how", ["mean", "sum", "last"])
@pytest.mark.parametrize(("every", "freq"), [("1h", "1h"), ("30min", "30min"), ("1 day", "1D")])
def test_steps_are_those_of_pandas(how, every, freq):
    panel = Panel.of(FRAME, every=every, every_how=how, gaps="drop")
    steps = FRAME.set_index("time").resample(freq)
    wanted = steps.sum(min_count=1) if how == "sum" else getattr(steps, how)()
    np.testing.assert_allclose(panel.values, wanted)
    assert pd.DatetimeIndex(panel.time).equals(wanted.index.rename(None))
    assert panel.starts.tolist() == [0]
    assert f"200 rows became {len(wanted):,} rows of equal steps by their {how}." in panel.notes


def test_months_are_calendar_months():
    frame = FRAME.assign(time=pd.date_range("2020-01-01", periods=ROWS, freq="7D"))
    panel = Panel.of(frame, every="1 month", gaps="drop")
    wanted = frame.set_index("time").resample("MS").mean()
    np.testing.assert_allclose(panel.values, wanted)


def test_numbers_of_time_take_a_number():
    frame = FRAME.assign(time=np.arange(ROWS) * 0.5)
    panel = Panel.of(frame, every=2, gaps="drop")
    np.testing.assert_allclose(panel.values, frame.groupby(np.arange(ROWS) // 4)[["a", "b"]].mean())
    with pytest.raises(InputError, match="The times are numbers: give every as something like 10"):
        Panel.of(frame, every="1h")


def test_every_series_has_its_own_span_and_domains_are_carried():
    frame = FRAME.assign(id=["s"] * 90 + ["t"] * 110, place=["x"] * 50 + ["y"] * 150)
    panel = Panel.of(frame, every="2h", series="id", domain="place", gaps="drop")
    parts = [
        part.set_index("time")[["a", "b"]].resample("2h").mean() for _, part in frame.groupby("id")
    ]
    np.testing.assert_allclose(panel.values, pd.concat(parts))
    assert panel.starts.tolist() == [0, len(parts[0])]
    changed = int(np.flatnonzero(np.diff(panel.domain))[0])
    assert panel.time[changed + 1] <= np.datetime64(FRAME["time"][50])


@pytest.mark.parametrize(
    ("every", "said"),
    [
        ("soon", "Expected the length of a step"),
        ("0h", "Expected the length of a step"),
        ("1s", "nearly all of them empty; take a longer step"),
        (5, "The times are dates"),
    ],
)
def test_steps_that_cannot_be_meant_are_refused(every, said):
    with pytest.raises(InputError, match=said):
        Panel.of(FRAME, every=every)


def test_a_grid_needs_a_time():
    with pytest.raises(InputError, match="needs a time column"):
        Panel.of(FRAME[["a", "b"]], every="1h")
    with pytest.raises(InputError, match="it should be 'mean', 'sum' or 'last'"):
        Panel.of(FRAME, every="1h", every_how="median")

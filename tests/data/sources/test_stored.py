"""Windows that travel without their table: whoever draws them reads the rows from the files."""

import pickle

import numpy as np
import pandas as pd
import pytest

from forecause.data import Panel, Windows, scratch
from forecause.data.sources.parquet import StoredRows


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three files of one table, several row groups each, too large to be held in memory."""
    monkeypatch.setattr(scratch, "LARGE", 1000)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=1000) for name in "abc"})
    frame["count"] = rng.integers(0, 50, 1000)
    for number, rows in enumerate(np.array_split(np.arange(1000), 3)):
        part = frame.iloc[rows]
        part.to_parquet(tmp_path / f"{number}.parquet", row_group_size=90, index=False)
    return tmp_path


def lent(windows):
    return pickle.loads(pickle.dumps(windows.for_pickling()))


@pytest.mark.parametrize("places", [slice(None), slice(88, 95), [0, 89, 90, 333, 334, 997]])
def test_windows_drawn_from_files_are_those_of_the_table(folder, places):
    windows = Windows.of(Panel.of(folder), 2)
    away = lent(windows)
    assert isinstance(away.panel.values, StoredRows)
    rows = windows.rows[places]
    own, other = (Windows(w.panel, 2, w.scale, rows) for w in (windows, away))
    np.testing.assert_array_equal(
        own.draw(np.arange(len(rows))).rows, other.draw(np.arange(len(rows))).rows
    )


def test_a_table_that_was_read_from_files_does_not_travel(folder):
    windows = Windows.of(Panel.of(folder), 2)
    assert len(pickle.dumps(windows.for_pickling())) < windows.panel.values.nbytes / 5


def test_a_table_that_was_changed_after_reading_travels_as_it_is(folder):
    windows = Windows.of(Panel.of(folder, missing=[49]), 2)
    away = lent(windows)
    np.testing.assert_array_equal(away.panel.values, windows.panel.values)

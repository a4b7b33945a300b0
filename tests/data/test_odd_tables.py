"""Tables that are rare and legitimate are read; others are refused in one short sentence."""

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.data import Panel
from systems import chain

TABLE = pd.DataFrame(chain(300), columns=list("abc"))
LONG = "n" * 10_000


def stamps(odd):
    """Hours across the change to summer time, one of them odd."""
    hours = pd.date_range("2024-03-30", periods=300, freq="h", tz="Europe/Berlin")
    cells = [hour.isoformat() for hour in hours]
    cells[100] = odd
    return cells


@pytest.mark.parametrize("odd", ["x", "5"])
def test_stamps_across_summer_time_with_an_odd_cell_are_left_out_and_said(odd):
    panel = Panel.of(TABLE.assign(when=stamps(odd)))
    assert panel.variables == ("a", "b", "c")
    assert any(f"but also {odd!r}" in note for note in panel.notes)


def test_stamps_across_summer_time_are_the_time():
    panel = Panel.of(TABLE.assign(when=stamps("2024-04-03T05:00:00+02:00")))
    assert panel.time is not None
    assert (np.diff(panel.time) == np.timedelta64(1, "h")).all()


@pytest.mark.parametrize("whole_numbers", [False, True])
def test_a_frames_column_that_looks_like_a_stored_index_is_a_variable(whole_numbers):
    table = TABLE.rename(columns={"a": "__index_level_0__"})
    if whole_numbers:
        table["b"] = np.arange(300) % 7
    panel = Panel.of(table)
    assert panel.variables == ("__index_level_0__", "b", "c")
    np.testing.assert_array_equal(panel.values[:, 0], TABLE["a"])


def test_a_file_of_nothing_but_such_columns_has_them(tmp_path):
    names = [f"__index_level_{i}__" for i in range(3)]
    TABLE.set_axis(names, axis=1).to_parquet(tmp_path / "data.parquet")
    assert Panel.of(tmp_path / "data.parquet").variables == tuple(names)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy", ""])
def test_a_file_name_beyond_255_bytes_is_refused(ending):
    with pytest.raises(fc.InputError, match="File name too long") as caught:
        Panel.of("x" * 3000 + ending)
    assert len(str(caught.value)) < 500


def structured():
    made = np.zeros(300, dtype=[("a", float), ("b", float)])
    made["a"], made["b"] = TABLE["a"], TABLE["b"]
    return made


def test_records_and_masked_records_are_tables_of_their_fields():
    plain = Panel.of(structured())
    assert plain.variables == ("a", "b")
    for same in (structured().view(np.recarray), np.ma.array(structured())):
        np.testing.assert_array_equal(Panel.of(same).values, plain.values)
    masked = np.ma.array(structured())
    masked["a"][5] = np.ma.masked
    filled = Panel.of(masked, gaps="drop").values
    assert np.isnan(filled[5, 0])
    np.testing.assert_array_equal(np.delete(filled, 5, 0), np.delete(plain.values, 5, 0))


@pytest.mark.parametrize(
    "odd",
    [
        structured().reshape(3, 100),
        np.zeros(50, dtype=[("a", float), ("b", float, (2,))]),
        np.zeros((), dtype=[("a", float)]),
        np.ma.array([["a", "b"]] * 50),
        np.ma.array(TABLE.to_numpy() + 1j),
    ],
    ids=["of two dimensions", "with fields of several", "a single one", "text", "complex"],
)
def test_arrays_that_are_no_table_are_refused(odd):
    with pytest.raises(fc.InputError):
        Panel.of(odd)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_damaged_text_array_is_refused_in_readable_letters(tmp_path, order):
    np.save(tmp_path / "data.npy", TABLE.to_numpy().round(2).astype(f"{order}U5"))
    content = bytearray((tmp_path / "data.npy").read_bytes())
    content[200:204] = b"\xff\xff\xff\xff"
    (tmp_path / "data.npy").write_bytes(content)
    with pytest.raises(fc.InputError, match="holds what is no letter"):
        Panel.of(tmp_path / "data.npy")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Panel.of(pd.DataFrame(TABLE.to_numpy(), columns=[LONG, LONG, "c"])),
        lambda: Panel.of(TABLE.rename(columns={"a": LONG}).assign(**{LONG: np.inf})),
        lambda: Panel.of(TABLE, time=LONG),
        lambda: fc.discover(TABLE, max_lag=1, forbid=[f"{LONG} -> b"]),
        lambda: fc.LaggedGraph.from_edges(["a"], 1, [(LONG, "a", 1)]),
        lambda: fc.load_graph(f"{LONG}.json"),
        lambda: fc.load(LONG),
    ],
)
def test_names_of_ten_thousand_letters_are_cut_in_sentences(call):
    with pytest.raises(fc.InputError) as caught:
        call()
    assert len(str(caught.value)) < 1000

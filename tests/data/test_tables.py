"""Any table becomes the same panel; what cannot is refused in one sentence."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forecause.data import Panel
from forecause.data.sources.rawtable import TIME_NAMES
from forecause.errors import InputError

ROWS = 40
VALUES = np.random.default_rng(0).normal(size=(ROWS, 3))
NAMES = ["a", "b", "c"]
HOURS = pd.date_range("2024-01-31", periods=ROWS, freq="h")
FRAME = pd.DataFrame(VALUES, columns=NAMES)


def refusal(data, **roles) -> str:
    with pytest.raises(InputError) as caught:
        Panel.of(data, **roles)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- kinds of tables ----------------------------------------------------------------------------

ARRAY = xr.DataArray(VALUES, dims=("time", "variable"), coords={"variable": NAMES})
SAME_TABLES = {
    "pandas": FRAME,
    "pandas nullable": FRAME.astype("Float64"),
    "pandas of text numbers": FRAME.map(repr),
    "pandas of objects": FRAME.astype(object),
    "polars": pl.DataFrame(VALUES, schema=NAMES),
    "pyarrow": pa.table(dict(zip(NAMES, VALUES.T, strict=True))),
    "dict": dict(zip(NAMES, VALUES.T.tolist(), strict=True)),
    "xarray": ARRAY,
    "xarray transposed": ARRAY.T,
    "dataset": ARRAY.to_dataset("variable"),
    "dataset of one array": ARRAY.to_dataset(name="all"),
    "structured": np.rec.fromarrays(VALUES.T, names=NAMES),
    "list of one": [FRAME],
    "panel": Panel.of(FRAME),
}


@pytest.mark.parametrize("kind", SAME_TABLES)
def test_every_kind_of_table_gives_the_same_panel(kind):
    panel = Panel.of(SAME_TABLES[kind])
    assert panel.variables == ("a", "b", "c")
    np.testing.assert_array_equal(panel.values, VALUES)
    assert panel.values.dtype == np.float64
    assert panel.fingerprint() == Panel.of(FRAME).fingerprint()


@pytest.mark.parametrize(
    "array", [VALUES, np.ma.MaskedArray(VALUES), torch.from_numpy(VALUES), VALUES.tolist()]
)
def test_arrays_name_their_columns_by_number(array):
    if isinstance(array, list):
        assert "found builtins.list" in refusal(array)
        return
    panel = Panel.of(array)
    assert panel.variables == ("x0", "x1", "x2")
    np.testing.assert_array_equal(panel.values, VALUES)


def test_masked_values_are_missing():
    masked = np.ma.masked_greater(VALUES, 1.0)
    np.testing.assert_array_equal(np.isnan(Panel.of(masked, gaps="drop").values), VALUES > 1.0)


def test_three_dimensions_are_series_time_variable():
    cube = np.random.default_rng(1).normal(size=(4, 25, 3)).astype(np.float32)
    panel = Panel.of(cube)
    assert panel.starts.tolist() == [0, 25, 50, 75]
    assert panel.series_names == ("series 1", "series 2", "series 3", "series 4")
    np.testing.assert_array_equal(panel.values[25:50], cube[1])
    assert np.shares_memory(panel.values, cube)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_keep_their_type_and_are_not_copied(dtype):
    values = VALUES.astype(dtype)
    assert Panel.of(values).values.dtype == dtype
    assert np.shares_memory(Panel.of(values).values, values)
    assert Panel.of(pd.DataFrame(values)).values.dtype == dtype
    assert Panel.of(pl.DataFrame(values)).values.dtype == dtype
    assert Panel.of(pa.table({"a": values[:, 0], "b": values[:, 1]})).values.dtype == dtype
    array = xr.DataArray(values, dims=("time", "variable"))
    assert np.shares_memory(Panel.of(array).values, values)


def test_a_pandas_frame_of_one_float_type_is_not_copied():
    frame = pd.DataFrame(VALUES.astype(np.float32), columns=NAMES)
    assert np.shares_memory(Panel.of(frame).values, frame["b"].to_numpy())


def test_a_time_column_at_the_edge_of_an_array_costs_no_copy():
    values = np.column_stack([np.arange(ROWS), VALUES]).astype(np.float32)
    panel = Panel.of(values, time="x0")
    assert panel.variables == ("x1", "x2", "x3")
    assert np.shares_memory(panel.values, values)


def test_other_numbers_become_float64():
    columns = {
        "bool": VALUES[:, 0] > 0,
        "int": (VALUES[:, 0] * 10).astype(np.int8),
        "half": VALUES[:, 1].astype(np.float16),
        "big-endian": VALUES[:, 2].astype(">f4"),
        "decimal": [decimal.Decimal(f"{value:.3f}") for value in VALUES[:, 0]],
    }
    panel = Panel.of(columns)
    assert panel.values.dtype == np.float64
    for place, column in enumerate(columns.values()):
        np.testing.assert_array_equal(panel.values[:, place], np.asarray(column, dtype=np.float64))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_missing_cells_stay_missing(library):
    columns = {
        "f": [None, *VALUES[1:, 0].tolist()],
        "i": [*range(20), None, *range(21, 40)],
        "b": [True, None, *[True, False] * 19],
    }
    panel = Panel.of(library(columns), gaps="drop")
    assert np.argwhere(np.isnan(panel.values)).tolist() == [[0, 0], [1, 2], [20, 1]]


def test_names_that_are_not_text_are_written_as_text():
    assert Panel.of(pd.DataFrame(VALUES)).variables == ("0", "1", "2")
    assert Panel.of(FRAME.assign(**{"3": range(ROWS)}).rename(columns={"a": 7})).variables[0] == "7"


@settings(max_examples=30)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
        min_size=3,
        max_size=3,
        unique=True,
    )
)
def test_names_are_kept_as_they_are(names):
    assume(not any(name.strip().lower() in TIME_NAMES for name in names))
    for table in (
        pd.DataFrame(VALUES, columns=pd.Index(names, dtype=object)),
        dict(zip(names, VALUES.T, strict=True)),
    ):
        assert Panel.of(table).variables == tuple(names)


# --- series and domains -------------------------------------------------------------------------


def test_a_list_is_several_series():
    panel = Panel.of([FRAME[:15], FRAME[15:]])
    assert panel.starts.tolist() == [0, 15]
    assert panel.series.tolist() == [0] * 15 + [1] * 25
    assert panel.series_names == ("series 1", "series 2")
    np.testing.assert_array_equal(panel.values, VALUES)


def test_series_of_a_list_may_be_of_any_kind_and_order_of_columns():
    panel = Panel.of([FRAME[:15], pl.DataFrame(VALUES[15:], schema=NAMES)[["c", "a", "b"]]])
    np.testing.assert_array_equal(panel.values, VALUES)
    assert panel.variables == ("a", "b", "c")


def test_series_with_other_columns_are_refused():
    said = refusal([FRAME, FRAME.drop(columns="b")])
    assert said == (
        "All series must have the same columns, but 'series 2' has no column 'b', which "
        "'series 1' has."
    )
    said = refusal([FRAME, FRAME.assign(d=1)])
    assert "'series 1' has no column 'd', which 'series 2' has" in said
    assert "'series 2' has no column 'x2'" in refusal([VALUES, VALUES[:, :2]])


def test_a_fault_in_a_list_names_its_place():
    broken = FRAME.astype(object)
    broken.iloc[3, 1] = "bad"
    assert refusal([FRAME, broken]).startswith(
        "In series 2: Column 'b' holds numbers, but 'bad' in row 4"
    )
    infinite = FRAME.copy()
    infinite.iloc[3, 1] = np.inf
    assert refusal([FRAME, infinite]).startswith(
        "In series 2: Column 'b' holds an infinite value in row 4"
    )
    said = refusal([FRAME.assign(time=HOURS), FRAME.assign(time=range(ROWS))])
    assert "dates in one series and as numbers in another" in said


def test_interleaved_series_are_put_together_in_order():
    labels = np.array(["s", "t"] * (ROWS // 2))
    panel = Panel.of(FRAME.assign(id=labels), series="id")
    np.testing.assert_array_equal(panel.values, np.concatenate([VALUES[::2], VALUES[1::2]]))
    assert panel.series_names == ("s", "t")
    assert panel.starts.tolist() == [0, 20]
    assert panel.series.tolist() == [0] * 20 + [1] * 20


@settings(max_examples=40)
@given(st.lists(st.sampled_from("wxyz"), min_size=ROWS, max_size=ROWS))
def test_grouping_series_keeps_every_row_and_their_order(labels):
    panel = Panel.of(FRAME.assign(id=labels), series="id")
    first_seen = list(dict.fromkeys(labels))
    assert panel.series_names == tuple(first_seen)
    for code, name in enumerate(first_seen):
        rows = [i for i, label in enumerate(labels) if label == name]
        np.testing.assert_array_equal(panel.values[panel.series == code], VALUES[rows])


def test_series_of_files_in_a_list_are_told_apart():
    part = FRAME.assign(id=np.repeat([7, 8], 20))
    panel = Panel.of([part, part], series="id")
    assert panel.series_names == ("series 1 / 7", "series 1 / 8", "series 2 / 7", "series 2 / 8")
    assert panel.starts.tolist() == [0, 20, 40, 60]


def test_domains_are_coded_by_first_appearance_and_break_nothing():
    labels = ["storm"] * 10 + ["calm"] * 20 + ["storm"] * 10
    panel = Panel.of(FRAME.assign(weather=labels), domain="weather")
    assert panel.domain_names == ("storm", "calm")
    assert panel.domain.tolist() == [0] * 10 + [1] * 20 + [0] * 10
    assert panel.starts.tolist() == [0]
    assert panel.variables == ("a", "b", "c")


def test_domains_follow_their_rows_when_series_are_grouped():
    frame = FRAME.assign(id=["s", "t"] * 20, regime=np.arange(ROWS) % 2 + 5)
    panel = Panel.of(frame, series="id", domain="regime")
    assert panel.domain_names == ("5", "6")
    assert panel.domain.tolist() == [0] * 20 + [1] * 20


def test_domains_of_several_tables_share_their_names():
    parts = [FRAME.assign(d=["x"] * 20 + ["y"] * 20), FRAME.assign(d=["y"] * 20 + ["z"] * 20)]
    panel = Panel.of(parts, domain="d")
    assert panel.domain_names == ("x", "y", "z")
    assert panel.domain.tolist() == [0] * 20 + [1] * 40 + [2] * 20


def test_whole_numbers_are_labels_whatever_their_type():
    for labels in ([1] * 20 + [2] * 20, [1.0] * 20 + [2.0] * 20):
        assert Panel.of(FRAME.assign(d=labels), domain="d").domain_names == ("1", "2")


def test_levels_of_a_pandas_index_may_be_named():
    index = pd.MultiIndex.from_product([["s", "t"], range(20)], names=["id", "time"])
    panel = Panel.of(FRAME.set_index(index), series="id")
    assert panel.series_names == ("s", "t")
    assert panel.time.tolist() == [*range(20)] * 2


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"b": [*"123", "bad", *"5" * 36]}, "Column 'b' holds numbers, but 'bad' in row 4"),
        ({"b": ["1,5", "2,5"] * 20}, "'1,5' in row 1, a number with a decimal comma"),
        ({"b": VALUES[:, 1] * 1j}, "Column 'b' holds complex numbers"),
        ({"b": VALUES[:, 0]}, "Columns 'a' and 'b' hold the same values"),
        ({"": VALUES[:, 0] + 1}, "Column 4 has no name"),
    ],
)
def test_columns_that_are_no_variables_are_refused(changed, said):
    assert said in refusal(FRAME.assign(**changed))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"b": ["x", "y"] * 20},
            "Column 'b' holds text ('x' in row 1) and was left out; with its 2 different values, "
            'fc.read(data, labels=["b"]) makes it a variable.',
        ),
        ({"b": [f"x{i}" for i in range(40)]}, "holds text ('x0' in row 1) and was left out."),
        ({"b": [[1]] * 40}, "Column 'b' holds text ([1] in row 1) and was left out."),
        ({"b": HOURS - HOURS[0]}, "Column 'b' holds dates and was left out"),
        ({"b": None}, "Column 'b' holds no value at all and was left out."),
        ({"b": 3}, "Column 'b' is constant (3) and was left out."),
    ],
)
def test_columns_that_cannot_vary_are_left_out_and_said(changed, said):
    panel = Panel.of(FRAME.assign(**changed))
    assert panel.variables == ("a", "c")
    np.testing.assert_array_equal(panel.values, VALUES[:, [0, 2]])
    (change,) = [change for change in panel.changes if change.kind == "left out"]
    assert said in change.sentence
    assert change.column == "b"
    assert change.sentence in panel.notes


def test_all_problems_of_a_table_are_in_one_message():
    wrong = FRAME.assign(
        a=[*"123", "bad", *"5" * 36],
        b=np.where(np.arange(40) == 6, np.inf, VALUES[:, 1]),
        d=VALUES[:, 2],
        place=[*["x"] * 39, None],
    )
    with pytest.raises(InputError) as caught:
        Panel.of(wrong, domain="place")
    said = str(caught.value)
    assert said.startswith("The data cannot be used for 4 reasons: (1) ")
    for part in (
        "Column 'a' holds numbers, but 'bad' in row 4",
        "Column 'b' holds an infinite value in row 7",
        "Columns 'c' and 'd' hold the same values",
        "Column 'place' has no label in row 40",
    ):
        assert said.count(part) == 1


@pytest.mark.parametrize("cell", ["n/a", "-", " NULL ", "N/A", "."])
def test_common_marks_of_a_missing_value_are_missing(cell):
    panel = Panel.of(FRAME.assign(b=[*"123", cell, *"54" * 18]), gaps="drop")
    assert np.argwhere(np.isnan(panel.values)).tolist() == [[3, 1]]


def test_cells_named_as_missing_are_missing_and_counted():
    column = VALUES[:, 1].copy()
    column[[3, 7]] = -9999
    text = [*"123", "bad", *"54" * 18]
    table = FRAME.assign(b=column, d=text)
    panel = Panel.of(table, missing=[-9999, "bad"], gaps="drop")
    assert np.argwhere(np.isnan(panel.values)).tolist() == [[3, 1], [3, 3], [7, 1]]
    assert panel.notes == ("2 cells of 'b' with the value -9999 are missing, as asked.",)
    assert table["b"][3] == -9999, "the user's table is not changed"


def test_a_time_with_one_wrong_cell_is_named():
    when = [f"2024-01-{day:02d}" for day in range(1, 21)]
    when[7] = "yesterday"
    table = {"when": when, "a": np.arange(20.0) ** 2 % 7, "b": np.arange(20.0) % 3}
    (note,) = Panel.of(table).notes
    assert note.startswith("Column 'when' holds dates, but also 'yesterday', and was left out")
    assert 'time="when"' in note


def test_values_that_look_like_errors_are_named_and_kept():
    rng = np.random.default_rng(0)
    code, wild, heavy = rng.normal(size=(3, 400))
    code[[5, 9]] = -9999
    wild[7] = 4000.0
    heavy = rng.standard_t(3, 400)
    panel = Panel.of({"code": code, "wild": wild, "heavy": heavy})
    doubts = {change.column: change for change in panel.changes}
    assert set(doubts) == {"code", "wild"}
    assert doubts["code"].count == 2
    assert "holds -9999 in 2 rows" in doubts["code"].sentence
    assert "missing=[-9999]" in doubts["code"].sentence
    assert "1 value far from all others (4000). Nothing was removed" in doubts["wild"].sentence
    assert panel.values[7, 1] == 4000
    assert not panel.notes  # nothing was done; the run has an alert
    code[[5, 9, 20, 21, 22, 23]] = -777.7  # no usual code, but it repeats
    (again,) = Panel.of({"code": code, "heavy": heavy}).changes
    assert "holds -777.7 in 6 rows" in again.sentence


@pytest.mark.parametrize(
    "table", [FRAME.set_axis(["a", "b", "a"], axis=1), pa.table([[1]] * 3, list("aba"))]
)
def test_repeated_names_are_refused(table):
    assert "found the name 'a' twice" in refusal(table)


def test_a_transposed_table_is_refused():
    assert "more columns (40) than rows (3)" in refusal(VALUES.T)


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ({"time": "aa"}, "no time column 'aa': the columns are 'a', 'b', 'c'; did you mean 'a'?"),
        ({"series": "id"}, "no series column 'id': the columns are 'a', 'b', 'c'."),
        ({"domain": "weather"}, "no domain column 'weather'"),
        ({"series": "a", "domain": "a"}, "cannot have two roles"),
        ({"series": "a"}, "in row 1; labels must be text or whole numbers"),
    ],
)
def test_roles_that_do_not_fit_are_refused(roles, said):
    assert said in refusal(FRAME, **roles)


def test_a_row_without_a_label_is_refused():
    labels = ["s"] * 5 + [None] + ["s"] * 34
    for role in ("series", "domain"):
        assert (
            refusal(FRAME.assign(id=labels), **{role: "id"}) == "Column 'id' has no label in row 6."
        )


def test_roles_leave_at_least_one_variable():
    assert "no column left" in refusal(pd.DataFrame({"time": range(30)}))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "found builtins.NoneType"),
        (5, "found builtins.int"),
        ([], "an empty list"),
        ([1, 2], "found builtins.int"),
        (VALUES[:, 0], "found 1 of shape (40,)"),
        (np.zeros((2, 2, 2, 2)), "found 4 of shape"),
        (FRAME["a"], "found pandas"),
        (pl.DataFrame(VALUES).lazy(), "LazyFrame"),
        ({"a": [1, 2], "b": [1]}, "differ in length: [1, 2]"),
        ({"a": [[1, 2]]}, "Column 'a' must have one dimension, found 2"),
        (np.empty((0, 3)), "no rows in the data"),
        (pd.DataFrame({"t": [], "a": []}), "no rows in the data"),
        ([FRAME, FRAME[:0]], "no rows in series 2"),
        (pd.DataFrame(), "no rows in the data"),
        (ARRAY[:, 0], "found ('time',)"),
        (xr.Dataset(), "Expected a dataset"),
        (xr.Dataset({"a": ("time", [1]), "b": ("site", [1])}), "'b' over ('site',)"),
    ],
)
def test_what_is_no_table_is_refused(data, said):
    assert said in refusal(data)


def test_a_panel_has_its_roles_already():
    panel = Panel.of(FRAME)
    assert Panel.of(panel) is panel
    assert "name no columns" in refusal(panel, time="a")

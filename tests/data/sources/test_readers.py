"""Files: every format gives the same panel, none runs code, and a wrong one is named as such."""

import pickle
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from forecause.data import Panel
from forecause.data.sources.rawtable import TIME_NAMES
from forecause.errors import InputError, MissingExtra

ROWS = 40
VALUES = np.random.default_rng(0).normal(size=(ROWS, 3))
FRAME = pd.DataFrame(VALUES, columns=["a", "b", "c"])
HOURS = pd.date_range("2024-01-31", periods=ROWS, freq="h", name="time")


def write(path, frame):
    match path.suffix.lower():
        case ".csv":
            frame.to_csv(path, index=False)
        case ".tsv":
            frame.to_csv(path, index=False, sep="\t")
        case ".parquet":
            frame.to_parquet(path)
        case ".feather":
            frame.to_feather(path)
        case ".npy":
            np.save(path, frame.to_numpy())
        case ".npz":
            np.savez(path, **{name: frame[name].to_numpy() for name in frame})
        case ".nc":
            pytest.importorskip("h5py")
            frame.rename_axis("row").to_xarray().drop_vars("row").to_netcdf(path, engine="h5netcdf")
    return path


def refusal(path, content=None, **roles) -> str:
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        Panel.of(path, **roles)
    assert "\n" not in str(caught.value)
    return str(caught.value)


ENDINGS = [".csv", ".tsv", ".parquet", ".feather", ".npy", ".npz", ".nc"]


@pytest.mark.parametrize("ending", [*ENDINGS, ".CSV"])
def test_every_format_gives_the_same_values(tmp_path, ending):
    path = write(tmp_path / f"table{ending}", FRAME)
    for given_path in (path, str(path)):
        panel = Panel.of(given_path)
        np.testing.assert_array_equal(panel.values, VALUES)
        assert panel.variables == (("x0", "x1", "x2") if ending == ".npy" else ("a", "b", "c"))
        assert panel.notes == ()


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".npy", ".npz", ".nc"])
def test_float32_is_kept(tmp_path, ending):
    path = write(tmp_path / f"table{ending}", FRAME.astype(np.float32))
    assert Panel.of(path).values.dtype == np.float32


def test_npz_holds_one_array_or_one_per_variable(tmp_path):
    path = tmp_path / "table.npz"
    np.savez(path, data=VALUES)
    assert Panel.of(path).variables == ("x0", "x1", "x2")
    np.savez(path, train=VALUES, test=VALUES)
    assert "found 'train' (40, 3), 'test' (40, 3)" in refusal(path)
    np.savez(path)
    assert "found none" in refusal(path)


def test_a_workbook_under_another_name_is_told(tmp_path):
    archive = tmp_path / "table.npz"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("xl/workbook.xml", "<workbook/>")
        file.writestr("xl/styles.xml", "<styles/>")
    assert "expected one array" in refusal(archive)
    assert "zip archive, such as NPZ or xlsx" in refusal(archive.rename(tmp_path / "table.csv"))


def test_a_list_of_paths_is_several_series_named_by_their_files(tmp_path):
    paths = [write(tmp_path / name, FRAME) for name in ("north.csv", "south.parquet")]
    panel = Panel.of(paths)
    assert panel.series_names == ("north", "south")
    assert panel.starts.tolist() == [0, ROWS]
    (tmp_path / "more").mkdir()
    alike = write(tmp_path / "more" / "north.csv", FRAME)
    assert Panel.of([paths[0], alike]).series_names == (str(paths[0]), str(alike))
    with pytest.raises(InputError, match="given twice"):
        Panel.of([paths[0], paths[0]])


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather"])
def test_an_index_that_was_written_is_the_time(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    frame = FRAME.set_index(HOURS)
    if ending == ".csv":
        frame.to_csv(path)
    elif ending == ".parquet":
        frame.rename_axis(None).to_parquet(path)
    else:
        frame.to_feather(path)
    panel = Panel.of(path)
    assert panel.variables == ("a", "b", "c")
    assert (panel.time == HOURS.to_numpy()).all()


def test_row_numbers_that_were_written_are_no_variable(tmp_path):
    FRAME.to_csv(tmp_path / "table.csv")
    panel = Panel.of(tmp_path / "table.csv")
    assert panel.variables == ("a", "b", "c")
    assert panel.notes == ("The unnamed first column was taken as the time.",)


def test_netcdf_has_its_time_along(tmp_path):
    pytest.importorskip("h5py")
    frame = FRAME.set_index(HOURS)
    frame.to_xarray().to_netcdf(tmp_path / "set.nc", engine="h5netcdf")
    array = xr.DataArray(frame, dims=("time", "variable"))
    array.T.to_netcdf(tmp_path / "array.nc", engine="h5netcdf")
    frame.to_xarray().to_netcdf(tmp_path / "classic.nc", engine="scipy")
    for name in ("set.nc", "array.nc", "classic.nc"):
        panel = Panel.of(tmp_path / name)
        assert panel.variables == ("a", "b", "c")
        assert (panel.time == HOURS.to_numpy()).all()
        np.testing.assert_array_equal(panel.values, VALUES)


# --- CSV ----------------------------------------------------------------------------------------


def test_a_file_without_header_loses_no_row(tmp_path):
    path = tmp_path / "table.csv"
    np.savetxt(path, VALUES, delimiter=",")
    panel = Panel.of(path)
    np.testing.assert_array_equal(panel.values, VALUES)
    assert panel.variables == ("x0", "x1", "x2")
    assert panel.notes == ("table.csv has no header; its columns are called x0, x1, ...",)


@pytest.mark.parametrize("index", [True, False])
def test_counted_column_names_are_a_header(tmp_path, index):
    path = tmp_path / "table.csv"
    pd.DataFrame(VALUES).to_csv(path, index=index)
    panel = Panel.of(path)
    assert panel.variables == ("0", "1", "2")
    np.testing.assert_array_equal(panel.values, VALUES)


@settings(max_examples=40)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
        min_size=3,
        max_size=3,
        unique=True,
    )
)
@example(names=["a", "b", "\r\r"])
def test_names_of_a_csv_are_kept_as_they_are(tmp_path_factory, names):
    assume(not any(name.strip().lower() in TIME_NAMES for name in names))
    path = tmp_path_factory.mktemp("names") / "table.csv"
    header = ",".join('"' + name.replace('"', '""') + '"' for name in ["first", *names])
    rows = "".join(f"{i % 7},{i * i},{i % 5},{-i}\n" for i in range(20))
    path.write_text(f"{header}\n{rows}", encoding="utf-8", newline="")
    panel = Panel.of(path)
    assert panel.variables == ("first", *names)
    assert panel.rows == 20


def test_spaces_after_commas_and_a_byte_order_mark_are_no_part_of_a_name(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("\ufeffa, b\r\n1, 2\r\n\r\n3, 5\r\n2, 1\r\n".encode())
    panel = Panel.of(path)
    assert panel.variables == ("a", "b")
    assert panel.values.tolist() == [[1, 2], [3, 5], [2, 1]]


@pytest.mark.parametrize("missing", ["", "NA", "NaN", "nan", "null", "n/a", "-", "NULL", "?"])
def test_missing_cells_of_a_csv(tmp_path, missing):
    path = tmp_path / "table.csv"
    path.write_text(f"a,b\n1,2\n{missing},3\n4,1\n2,{missing}\n")
    assert np.argwhere(np.isnan(Panel.of(path, gaps="drop").values)).tolist() == [[1, 0], [3, 1]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b\n", "a header but no rows"),
        ("<!DOCTYPE html>\n<html></html>\n", "it is a web page, not a table"),
        ("[" + "[]," * 100_000, "its first line has more than 100,000 cells"),
        ("a,b,a\n1,2,3\n", "found the name 'a' twice"),
        ("a,,\n1,2,3\n", "no name for column 3"),
        ('a,b\n"1,5",2\n"2,5",3\n', "a number with a decimal comma"),
        ("a,b\n1,2,3\n", "row 1 has 3 cells but the header 2"),
        ("a,b\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        ('a,b\n1,"2\n', "unexpected end of data"),
        ("a,b\n1,2\n2,bad\n3,4\n5,6\n", "Column 'b' holds numbers, but 'bad' in row 2"),
        ("a\nx\ny\n", "no column left that could be a variable. Column 'a' holds text"),
        ("a,b\n1,inf\n2,3\n", "infinite value in row 1"),
        (b"gr\xfc\x01,b\n1,2\n", "not in UTF-8"),
        (b"\0\1\2\3" * 100, "looks like binary data"),
        (b"PAR1" + b"\0" * 100, "is not CSV, though its name says so: it looks like Parquet"),
        ("a,b,c\n1,2,3\n3,4,1\n", "more columns (3) than rows (2)"),
    ],
)
def test_a_csv_that_cannot_be_used_is_refused(tmp_path, content, said):
    assert said in refusal(tmp_path / "table.csv", content)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", "a;b\n1,5;2\n-3,25;4,5\n2;1e1\n", "semicolons and numbers have decimal commas"),
        ("t.csv", "a;b\n1.5;2\n-3.25;4.5\n2;1e1\n", "semicolons."),
        ("t.csv", "a\tb\n1.5\t2\n-3.25\t4.5\n2\t10\n", "tabs."),
        ("t.tsv", "a,b\n1.5,2\n-3.25,4.5\n2,10\n", "commas."),
        ("t.csv", "a|b\n1,5|2\n-3,25|4,5\n2|10\n", "bars and numbers have decimal commas"),
    ],
)
def test_other_separators_and_decimal_commas_are_recognised(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_text(content)
    panel = Panel.of(path)
    assert panel.variables == ("a", "b")
    assert panel.values.tolist() == [[1.5, 2], [-3.25, 4.5], [2, 10]]
    assert panel.notes[0].startswith(f"{name}: cells are separated by ")
    assert said in panel.notes[0]


def test_a_file_with_decimal_commas_needs_no_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,5;2,5\n3,5;4\n2,5;1\n")
    assert Panel.of(path).values.tolist() == [[1.5, 2.5], [3.5, 4], [2.5, 1]]


# --- other refusals -----------------------------------------------------------------------------


def test_paths_that_lead_nowhere_are_refused(tmp_path):
    assert "No such file" in refusal(tmp_path / "absent.csv")
    assert "is a directory" in refusal(tmp_path)
    assert "ends with '.docx'; expected one of .csv" in refusal(tmp_path / "table.docx", "x")
    assert "has no ending" in refusal(tmp_path / "table", "x")


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".npy", ".npz", ".nc", ".xlsx"])
def test_a_file_that_is_not_what_its_ending_says_is_refused(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    assert "it looks like text" in refusal(path, "a,b\n1,2\n")
    assert "it looks like gzip" in refusal(path, b"\x1f\x8b" + b"\0" * 50)
    assert "is empty" in refusal(path, b"")


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".npy", ".npz", ".nc"])
def test_a_cut_off_file_is_refused(tmp_path, ending):
    whole = write(tmp_path / f"table{ending}", FRAME).read_bytes()
    for size in (8, len(whole) // 2, len(whole) - 9):
        assert "cannot be read as" in refusal(tmp_path / f"cut{ending}", whole[:size])


class Trap:
    """Unpickling this would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (self.path.touch, ())


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_no_file_runs_code(tmp_path, ending):
    sprung = tmp_path / "sprung"
    path = tmp_path / f"table{ending}"
    traps = np.array([[Trap(sprung)] * 2] * 30, dtype=object)
    (np.save if ending == ".npy" else np.savez)(path, traps)
    assert "cannot be read" in refusal(path)
    path.write_bytes(pickle.dumps(Trap(sprung)))
    refusal(path)
    assert not sprung.exists()


@pytest.mark.parametrize(
    ("ending", "package"),
    [(".parquet", "pyarrow"), (".feather", "pyarrow"), (".nc", "h5netcdf"), (".nc", "h5py")],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, ending, package):
    path = write(tmp_path / f"table{ending}", FRAME)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install {package} .*'\.\[files\]'"):
        Panel.of(path)


CELL = st.sampled_from(
    [
        "1",
        "2.5",
        "-3e5",
        "",
        "x",
        '"',
        '"a,b"',
        "n/a",
        "1,5",
        ";",
        "2024-01-01",
        "inf",
        "a",
        "\t",
        "é",
    ]
)
ROW = st.lists(CELL, max_size=4).map(",".join)


@settings(max_examples=150)
@given(st.one_of(st.binary(max_size=60), st.lists(ROW, max_size=8).map("\n".join)))
def test_any_content_is_read_or_refused(tmp_path_factory, content):
    data = content if isinstance(content, bytes) else content.encode()
    folder = tmp_path_factory.mktemp("any")
    for name, opening in (
        ("t.csv", b""),
        ("t.tsv", b""),
        ("t.npy", b"\x93NUMPY"),
        ("t.npz", b"PK"),
    ):
        path = folder / name
        path.write_bytes(opening + data)
        try:
            panel = Panel.of(path)
        except InputError:
            continue
        assert panel.rows > 0

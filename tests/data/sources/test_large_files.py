"""Large files are streamed or mapped, and give the panel that loading them would give."""

import errno
import os
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forecause.data import Panel, Windows, scratch
from forecause.data.sources import parquet
from forecause.errors import InputError

ROWS = 60
RNG = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder for temporary files, empty."""
    made = tmp_path / "scratch"
    made.mkdir()
    monkeypatch.setenv("TMPDIR", str(made))
    return made


def largest_in_memory(monkeypatch, size=0):
    monkeypatch.setattr(scratch, "LARGE", size)
    monkeypatch.setattr(scratch, "PIECE", 1000 if size == 0 else scratch.PIECE)
    monkeypatch.setattr(parquet, "ROWS", 7 if size == 0 else parquet.ROWS)
    monkeypatch.setattr(parquet, "COLUMNS", 2 if size == 0 else 4)


def is_mapped(values) -> bool:
    while values is not None:
        if isinstance(values, np.memmap):
            return True
        values = values.base
    return False


def assert_same(one: Panel, other: Panel) -> None:
    assert one.values.dtype == other.values.dtype
    np.testing.assert_array_equal(one.values, other.values)
    for name in ("starts", "series", "domain", "time"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("variables", "series_names", "domain_names", "notes", "labels"):
        assert getattr(one, name) == getattr(other, name)
    assert one.fingerprint() == other.fingerprint()


def frame(**columns) -> pd.DataFrame:
    numbers = {name: RNG.normal(size=ROWS).astype(np.float32) for name in "abc"}
    return pd.DataFrame(numbers | columns)


def with_holes(values) -> list:
    return [None if row % 9 == 4 else value for row, value in enumerate(values)]


HOURS = pd.date_range("2024-01-31", periods=ROWS, freq="h")
WITH_GAP = HOURS[:30].append(HOURS[30:] + pd.Timedelta("5h"))
COUNTS = pd.array(with_holes(RNG.integers(0, 99, ROWS)), dtype="Int64")
TABLES = {
    "float32": (frame(), {}),
    "float64": (frame().astype(np.float64), {}),
    "widths": (frame(d=RNG.normal(size=ROWS), e=RNG.integers(0, 9, ROWS).astype("uint8")), {}),
    "missing": (frame(d=pd.array(with_holes(RNG.normal(size=ROWS)), dtype="Float32")), {}),
    "counts with holes": (frame(d=COUNTS), {}),
    "booleans with holes": (frame(d=pd.array(with_holes([True, False] * 30), "boolean")), {}),
    "text of numbers": (frame(d=[f"{value:.3f}" for value in RNG.normal(size=ROWS)]), {}),
    "a dot in a name": (frame(**{"a.b": RNG.normal(size=ROWS)}), {}),
    "dates": (frame(when=HOURS), {}),
    "a gap in time": (frame(when=WITH_GAP), {"time": "when"}),
    "dates as text": (frame(when=HOURS.astype(str)), {}),
    "index": (frame().set_index(HOURS), {}),
    "named index": (frame().set_index(HOURS.rename("time")), {}),
    "t is no time": (frame(t=RNG.normal(size=ROWS)), {}),
    "a number in the middle is the time": (frame(time=range(ROWS), z=RNG.normal(size=ROWS)), {}),
    "series": (frame(who=["u", "v", "w"] * 20, when=np.arange(ROWS) // 3), {"series": "who"}),
    "series and time": (
        frame(who=[2, 1] * 30, when=np.arange(ROWS) // 2, z=RNG.normal(size=ROWS)),
        {"series": "who", "time": "when"},
    ),
    "domain": (frame(where=["calm"] * 25 + ["storm"] * 35), {"domain": "where"}),
    "labels": (frame(kind=with_holes(["on", "off", "on"] * 20)), {"labels": ["kind"]}),
    "labels alone": (
        pd.DataFrame({"k": ["on", "off", "on"] * 20, "l": ["x", "x", "y", "y"] * 15}),
        {"labels": ["k", "l"]},
    ),
    "interpolated": (
        frame(d=pd.array(with_holes(RNG.normal(size=ROWS)), dtype="Float64")),
        {"interpolate": 2},
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_streamed_parquet_file_gives_the_panel_of_a_loaded_one(
    tmp_path, folder, monkeypatch, kind
):
    table, roles = TABLES[kind]
    path = tmp_path / "table.parquet"
    table.to_parquet(path, row_group_size=11)
    loaded = Panel.of(path, **roles)
    assert not is_mapped(loaded.values)
    largest_in_memory(monkeypatch)
    streamed = Panel.of(path, **roles)
    assert is_mapped(streamed.values)
    assert streamed.values.flags.c_contiguous
    assert_same(streamed, loaded)
    assert os.listdir(folder) == []


@pytest.mark.parametrize("ending", ["parquet", "npy"])
def test_several_large_files_are_several_series(tmp_path, folder, monkeypatch, ending):
    paths = [tmp_path / f"{name}.{ending}" for name in ("one", "two", "three")]
    for place, path in enumerate(paths):
        table = frame().iloc[: 20 + 10 * place]
        if ending == "npy":
            np.save(path, table.to_numpy())
        else:
            table.to_parquet(path, row_group_size=11)
    loaded = Panel.of(paths)
    largest_in_memory(monkeypatch)
    streamed = Panel.of(paths)
    assert is_mapped(streamed.values)
    assert_same(streamed, loaded)
    assert streamed.starts.tolist() == [0, 20, 50]
    assert os.listdir(folder) == []


@pytest.mark.parametrize("large", [False, True])
def test_a_folder_of_parquet_files_is_one_table(tmp_path, folder, monkeypatch, large):
    table = frame(hour=pd.date_range("2024-01-01", periods=ROWS, freq="h"))
    table.to_parquet(tmp_path / "whole.parquet")
    parts = tmp_path / "parts"
    parts.mkdir()
    for place, start in enumerate((0, 20, 45)):
        end = (20, 45, ROWS)[place]
        table.iloc[start:end].to_parquet(parts / f"part-{place}.parquet", index=False)
    (parts / "notes.txt").write_text("not a table")
    whole = Panel.of(tmp_path / "whole.parquet", time="hour")
    if large:
        largest_in_memory(monkeypatch)
    together = Panel.of(parts, time="hour")
    assert is_mapped(together.values) is large
    assert_same(together, whole)


def test_files_of_a_folder_must_have_the_same_columns(tmp_path):
    frame().to_parquet(tmp_path / "a.parquet")
    frame().rename(columns={"b": "other"}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match="same columns in the same order; file 2 has"):
        Panel.of(tmp_path)


ARRAY = RNG.normal(size=(ROWS, 4))
ARRAYS = {
    "float32": ARRAY.astype(np.float32),
    "float64": ARRAY,
    "by columns": np.asfortranarray(ARRAY.astype(np.float32)),
    "whole numbers": (100 * ARRAY).astype(np.int32),
    "half": ARRAY.astype(np.float16),
    "other byte order": ARRAY.astype(">f4"),
    "several series": ARRAY.reshape(3, 20, 4),
    "several series by columns": np.asfortranarray(ARRAY.reshape(3, 20, 4)),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_a_large_npy_file_gives_the_panel_of_a_small_one(tmp_path, folder, monkeypatch, kind):
    path = tmp_path / "array.npy"
    np.save(path, ARRAYS[kind])
    small = Panel.of(path)
    largest_in_memory(monkeypatch)
    large = Panel.of(path)
    assert is_mapped(large.values)
    assert large.values.flags.c_contiguous
    assert_same(large, small)
    assert os.listdir(folder) == []


def test_series_of_an_npy_file_are_sorted_on_disk(tmp_path, monkeypatch):
    path = tmp_path / "array.npy"
    np.save(path, np.column_stack([np.arange(ROWS) % 3, ARRAY]))
    small = Panel.of(path, series="x0")
    largest_in_memory(monkeypatch)
    large = Panel.of(path, series="x0")
    assert is_mapped(large.values)
    assert_same(large, small)
    np.testing.assert_array_equal(large.values[:20], ARRAY[::3])


def refusal(path, **roles) -> str:
    with pytest.raises(InputError) as caught:
        Panel.of(path, **roles)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([1.0, np.inf, *range(ROWS - 2)], "'d' holds an infinite value in row 2"),
        ([*map(str, range(ROWS - 1)), "odd"], "'d' holds numbers, but 'odd' in row 60"),
    ],
)
def test_what_is_refused_is_refused_alike_and_leaves_nothing(
    tmp_path, folder, monkeypatch, column, said
):
    path = tmp_path / "table.parquet"
    frame(d=column).to_parquet(path, row_group_size=11)
    loaded = refusal(path)
    assert said in loaded
    largest_in_memory(monkeypatch)
    assert refusal(path) == loaded
    assert os.listdir(folder) == []


def test_a_file_that_breaks_off_in_its_values_is_named(tmp_path, folder, monkeypatch):
    path = tmp_path / "table.parquet"
    frame().to_parquet(path, row_group_size=11)
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396
    path.write_bytes(content)
    largest_in_memory(monkeypatch)
    assert f"{str(path)!r} cannot be read as Parquet" in refusal(path)
    assert os.listdir(folder) == []


def test_a_full_disk_is_said_with_what_to_do(tmp_path, folder, monkeypatch):
    path = tmp_path / "table.parquet"
    frame().to_parquet(path)
    largest_in_memory(monkeypatch)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    said = refusal(path)
    assert f"temporary room in {str(folder)!r}: no space left on device" in said
    assert "TMPDIR" in said
    assert os.listdir(folder) == []


def test_a_folder_for_temporary_files_that_does_not_exist_is_named(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    frame().to_parquet(path)
    largest_in_memory(monkeypatch)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    assert "nowhere" in refusal(path)


def test_room_is_claimed_where_the_system_has_no_call_for_it(folder, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")
    largest_in_memory(monkeypatch)
    made = scratch.copied(ARRAY)
    assert is_mapped(made)
    np.testing.assert_array_equal(made, ARRAY)


def test_streaming_a_parquet_file_never_holds_the_table(tmp_path, folder, monkeypatch):
    rows, columns = 400_000, 25  # 40 MB
    path = tmp_path / "table.parquet"
    values = RNG.normal(size=(columns, rows)).astype(np.float32)
    pq.write_table(pa.table({f"v{i}": column for i, column in enumerate(values)}), path)
    largest_in_memory(monkeypatch, 2**20)
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        panel = Panel.of(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    assert is_mapped(panel.values)
    np.testing.assert_array_equal(panel.values[::1000], values.T[::1000])
    assert pool.max_memory() < values.nbytes / 2
    assert peak < values.nbytes


def test_the_windows_of_a_large_npy_file_are_drawn_from_the_file_itself(tmp_path, monkeypatch):
    shape = (250_000, 100)  # 100 MB, nearly all of it a hole in the file
    path = tmp_path / "large.npy"
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    mapped[0] = np.arange(1, 101)
    mapped.flush()
    largest_in_memory(monkeypatch, 2**20)
    tracemalloc.start()
    windows = Windows.of(Panel.of(path), 5)
    windows.panel.fingerprint()
    windows.split(0.2)
    windows.draw(np.arange(0, 249_000, 2500))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert is_mapped(windows.panel.values)
    assert peak < 60_000_000  # the rows of the windows, and one piece at a time

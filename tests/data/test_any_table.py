"""Tables as people have them: they open, or one sentence says what to do."""

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.data.cleaning import without_counters
from forecause.data.tables import plain_rows

ROWS = 40
RNG = np.random.default_rng(0)
RAIN, RIVER = RNG.gamma(2, 900, ROWS).round(2), RNG.normal(1500, 400, ROWS).round(2)
FRAME = pd.DataFrame({"größe": RAIN, "fluss": RIVER})


def german(value: float) -> str:
    return marked(value, ".", ",")


def marked(value: float, thousands: str, decimal: str) -> str:
    return f"{value:,.2f}".translate(str.maketrans({",": thousands, ".": decimal}))


def cells(text, separator=";"):
    rows = zip(RAIN, RIVER, strict=True)
    lines = [f"{text(a)}{separator}{text(b)}" for a, b in rows]
    return "\n".join([f"größe{separator}fluss", *lines]) + "\n"


def workbook(path, sheets):
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(path) as book:
        for name, frame in sheets.items():
            frame.to_excel(book, sheet_name=name, index=False)


def dated(path):
    stamps = pd.date_range("2024-01-01", periods=ROWS, freq="D").strftime("%d.%m.%Y")
    rows = zip(stamps, RAIN, RIVER, strict=True)
    text = "\n".join(f"{day};{german(a)};{german(b)}" for day, a, b in rows)
    path.write_text("Datum;größe;fluss\n" + text, encoding="utf-8")


FILES = {
    "utf-8.csv": (lambda p: FRAME.to_csv(p, index=False), {}, None),
    "latin-1.csv": (
        lambda p: p.write_text(cells(str), encoding="latin-1"),
        {},
        "not in UTF-8 and was read as Western European",
    ),
    "utf-16.csv": (lambda p: p.write_text(cells(str, ","), encoding="utf-16"), {}, None),
    "cp1250.csv": (
        lambda p: p.write_text(cells(str, ","), encoding="cp1250"),
        {"encoding": "cp1250"},
        None,
    ),
    "bom.csv": (lambda p: FRAME.to_csv(p, index=False, encoding="utf-8-sig"), {}, None),
    "german.csv": (
        lambda p: p.write_text(cells(german), encoding="utf-8"),
        {},
        "marks between their thousands",
    ),
    "german-dates.csv": (dated, {}, "'Datum' was taken as the time"),
    "american.csv": (
        lambda p: p.write_text(cells(lambda x: f'"{x:,.2f}"', ","), encoding="utf-8"),
        {},
        "marks between their thousands",
    ),
    "french.csv": (
        lambda p: p.write_text(cells(lambda x: marked(x, "\u202f", ",")), encoding="utf-8"),
        {},
        "marks between their thousands",
    ),
    "spaced.csv": (
        lambda p: p.write_text(cells(lambda x: marked(x, " ", "."), ","), encoding="utf-8"),
        {},
        "marks between their thousands",
    ),
    "swiss.csv": (
        lambda p: p.write_text(cells(lambda x: marked(x, "'", ".")), encoding="utf-8"),
        {},
        "marks between their thousands",
    ),
    "tabs.tsv": (lambda p: FRAME.to_csv(p, index=False, sep="\t"), {}, None),
    "bars.csv": (lambda p: FRAME.to_csv(p, index=False, sep="|"), {}, "separated by bars"),
    "one.xlsx": (lambda p: workbook(p, {"Daten": FRAME}), {}, None),
    "two.xlsx": (
        lambda p: workbook(p, {"Info": pd.DataFrame(), "Daten": FRAME}),
        {},
        "the sheet 'Daten' of 2 was read",
    ),
    "named.xlsx": (
        lambda p: workbook(p, {"Alt": FRAME * 2 + 1, "Daten": FRAME}),
        {"sheet": "Daten"},
        None,
    ),
    "array.npy": (
        lambda p: np.save(p, FRAME.to_numpy()),
        {"columns": ["größe", "fluss"]},
        None,
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_opens_with_its_values_and_names_whatever_it_is_written_in(tmp_path, name):
    write, options, said = FILES[name]
    write(tmp_path / name)
    panel = fc.read(tmp_path / name, **options)
    assert panel.variables == ("größe", "fluss")
    np.testing.assert_allclose(panel.values, FRAME.to_numpy())
    assert said is None or any(said in note for note in panel.notes), panel.notes


HEAD = "größe,fluss\n"
BODY = "".join(f"{a},{b}\n" for a, b in zip(RAIN, RIVER, strict=True))
MORE_THAN_CELLS = {
    "comments.csv": ("# station 7\n\n# 2020\n" + HEAD + BODY, "without 2 lines of comment"),
    "header-in-comment.csv": ("# station 7\n#größe,fluss\n" + BODY, "without 1 line of comment"),
    "units.csv": (HEAD + "mm,m3/s\n" + BODY, "('mm', 'm3/s') was taken as units"),
    "units-above-thousands.csv": (
        cells(german).replace("\n", "\nmm;m3/s\n", 1),
        "('mm', 'm3/s') was taken as units",
    ),
    "both.csv": ("# from here\n" + HEAD + "mm,-\n" + BODY, "('mm') was taken as units"),
    "spaces.txt": ((HEAD + BODY).replace(",", "   "), "separated by spaces"),
    "commas.txt": (HEAD + BODY, None),
}


@pytest.mark.parametrize("name", MORE_THAN_CELLS)
def test_what_people_write_around_a_table_is_no_part_of_it(tmp_path, name):
    text, said = MORE_THAN_CELLS[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    panel = fc.read(tmp_path / name)
    assert panel.variables == ("größe", "fluss")
    np.testing.assert_allclose(panel.values, FRAME.to_numpy())
    assert said is None or any(said in note for note in panel.notes), panel.notes


def test_labels_in_the_first_row_are_not_taken_for_units(tmp_path):
    table = FRAME.assign(sky=["dry", "wet"] * (ROWS // 2))
    table.to_csv(tmp_path / "t.csv", index=False)
    assert fc.read(tmp_path / "t.csv", labels="sky").rows == ROWS


def test_a_first_row_with_a_date_and_numbers_is_no_header(tmp_path):
    days = pd.Series(pd.date_range("2024", periods=ROWS).strftime("%Y-%m-%d"))
    FRAME.assign(day=days).to_csv(tmp_path / "t.csv", index=False, header=False)
    panel = fc.read(tmp_path / "t.csv")
    assert (panel.rows, panel.variables) == (ROWS, ("x0", "x1"))
    assert panel.time is not None


@pytest.mark.parametrize("mark", ['"{:,}"', "{:,}"])
def test_whole_numbers_with_marks_between_their_thousands(tmp_path, mark):
    values, separator = RNG.integers(1_000_000, 9_000_000, ROWS), "," if '"' in mark else ";"
    lines = [f"{mark.format(value)}{separator}{a}" for value, a in zip(values, RAIN, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join([f"a{separator}b", *lines]))
    np.testing.assert_array_equal(fc.read(tmp_path / "t.csv").values[:, 0], values)


def test_the_first_sheet_with_numbers_is_read(tmp_path):
    cover = pd.DataFrame({"note": ["made by", "on a Monday"]})
    workbook(tmp_path / "t.xlsx", {"About": cover, "Daten": FRAME})
    assert fc.read(tmp_path / "t.xlsx").variables == ("größe", "fluss")


def test_year_month_and_hour_are_the_time():
    hours = pd.date_range("2024-01-30", periods=ROWS, freq="h")
    parts = {"year": hours.year, "month": hours.month, "day": hours.day, "hour": hours.hour}
    panel = fc.read(FRAME.assign(**parts))
    assert panel.variables == ("größe", "fluss")
    assert (panel.time == hours.to_numpy()).all()
    assert "hour" in fc.read(FRAME.assign(**parts), domain="month").variables
    assert "hour" in fc.read(FRAME.assign(**parts, date=hours)).variables


def test_months_in_words_in_a_column_are_the_time():
    months = pd.date_range("2020-01-01", periods=ROWS, freq="MS")
    panel = fc.read(FRAME.assign(when=months.strftime("%b %Y")))
    assert (panel.time == months.to_numpy()).all()


def test_times_of_which_some_name_their_zone_are_refused():
    hours = pd.date_range("2024-01-01", periods=ROWS, freq="h")
    told = [f"{hour}{'+01:00' * (i % 2)}" for i, hour in enumerate(hours)]
    with pytest.raises(fc.InputError, match="name their time zone and others do not"):
        fc.read(FRAME.assign(time=told))


@pytest.mark.parametrize(
    ("name", "write", "options", "said"),
    [
        ("t.xlsx", lambda p: workbook(p, {"a": FRAME}), {"sheet": "b"}, "the sheets are 'a'"),
        ("t.csv", lambda p: p.write_text(cells(str)), {"sheet": "b"}, "CSV, which has no sheet"),
        ("t.csv", lambda p: p.write_text(cells(str)), {"encoding": "klingon"}, "no encoding"),
        ("t.xls", lambda p: p.write_bytes(b"\xd0\xcf"), {}, "save it as .xlsx or CSV"),
        ("t.csv", lambda p: p.write_text(cells(str)), {"exclude": ["flus"]}, "mean 'fluss'"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(tmp_path, name, write, options, said):
    write(tmp_path / name)
    with pytest.raises(fc.InputError, match=said):
        fc.read(tmp_path / name, **options)


@pytest.mark.parametrize("style", ["%b %Y", "%B %Y", "%Y-%m"])
def test_months_as_text_in_an_index_are_the_time(style):
    months = pd.date_range("2020-01-01", periods=ROWS, freq="MS")
    panel = fc.read(FRAME.set_axis(months.strftime(style)))
    assert (panel.time == months.to_numpy()).all()


def test_other_text_in_an_index_is_no_time():
    panel = fc.read(FRAME.set_axis([f"run {i}" for i in range(ROWS)]))
    assert panel.time is None


def test_columns_are_chosen_and_left_out_while_the_time_stays():
    table = FRAME.assign(date=pd.date_range("2024", periods=ROWS), depth=RIVER**2)
    assert fc.read(table, columns=["depth", "fluss"]).variables == ("fluss", "depth")
    assert fc.read(table, exclude="größe").variables == ("fluss", "depth")
    assert fc.read(table, columns=["depth", "fluss"]).time is not None
    assert fc.read(FRAME.to_numpy(), columns=["x1"]).variables == ("x1",)


# --- columns that only grow ------------------------------------------------------------------


def growing(rows=400):
    requests = RNG.poisson(50, rows)
    total = np.cumsum(requests).astype(float)
    total[250:] -= total[249]  # a restart: counts from 0 again
    clock = 60.0 * np.arange(rows) + 7
    build = np.repeat([101, 102, 103, 104], rows // 4)
    load = RNG.normal(size=rows)
    table = {"load": load, "requests_total": total, "uptime": clock, "build": build}
    return requests, pd.DataFrame(table)


def test_a_counter_becomes_its_rate_and_clocks_and_running_numbers_are_left_out():
    requests, table = growing()
    panel = fc.read(table, gaps="drop")
    assert panel.variables == ("load", "requests_total")
    np.testing.assert_allclose(panel.values[1:, 1], requests[1:])  # over the reset, too
    assert np.isnan(panel.values[0, 1])
    told = " ".join(panel.notes)
    assert "'requests_total' only grows, as a counter does" in told
    assert "'uptime' grows by the same step" in told
    assert "'build' is a number that only grows, and seldom" in told


def test_fewer_rows_of_a_counter_are_read_as_all_were():
    requests, table = growing()
    panel = fc.read(table[["load", "requests_total"]])
    assert panel.reading["counter"] == ("requests_total",)
    few = fc.read(table[["load", "requests_total"]].tail(50), **panel.reading | {"gaps": "drop"})
    np.testing.assert_allclose(few.values[1:, 1], requests[351:])
    values, *_ = plain_rows(table.tail(20), panel.read_by, panel)
    np.testing.assert_allclose(values[1:, 1], requests[381:])


def test_columns_that_grow_stay_as_they_are_if_asked():
    _, table = growing()
    panel = fc.read(table, counter="none")
    np.testing.assert_array_equal(panel.values, table.to_numpy())


def test_a_counter_can_be_named():
    level = np.cumsum(RNG.gamma(2, 1, 400))  # no whole numbers, no telling name
    table = pd.DataFrame({"load": RNG.normal(size=400), "water": level})
    assert (fc.read(table).values[:, 1] == level).all()
    named = fc.read(table, counter="water", gaps="drop")
    np.testing.assert_allclose(named.values[1:, 1], np.diff(level))


@pytest.mark.parametrize(
    "column",
    [
        np.cumsum(RNG.normal(size=400)),  # a random walk
        np.sin(np.arange(400)) + np.arange(400),  # a trend with something on it
        (np.arange(400) > 200).astype(float),  # a policy that came
        np.repeat(np.arange(1, 41), 10).astype(float),  # whole numbers that grow now and then
        100 * np.exp(0.005 * np.arange(400)),  # an index
    ],
)
def test_what_may_be_a_level_stays_one(column):
    values = np.column_stack([RNG.normal(size=400), column])
    starts = np.arange(400) == 0
    made, names, changes = without_counters(values, ["a", "level"], starts)
    assert made is values
    assert names == ("a", "level")
    assert not changes

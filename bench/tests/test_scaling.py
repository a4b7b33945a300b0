"""Columns that are sizes: their jobs, tables, figures and exponents, from results made by hand."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecause.errors import InputError
from forecause_bench import methods, runner
from forecause_bench.aggregate import Results, Row
from forecause_bench.document import to_markdown
from forecause_bench.figures import against_size, draw_figures
from forecause_bench.growth import growth
from forecause_bench.jobs import jobs_of
from forecause_bench.run import narrowed
from forecause_bench.suite import Cell, Suite
from forecause_bench.suites import SUITES
from forecause_bench.tables import document
from made_results import answer, made_results, result

SMALL = {"nodes": 5, "max_lag": 2}
SIZES = (10, 20, 50, 100)
SUITE = Suite(
    "made",
    "Made by hand",
    (
        *[Cell(f"{n} variables", {**SMALL, "nodes": n}, rows=70, along=("variables", n))
          for n in SIZES],
        Cell("20 rows", SMALL, rows=20, along=("rows", 20)),
        Cell("10 rows", SMALL, rows=10, along=("rows", 10)),
        Cell("plain", SMALL),
    ),
    methods=("forecause", "var-fdr"),
    rows=(300, 400),
    seeds=1,
    limit=100.0,
    metrics=("f1", "seconds", "memory_mb"),
)  # fmt: skip
VARIABLES = dict(Results(SUITE, []).axes())["variables"]


def timed(method, size, seconds, **more):
    """A result on the column of this many variables; None is a timeout."""
    cell = {"cell": f"{size} variables", "rows": 70}
    if seconds is None:
        return result(method, 0, **cell, status="timeout", seconds=100.0, **more)
    return result(method, 0, answer(0.5), **cell, **{"seconds": seconds, **more})


def made(seconds_of, method="forecause", **more):
    """Results with seconds, or None, by size."""
    return [timed(method, size, seconds_of(size), **more) for size in SIZES]


def growth_of(results, metric="seconds"):
    return growth(Results(SUITE, results), Row("forecause"), VARIABLES, metric)


def test_a_column_with_its_own_rows_is_run_with_these_alone():
    jobs = [(job.cell, job.rows) for job in jobs_of(SUITE) if job.method == "var-fdr"]
    sized = [(f"{n} variables", 70) for n in SIZES]
    assert jobs == [*sized, ("20 rows", 20), ("10 rows", 10), ("plain", 300), ("plain", 400)]


def test_each_axis_has_a_table_small_to_large_and_the_rest_as_ever():
    layouts = Results(SUITE, []).layouts()
    shown = [(title, [column.heading for column in columns]) for title, columns in layouts]
    assert shown == [
        ("by variables", [f"{n} variables" for n in SIZES]),
        ("by rows", ["10 rows", "20 rows"]),
        ("300 rows", ["plain"]),
        ("400 rows", ["plain"]),
    ]
    headings = [column.heading for column in Results(SUITE, []).columns()]
    assert headings[4:] == ["20 rows", "10 rows", "plain, 300 rows", "plain, 400 rows"]


def test_rows_cannot_be_asked_for_where_columns_have_their_own():
    with pytest.raises(InputError, match="leave --rows out and choose with --columns"):
        narrowed(SUITE, rows=[500])


@given(st.floats(-1, 4), st.floats(1e-3, 1e3))
def test_the_exponent_of_a_power_law_is_its_power(power, factor):
    found = growth_of(made(lambda size: factor * size**power))
    assert found.exponent == pytest.approx(power, abs=1e-6)
    assert found.last == pytest.approx(power, abs=1e-6)
    assert str(found) == f"{found.exponent:.2f}"


def test_a_last_step_that_is_steeper_is_told_and_a_flatter_one_is_not():
    steep = growth_of(made(lambda size: 3.0 if size < 100 else 24.0))
    assert steep.last == pytest.approx(3.0)  # 8 times the time for twice the size
    assert str(steep).endswith(", last 3.00")
    flat = growth_of(made(lambda size: min(size, 50) / 10))
    assert flat.last == pytest.approx(0.0)
    assert "last" not in str(flat)


def test_timeouts_are_left_out_and_three_sizes_must_be_left():
    over_100 = growth_of(made(lambda size: None if size == 100 else size**2 / 100))
    assert str(over_100) == "2.00 (3 of 4)"
    assert str(growth_of(made(lambda size: None if size >= 50 else 1.0))) == "- (2 of 4)"


def test_memory_has_its_own_exponent_and_no_logarithm_of_nothing():
    results = [timed("forecause", size, 1.0, memory_mb=5.0 * size) for size in SIZES]
    assert str(growth_of(results, "memory_mb")) == "1.00"
    results[0]["memory_mb"] = 0.0
    assert str(growth_of(results, "memory_mb")) == "1.00 (3 of 4)"


@pytest.fixture(scope="module")
def results():
    """Forecause linear in size and as it expected but once, VAR cubic and over the limit."""
    forecause = [
        timed("forecause", n, n / 10, method_cpu_seconds=n / 10, expected_least=n / 20,
              expected_seconds=min(n / 5, 9)) for n in SIZES
    ]  # fmt: skip
    var = made(lambda n: None if n == 100 else n**3 / 5000, "var-fdr", memory_mb=7.4)
    return Results(SUITE, [*forecause, *var])


@pytest.fixture(scope="module")
def page(results):
    return to_markdown(document(results, [], []))


def test_least_time_and_memory_are_best(page):
    assert "| Forecause | <u>1.00</u> | <u>2.00</u> | **5.00** | 10.00 |" in page
    assert "| VAR (FDR) | **0.20** | **1.60** | <u>25.00</u> | timeout |" in page
    assert "| VAR (FDR) | **7** | **7** | **7** | timeout |" in page


def test_the_page_has_exponents_and_the_expected_time_where_there_are_axes(page):
    assert "| Forecause | 1.00 | - (0 of 2) |" in page
    assert "| VAR (FDR) | 3.00 (3 of 4) | - (0 of 2) |" in page
    assert "| 50 variables | 5.0 in 2.5 to 9.0 |" in page
    assert "It held in 3 of 4." in page
    assert "| 10 rows | not run |" in page
    without = to_markdown(document(made_results(), [], []))
    assert not re.search("Growth with size|expected", without)


def test_a_timeout_is_drawn_as_an_open_marker_at_the_limit(results):
    axes = against_size(results, "variables", VARIABLES, "seconds").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert lines["VAR (FDR)"] == pytest.approx([0.2, 1.6, 25.0])
    open_markers = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    over = [line for line in open_markers if len(line.get_xdata())]
    assert [list(line.get_ydata()) for line in over] == [[100.0]]
    assert over[0].get_xdata()[0] == pytest.approx(100, rel=0.05)
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert ticks == ["10", "20", "50", "100"]


def test_every_axis_has_a_figure_of_time_and_of_memory(results, tmp_path):
    titles = [picture.title for picture in draw_figures(results, tmp_path)]
    assert [title for title in titles if "by variables" in title] == [
        "F1, by variables", "Time in seconds, by variables", "Peak memory in MB, by variables",
    ]  # fmt: skip


def test_a_job_of_ours_says_what_it_expected_and_one_of_a_rival_does_not():
    job = {"system": SMALL, "rows": 300, "seed": 0}
    found = runner.run_job({**job, "method": "linear"})
    assert 1.0 < found["expected_seconds"] < 30.0  # a second is allowed for the start
    assert 0.0 < found["expected_least"] < found["expected_seconds"]
    assert "expected_seconds" not in runner.run_job({**job, "method": "var-fdr"})


def test_what_is_expected_grows_with_what_is_asked_for():
    panel = runner.simulate(**SMALL, rows=1000, seed=0).panel
    expected = {
        name: methods.METHODS[name].expected(panel, 2)["expected_seconds"]
        for name in ("linear", "forecause-transformer", "forecause")
    }
    assert expected["linear"] < expected["forecause-transformer"]
    assert expected["linear"] < expected["forecause"]


def test_the_study_spans_the_sizes_it_promises():
    suite = SUITES["scaling"]
    axes = {axis: [c.size for c in columns] for axis, columns in Results(suite, []).axes()}
    assert axes["rows"] == [1_000, 10_000, 100_000, 1_000_000]
    assert axes["variables"] == [10, 25, 50, 100]
    assert axes["lag"] == [5, 10, 25, 50]
    for cell in suite.cells:
        axis, size = cell.along or ("variables", 100)
        sizes = {"rows": cell.rows, "variables": cell.system["nodes"]}
        assert (sizes | {"lag": cell.system["max_lag"]})[axis] == size
    jobs = {(job.cell, job.method) for job in jobs_of(suite)}
    assert {("lag 50", "forecause-transformer"), ("100 variables monotonic", "pcmci+")} <= jobs

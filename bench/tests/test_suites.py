"""The declared suites: they can be simulated, run and compared with the paper."""

import numpy as np
import pytest

from forecause.data import Panel
from forecause.errors import InputError
from forecause.graph import LaggedGraph
from forecause.simulation import simulate
from forecause_bench import suite
from forecause_bench.jobs import Job, jobs_of
from forecause_bench.methods import METHODS
from forecause_bench.paper import paper_figure
from forecause_bench.real.source import is_real
from forecause_bench.rivals import BASELINES, run_baseline
from forecause_bench.run import narrowed
from forecause_bench.runner import run_job, system_of
from forecause_bench.scoring import score_answer
from forecause_bench.suite import Cell, Suite
from forecause_bench.suites import SUITES, find_suite

SIMULATED = [suite for suite in SUITES.values() if not is_real(suite)]
CELLS = {str(sorted(cell.system.items())): cell for suite in SIMULATED for cell in suite.cells}


def test_every_table_and_figure_of_the_study_has_a_suite():
    assert set(SUITES) == {
        "quick", "linear", "calibration", "calibration-size", "few-rows",
        "highdim-linear", "highdim-nonlinear", "longrange-linear", "longrange-nonlinear",
        "nonlinearity", "latent", "noise", "ns-regular", "ns-extreme", "low-drift", "variants",
        "top-k", "cnn", "uncertainty", "interventions", "domain-index", "post-processing",
        "domains", "regimes", "pretraining", "rows", "scaling", "wide", "screening", "speed",
        "nulls", "nulls-linked", "alerts", "drivers", "drivers-elsewhere", "effects", "gaps",
        "hourly", "hard",
        "own-tests", "own-tests-pretrained", "ranking",
        "causaltime", "dream3", "netsim", "lorenz96", "cdml", "rivers",
    }  # fmt: skip


@pytest.mark.parametrize("cell", CELLS.values(), ids=lambda cell: cell.name)
def test_every_column_can_be_made(cell):
    system = dict(cell.system)
    if system.get("nodes", 0) > 100:  # a table has more rows than columns
        system["nodes"] = 100
    panel, truth = system_of({"system": system, "rows": 120, "seed": 4})
    assert len(panel.values) == 120
    assert panel.variables == truth.variables
    assert truth.max_lag == system["max_lag"]
    if "maker" in system:
        return
    found = simulate(rows=120, seed=4, **system)
    assert panel.values.shape == (120, system["nodes"])
    assert len(found.graph.domains) == (0 if "segments" not in system else len(found.systems))


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_columns_can_be_named_on_the_command_line(suite):
    names = [cell.name for cell in suite.cells]
    assert len(set(names)) == len(names)
    assert not any("," in name for name in names)
    assert all(set(columns) <= set(names) for columns in suite.only.values())
    assert set(suite.methods) <= set(METHODS)


def test_all_rivals_take_part_in_quick_and_in_every_table():
    apart = ("pcmci+-now", "ols-all")  # one also answers at lag 0, the other is a control
    lagged = [name for name in BASELINES if name not in apart]
    assert tuple(lagged) == suite.BASELINES
    assert set(lagged) <= set(SUITES["quick"].methods) - set(SUITES["quick"].only)


@pytest.mark.parametrize("suite", SIMULATED, ids=lambda suite: suite.name)
def test_every_reference_to_the_paper_is_found_there(suite):
    for cell in suite.cells:
        for rows in (50_000, 1_000_000):
            if place := cell.paper_column(rows):
                assert paper_figure(*place, "dot-paper", "f1"), place


def test_a_paper_column_by_rows_is_the_one_of_as_many_rows_or_the_fewest():
    segments = SUITES["ns-regular"].cells[1]
    assert segments.paper_column(100_000) == ("ns_regular_seg2", "100K")
    assert segments.paper_column(2000) == ("ns_regular_seg2", "50K")


def test_an_unknown_suite_names_the_known_ones():
    with pytest.raises(InputError, match=r"Unknown suite 'fast'; choose one of quick, linear"):
        find_suite("fast")


def test_options_replace_what_the_suite_says():
    suite = narrowed(
        SUITES["noise"], rows=[500], seeds=1, methods=["linear"], columns=["Mixed"], limit=9
    )
    assert [(j.cell, j.rows, j.seed, j.method) for j in jobs_of(suite)] == [
        ("Mixed", 500, 0, "linear")
    ]
    assert suite.limit == 9


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"methods": ["magic"]}, "Unknown method 'magic'"),
        ({"columns": ["n=3"]}, "Unknown column 'n=3'; noise has Gaussian"),
        ({"rows": [-1]}, "rows must be above 0, found -1"),
        ({"seeds": 0}, "seeds must be above 0, found 0"),
        ({"limit": 0}, "limit must be above 0, found 0"),
    ],
)
def test_wrong_options_are_refused(option, sentence):
    with pytest.raises(InputError, match=sentence):
        narrowed(SUITES["noise"], **option)


def test_a_method_that_runs_on_some_columns_has_no_job_on_the_others():
    suite = Suite("s", "S", SUITES["noise"].cells[:2], ("linear",), only={"linear": ("Uniform",)})
    assert {job.cell for job in jobs_of(suite)} == {"Uniform"}


def test_a_method_that_is_asked_for_runs_on_every_column():
    quick = SUITES["quick"]
    assert len(jobs_of(narrowed(quick, methods=["dot-paper"], seeds=1))) == len(quick.cells)


def test_the_key_of_a_job_is_stable_and_depends_on_everything():
    job = Job("s", "c", {"nodes": 5, "noise_variance": (0.5, 5.0)}, 100, 0, "linear")
    same = Job("s", "c", {"noise_variance": [0.5, 5.0], "nodes": 5}, 100, 0, "linear")
    others = [
        Job("s", "c", {"nodes": 6, "noise_variance": (0.5, 5.0)}, 100, 0, "linear"),
        Job("s", "c", job.system, 101, 0, "linear"),
        Job("s", "c", job.system, 100, 1, "linear"),
        Job("s", "c", job.system, 100, 0, "var-fdr"),
    ]
    assert job.key == same.key
    assert len({job.key, *(other.key for other in others)}) == 5


def quiet_system(rows, seed, max_lag, nodes):
    """Noise, and the graph without edges."""
    values = np.random.default_rng(seed).normal(size=(rows, nodes))
    names = [f"x{i}" for i in range(nodes)]
    return Panel.from_arrays([values], names), LaggedGraph.from_edges(names, max_lag, [])


def test_a_suite_may_bring_the_function_that_makes_its_systems():
    system = {"maker": f"{__name__}:quiet_system", "max_lag": 2, "nodes": 3}
    suite = Suite("quiet", "Noise", (Cell("noise", system),), methods=("var-fdr",), rows=(400,))
    results = [run_job(job.to_dict()) for job in jobs_of(suite)]
    assert [result["status"] for result in results] == ["done"] * suite.seeds
    panel, truth = quiet_system(400, 0, 2, 3)
    expected = score_answer(run_baseline("var-fdr", panel, 2), truth)
    assert results[0]["answers"][0] == {"label": "", **expected, "extra": {}}

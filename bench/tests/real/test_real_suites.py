"""Suites of recorded data: run from a folder, resumed, scored as summary graphs."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from recorded import write_causaltime, write_dream3, write_netsim
from sklearn.metrics import roc_auc_score

from forecause.errors import InputError
from forecause.graph import LaggedGraph, empty_scores
from forecause_bench import run, runner
from forecause_bench.aggregate import Column, Results, Row
from forecause_bench.jobs import Store, jobs_of
from forecause_bench.methods import METHODS
from forecause_bench.paper import Figure, paper_figure, paper_rows
from forecause_bench.real.loaders import dream3
from forecause_bench.real.source import with_data
from forecause_bench.real.suites import REAL_SUITES
from forecause_bench.rivals import run_baseline
from forecause_bench.run import command, narrowed, run_suite
from forecause_bench.scoring import score_summary
from forecause_bench.suites import SUITES, describe_suites
from forecause_bench.verdict import verdict

ASKED = {"methods": ["var-fdr", "random"], "columns": ["network 0", "network 1"]}


@pytest.fixture
def in_this_process(monkeypatch):
    """Starting a worker would take most of the time."""

    def run_jobs(jobs, store, *, done, data, **_):
        for job in jobs:
            store.save(job, runner.run_job(job.to_dict() | {"data": data}))
            done(job)

    monkeypatch.setattr(run, "run_jobs", run_jobs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two DREAM3 networks, a NetSim file and one CausalTime dataset."""
    place = tmp_path_factory.mktemp("data")
    write_dream3(place)
    write_dream3(place, "dream3_10_1", seed=50)
    write_netsim(place)
    write_causaltime(place)
    return place


@pytest.fixture(scope="module")
def finished(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return out, run_suite("dream3", **ASKED, jobs=1, out=out, data=folder)


def results_of(out, folder, suite="dream3", **asked):
    chosen = with_data(narrowed(SUITES[suite], **asked), folder)
    store = Store(out / "results")
    found = [result for job in jobs_of(chosen) if (result := store.load(job))]
    return Results(chosen, found)


def test_the_real_suites_are_among_the_others():
    assert {suite.name for suite in REAL_SUITES} == {
        "causaltime", "dream3", "netsim", "lorenz96", "cdml", "rivers"
    }  # fmt: skip
    assert all(SUITES[suite.name] == suite for suite in REAL_SUITES)
    assert {method for suite in REAL_SUITES for method in suite.methods} <= set(METHODS)
    assert any(line.startswith("dream3") and "rows all" in line for line in describe_suites())


def test_a_run_scores_the_summary_graph_alone(finished, folder):
    out, done = finished
    results = results_of(out, folder, **ASKED)
    assert done.ran == len(jobs_of(results.suite)) == 4
    column = Column("network 0", results.suite.cells[0], 0)
    entry = results.entry(Row("var-fdr"), column, "summary_no_self/auroc")
    (dataset,) = dream3(folder, "dream3_10_0")
    scores = run_baseline("var-fdr", dataset.panel, 2).scores.max("lag").values
    others = ~np.eye(3, dtype=bool)
    truth = dataset.truth.adjacency.any("lag").values
    assert entry.mean == pytest.approx(roc_auc_score(truth[others], scores[others]))
    assert results.entry(Row("var-fdr"), column, "f1").values == {}  # true lags are not known


def test_the_page_tells_the_command_without_where_the_data_lies(finished, folder):
    _, done = finished
    text = done.table.read_text()
    assert (
        "forecause bench dream3 --data FOLDER --methods var-fdr,random --columns 'network" in text
    )
    assert str(folder) not in text
    assert "AUROC of the summary graph, without self-links, all rows" in text
    assert "Oracle results" not in text
    assert "simulator" not in text


def test_a_run_continues_wherever_the_same_data_lies_and_starts_anew_with_other(
    finished, folder, tmp_path, in_this_process
):
    out, _ = finished
    moved, kept = tmp_path / "moved", tmp_path / "out"
    shutil.copytree(folder, moved)
    shutil.copytree(out, kept)
    assert run_suite("dream3", **ASKED, jobs=1, out=kept, data=moved).ran == 0
    write_dream3(moved, "dream3_10_1", seed=99)
    assert run_suite("dream3", **ASKED, jobs=1, out=kept, data=moved).ran == 2


def test_each_seed_of_netsim_is_a_subject(folder, tmp_path, in_this_process):
    asked = {"methods": ["var-fdr"], "seeds": 3}
    run_suite("netsim", **asked, jobs=1, out=tmp_path, data=folder)
    results = results_of(tmp_path, folder, "netsim", **asked)
    entry = results.entry(Row("var-fdr"), results.columns()[0], "summary_no_self/auroc")
    assert len(entry.values) == 3
    edges = [
        r["answers"][0]["metrics"]["summary"]["true_edges"] for r in results.of_method("var-fdr")
    ]
    assert sorted(edges) == [4, 5, 5]
    with pytest.raises(InputError, match="15 regions has 3 systems, found --seeds 4"):
        run_suite("netsim", seeds=4, out=tmp_path, data=folder)


def test_causaltime_stands_beside_the_published_table(folder, tmp_path, in_this_process):
    asked = {"methods": ["var-fdr"], "columns": ["AQI"], "seeds": 1}
    done = run_suite("causaltime", **asked, jobs=1, out=tmp_path, data=folder)
    text = done.table.read_text()
    assert "| JRNGC-F | *0.928±0.001* |" in text
    assert "| MLP (Ours) | *0.752±0.005* |" in text
    assert "Traffic" not in text.partition("As published")[2]
    assert done.verdict[0].startswith("Forecause's default is not part")


def test_lorenz_needs_no_folder_and_has_rows():
    suite = narrowed(
        with_data(SUITES["lorenz96"], None), methods=["var-fdr"], columns=["forcing 10"], rows=[250]
    )
    found = runner.run_job(jobs_of(suite)[0].to_dict())["answers"][0]["metrics"]
    assert found["summary"]["true_edges"] == 40
    assert found["summary_no_self"]["true_edges"] == 30
    assert found["summary"]["auroc"] > 0.8
    assert command(suite).startswith("forecause bench lorenz96 --rows 250 --methods var-fdr")


@pytest.mark.parametrize(
    ("suite", "options", "sentence"),
    [
        ("dream3", {}, "'dream3' needs recorded data; give its folder with --data"),
        ("dream3", {"data": "nowhere"}, "Expected the file 'dream3_10_0.tsv' in"),
        ("dream3", {"rows": [50]}, "The rows of dream3 are those that were recorded"),
        ("quick", {"data": "."}, "'quick' makes its own data; leave --data out"),
        ("lorenz96", {"data": "."}, "'lorenz96' makes its own data"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_written(suite, options, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        run_suite(suite, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_the_papers_causaltime_rows_are_found_under_our_names():
    assert paper_figure("causaltime", "AQI", "cmlp", "summary/auroc") == Figure(0.7172, 0.0076)
    assert paper_figure("causaltime", "Medical", "pcmci", "summary/auprc_trapezoid") == Figure(
        0.5082, 0.0177
    )
    assert paper_figure("causaltime", "AQI", "cmlp", "summary/average_precision") is None
    assert paper_figure("causaltime", "AQI", "cmlp", "summary_no_self/auroc") is None
    assert paper_figure("causaltime", "AQI", "dot-paper", "summary/auroc") is None
    assert len(paper_rows("causaltime", "summary/auroc")) == 16
    assert paper_rows("causaltime", "summary_no_self/auroc") == {}


def test_a_pair_counts_once_with_its_best_lag_and_the_diagonal_in_and_out():
    names = ("a", "b", "c")
    truth = LaggedGraph.from_edges(names, 1, [("a", "b", 1), ("a", "a", 1)])
    scores = empty_scores(names, 3)
    scores.loc[{"source": "a", "target": "b", "lag": 3}] = 5.0
    scores.loc[{"source": "c", "target": "b", "lag": 1}] = 4.0
    scores.loc[{"source": "a", "target": "a", "lag": 2}] = 3.0
    found = score_summary(LaggedGraph.from_scores(scores, scores > 4.5), truth)["metrics"]
    assert set(found) == {"summary", "summary_no_self"}
    assert found["summary_no_self"]["auroc"] == 1.0
    # 2 true and 7 absent pairs; one absent pair lies above one of the true ones.
    assert found["summary"]["auroc"] == pytest.approx(13 / 14)
    assert found["summary"]["f1"] == pytest.approx(2 / 3)
    # Precision 1 to recall 1/2, then the point (1, 2/3) by way of (1/2, 1/2).
    assert found["summary"]["auprc_trapezoid"] == pytest.approx(0.5 + 0.5 * (0.5 + 2 / 3) / 2)
    assert found["summary"]["average_precision"] == pytest.approx(0.5 + 0.5 * 2 / 3)


def test_wins_are_counted_by_the_leading_metric():
    suite = replace(
        SUITES["dream3"], cells=SUITES["dream3"].cells[:1], methods=("forecause", "cmlp")
    )

    def result(method, auroc):
        view = {"auroc": auroc, "f1": 1 - auroc}
        answer = {"label": "", "metrics": {"summary_no_self": view}, "oracle": {}, "extra": {}}
        job = {"cell": "network 0", "rows": 0, "seed": 0, "method": method}
        return {"job": job, "status": "done", "answers": [answer]}

    lines = verdict(Results(suite, [result("forecause", 0.7), result("cmlp", 0.6)]))
    assert lines[1] == "wins on network 0: AUROC 0.70 against 0.60 of Neural Granger (cMLP)"

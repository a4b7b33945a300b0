"""Runs that are killed, that time out, that fail: nothing lost, nothing done twice."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from errands import is_alive, wait_until
from forecause.errors import MissingExtra
from forecause_bench import run, runner
from forecause_bench.aggregate import Results
from forecause_bench.document import to_markdown
from forecause_bench.jobs import Store, jobs_of
from forecause_bench.methods import METHODS
from forecause_bench.run import narrowed, run_suite
from forecause_bench.suites import SUITES
from forecause_bench.tables import document
from heard import Heard

ASKED = {
    "rows": [300],
    "seeds": 2,
    "methods": ["random", "var-fdr", "random-oracle"],
    "columns": ["2 segments"],
}
JOBS = 6
SUITE = narrowed(SUITES["quick"], **ASKED)
TIMES = ("seconds", "cpu_seconds", "memory_mb", "finished")


def stored(folder):
    """The results of SUITE in a folder."""
    store = Store(folder / "results")
    return [found for job in jobs_of(SUITE) if (found := store.load(job))]


def page_without_times(folder):
    """The table, with everything that depends on the clock left out of the results."""
    results = [{k: v for k, v in found.items() if k not in TIMES} for found in stored(folder)]
    for found in results:
        found["seconds"] = 0.0
    return to_markdown(document(Results(SUITE, results), [], []))


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """A run from beginning to end."""
    folder = tmp_path_factory.mktemp("unbroken")
    heard = Heard()
    done = run_suite("quick", **ASKED, jobs=1, out=folder, progress=heard)
    return folder, done, heard.shares


def test_a_run_leaves_the_page_the_figures_and_one_file_per_job(unbroken):
    folder, done, shares = unbroken
    assert done.ran == len(stored(folder)) == JOBS
    assert done.table == folder / "table.md"
    assert "± standard deviation" in done.table.read_text()
    assert "forecause bench quick --rows 300 --methods random" in done.table.read_text()
    assert (folder / "table.html").exists()
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".png", ".svg"}
    assert (folder / "log.txt").read_text() == ""
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


def test_a_finished_run_is_not_done_again(unbroken):
    folder, done, _ = unbroken
    again = run_suite("quick", **ASKED, jobs=1, out=folder)
    assert again.ran == 0
    assert again.verdict == done.verdict


def test_results_do_not_depend_on_the_process_that_found_them(unbroken):
    folder, _, _ = unbroken
    for found in stored(folder)[:3]:
        here = runner.run_job(found["job"])
        assert here["answers"] == found["answers"]


def test_a_run_killed_in_the_middle_continues_and_ends_with_the_same_table(unbroken, tmp_path):
    words = [
        "bench", "quick", "--rows", "300", "--seeds", "2", "--methods", ",".join(ASKED["methods"]),
        "--columns", ",".join(ASKED["columns"]), "--jobs", "1", "--out", str(tmp_path), "--quiet",
    ]  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "forecause", *words])
    wait_until(lambda: stored(tmp_path))
    workers = _descendants(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").glob("*.json")}
    assert 1 <= len(kept) < JOBS
    assert workers
    wait_until(lambda: not any(is_alive(pid) for pid in workers))

    resumed = run_suite("quick", **ASKED, jobs=2, out=tmp_path)
    assert resumed.ran == JOBS - len(kept)
    assert all(path.stat().st_mtime_ns == written for path, written in kept.items())
    assert page_without_times(tmp_path) == page_without_times(unbroken[0])


def test_timeouts_and_failures_are_shown_and_failures_tried_again(tmp_path, monkeypatch):
    hopeless = {"nodes": 3, "max_lag": 30, "in_degree": 1.0}  # too few windows to fit anything
    suite = narrowed(SUITES["quick"], rows=[45], seeds=1, methods=["linear", "dot-paper"])
    cells = (replace(suite.cells[0], system=hopeless), replace(suite.cells[0], name="slow"))
    suite = replace(suite, cells=cells, only={"linear": ("linear",), "dot-paper": ("slow",)})
    for limit in (2.0, 20.0, 200.0):  # enough for the one to fail, however busy the machine is
        suite, out = replace(suite, limit=limit), tmp_path / f"{limit:g}"
        first = run_suite(suite, jobs=1, out=out)
        text = first.table.read_text()
        if "linear | failed" in text:
            break
    assert "| Forecause, linear | failed | - | - |" in text
    assert "linear: InputError: Too few rows" in text
    assert "| DOT (the paper's rules) | - | *0.95±0.02* | timeout |" in text
    tried = []
    monkeypatch.setattr(run, "run_jobs", lambda jobs, *_, **__: tried.extend(jobs))
    again = run_suite(suite, jobs=1, out=out)
    assert (first.ran, again.ran) == (2, 1)  # the timeout stands, the failure is tried again
    assert [job.method for job in tried] == ["linear"]
    tried.clear()
    run_suite(suite, jobs=1, limit=10 * limit, out=out)  # with more time, the timeout is, too
    assert [job.method for job in tried] == ["linear", "dot-paper"]


def test_a_missing_package_is_told_apart_from_a_failure(monkeypatch):
    def without_it(*_):
        raise MissingExtra("tigramite", "refine")

    monkeypatch.setitem(METHODS, "pcmci", replace(METHODS["pcmci"], run=without_it))
    job = next(job for job in jobs_of(SUITES["quick"]) if job.method == "pcmci")
    found = runner.run_job(job.to_dict())
    assert found["status"] == "missing"
    assert "pip install '.[refine]'" in found["error"]


def test_only_oracles_see_the_truth():
    for name, method in METHODS.items():
        assert method.oracle == ("oracle" in name) == ("oracle" in method.label)


def test_the_command_lists_suites_and_refuses_what_it_cannot_run(command):
    code, out, err = command("bench", "--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [*SUITES, "forecasts"]
    code, out, err = command("bench", "dream3")
    assert (code, out) == (2, "")
    assert "--data" in err
    code, out, err = command("bench", "quick", "--rows", "many")
    assert code == 2
    assert "Expected whole numbers joined by commas, found 'many'" in err


def _descendants(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children] + [
        other for child in children for other in _descendants(child)
    ]

"""The command as other programs and users meet it: exit codes, files, sentences."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import typer

import forecause as fc
from forecause.cli import app
from forecause.cli.commands import listed
from forecause.config.options import ReadingOptions
from systems import CHAIN_EDGES, chain, edge_set


@pytest.fixture
def run(command):
    return command


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "data.csv"
    pd.DataFrame(chain(800), columns=list("abc")).to_csv(path, index=False)
    return path


def test_discover_writes_the_run_and_shows_the_edges(run, csv, tmp_path):
    graph = tmp_path / "graph.json"
    code, out, err = run(
        "discover", csv, "--max-lag", 2, "--forecaster", "linear", "--out", tmp_path / "run",
        "--json", graph, "--quiet",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert edge_set(fc.load(tmp_path / "run").graph) == CHAIN_EDGES
    assert edge_set(fc.LaggedGraph.from_json(graph)) == CHAIN_EDGES
    assert "report.html" in out
    assert "0.8" not in err


def test_results_go_beside_the_caller_by_default(run, csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("discover", csv, "--max-lag", 1, "--forecaster", "linear", "-q")[0] == 0
    assert (tmp_path / "data-forecause" / "report.html").exists()


def test_what_to_expect_is_said_before_it_starts_unless_quiet(run, csv, tmp_path):
    asked = ("discover", csv, "--max-lag", "2", "--forecaster", "linear", "--out", tmp_path / "run")
    code, _, said = run(*asked, "--budget", "10m")
    assert code == 0
    assert re.search(r"Expecting about .* GB( \(other programs keep this machine busy\))?\.", said)
    code, _, said = run(*asked, "--quiet")
    assert (code, said) == (0, "")


def test_options_reach_the_library(run, csv, tmp_path):
    code, *_ = run(
        "discover", csv, "--max-lag", 2, "--forecaster", "additive", "--select", "global-top-k",
        "--k", 2, "--set", "edges.by=rank", "--readout", "lrp", "--seed", 7, "--device", "cpu",
        "--out", tmp_path / "run", "--quiet",
    )  # fmt: skip
    config = fc.load(tmp_path / "run").config
    assert code == 0
    names = ("select", "k", "by", "readout", "seed", "forecaster")
    assert {name: config.flat()[name] for name in names} == {
        "select": "global-top-k",
        "k": 2,
        "by": "rank",
        "readout": "lrp",
        "seed": 7,
        "forecaster": "additive",
    }


def test_a_run_is_made_again_from_its_configuration(run, csv, tmp_path):
    asked = ("--max-lag", 2, "--forecaster", "linear", "--set", "thresholds.edges.least_share=0.2")
    assert run("discover", csv, *asked, "--out", tmp_path / "run", "-q")[0] == 0
    before = fc.load(tmp_path / "run")
    assert before.config.thresholds.edges.least_share == 0.2
    code, *_ = run(
        "discover", csv, "--config", tmp_path / "run" / "run.json", "--seed", 3,
        "--out", tmp_path / "again", "-q",
    )  # fmt: skip
    after = fc.load(tmp_path / "again")
    assert code == 0
    assert after.config == before.config.with_options(seed=3)
    assert after.graph == before.graph


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (("--head", "gaussian"), "--head is written --set forecasting.head=VALUE."),
        (("--no-domain-input",), "--no-domain-input is written --set forecasting.domain_input"),
        (("--set", "data.gap=drop"), "no option of data: 'gap'; did you mean 'gaps'"),
        (("--config", "nowhere.json"), "Cannot read 'nowhere.json': No such file"),
    ],
)
def test_options_beyond_the_flags_are_refused_with_what_to_write(run, csv, asked, sentence):
    code, out, err = run("discover", csv, *asked)
    assert (code, out) == (2, "")
    assert sentence in err


def test_every_command_is_listed_as_it_describes_itself():
    group = typer.main.get_command(app)
    for name, line in listed().items():
        command = group.get_command(None, name)
        assert command.get_short_help_str(100) == line


@pytest.mark.parametrize("words", [("bench", "quick"), ("bench", "--help"), ("pretrain", "out")])
def test_without_its_package_a_command_says_what_to_install(run, words, monkeypatch):
    monkeypatch.setattr("forecause.cli.commands.find_spec", lambda name: None)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert f"The command '{words[0]}' is part of the package 'forecause-bench'" in err
    assert "bench" not in run("--help")[1]


def test_help_imports_no_more_than_it_needs():
    code = "import sys; sys.argv = ['forecause', '--help']; import forecause.__main__ as m\n"
    code += "try: m.main()\nexcept SystemExit: pass\n"
    code += (
        "heavy = {'pydantic', 'rich', 'numpy', 'torch', 'importlib.metadata'} & set(sys.modules)\n"
    )
    code += "sys.exit(str(heavy) if heavy else 0)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "empty"),
        ("a,b\n1,2\n", "Too few rows|more columns|constant"),
        ("a,b\n" + "1,2\n" * 50, "constant"),
        ("a,b\n" + "".join(f"{i},{i * i if i % 9 else 'x'}\n" for i in range(50)), "'b'"),
        ("a,a\n" + "".join(f"{i},{i * i}\n" for i in range(50)), "'a'"),
    ],
)
def test_a_bad_table_gets_one_sentence_and_leaves_nothing(run, tmp_path, content, sentence):
    import re

    path = tmp_path / "bad.csv"
    path.write_text(content)
    code, out, err = run("discover", path, "--out", tmp_path / "run", "--quiet")
    assert (code, out) == (2, "")
    assert err.startswith("forecause: ")
    assert err.count("\n") == 1
    assert re.search(sentence, err)
    assert [file.name for file in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("discover", "nowhere.csv"),
        ("discover", "--max-lag", "x", "a.csv"),
        ("discover", "a.csv", "--forecaster", "lstm"),
        ("score", "nowhere.json", "nowhere.json"),
        ("simulate", "--out", "d", "--mechanism", "magic"),
        ("fly",),
    ],
)
def test_a_wrong_call_exits_with_two(run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert err
    assert not list(tmp_path.iterdir())


def test_a_fault_of_ours_exits_with_one_and_says_so(run, csv, monkeypatch):
    def broken(*_args, **_kwargs):
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr("forecause.resources.fitting.fit_best", broken)
    code, _, err = run("discover", csv, "--quiet")
    assert code == 1
    assert err == "forecause: ZeroDivisionError: surprise (set FORECAUSE_DEBUG=1 for the details)\n"


def test_simulate_then_score_against_itself(run, tmp_path):
    code, out, _ = run("simulate", "--nodes", 4, "--max-lag", 2, "--rows", 300, "--out", tmp_path)
    assert code == 0
    assert out.splitlines() == [str(tmp_path / "data.csv"), str(tmp_path / "graph.json")]
    graph = tmp_path / "graph.json"
    code, out, _ = run("score", graph, graph, "--json")
    metrics = json.loads(out)
    assert code == 0
    assert metrics["lagged"]["f1"] == 1.0
    assert metrics["lagged"]["shd"] == 0
    assert {"precision", "recall", "f1", "shd"} <= set(metrics["summary"])
    code, out, _ = run("score", graph, graph)
    assert "f1 by chance" in out


def test_two_tables_of_one_name_do_not_share_a_folder(run, csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "elsewhere" / "data.csv"
    other.parent.mkdir()
    pd.DataFrame(chain(300, seed=5), columns=list("abc")).to_csv(other, index=False)
    asked = ("--max-lag", 1, "--forecaster", "linear", "-q")
    for table in (csv, other, csv, other):  # the second time each finds its own again
        assert run("discover", table, *asked)[0] == 0
    assert fc.load("data-forecause").data.rows == 800
    assert fc.load("data-forecause-2").data.rows == 300
    assert not (tmp_path / "data-forecause-3").exists()


@pytest.mark.parametrize("held", ["settings", "data", "file"])
def test_what_a_folder_holds_is_not_replaced_unasked(run, csv, tmp_path, held, monkeypatch):
    asked = ["--max-lag", 1, "--forecaster", "linear", "-q", "--out", tmp_path / "run"]
    assert run("discover", csv, *asked)[0] == 0
    if held == "settings":
        asked += ["--fdr", 0.1]
    elif held == "data":
        pd.DataFrame(chain(700), columns=list("abc")).to_csv(csv, index=False)
    else:
        (tmp_path / "run" / "run.json").write_text("mine")
    before = (tmp_path / "run" / "run.json").read_bytes()
    monkeypatch.setattr(
        "forecause.resources.fitting.fit_best", None
    )  # it is refused before any work
    code, out, err = run("discover", csv, *asked)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--force" in err
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    monkeypatch.undo()
    assert run("discover", csv, *asked, "--force")[0] == 0
    assert fc.load(tmp_path / "run").graph.max_lag == 1


def _dangling(path):
    path.symlink_to("nowhere")


def _loop(path):
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("make", "out"),
    [
        (None, ""),
        (None, "x" * 300),
        (None, "data.csv/run"),
        (None, "data.csv"),
        (_dangling, "link"),
        (_dangling, "link/run"),
        (_loop, "link"),
        (_loop, "link/run"),
        (None, "/proc/nothing/run"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_any_work(
    run, csv, tmp_path, monkeypatch, make, out
):
    monkeypatch.chdir(tmp_path)
    if make:
        make(tmp_path / "link")
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr("forecause.resources.fitting.fit_best", None)
    code, said, err = run("discover", csv, "--out", out, "-q")
    assert (code, said) == (2, "")
    assert "Traceback" not in err
    assert sorted(tmp_path.iterdir()) == before


def test_no_room_is_said_before_any_work(run, csv, tmp_path, monkeypatch):
    monkeypatch.setattr("forecause.common.files.ROOM", 2**70)
    monkeypatch.setattr("forecause.resources.fitting.fit_best", None)
    code, _, err = run("discover", csv, "--out", tmp_path / "run", "-q")
    assert code == 2
    assert "are free" in err


def test_version(run):
    assert run("--version")[:2] == (0, f"forecause {fc.__version__}\n")


SLOW_START = """
import sys, time
class Slow:
    def find_spec(self, name, *_):
        if name == "forecause.cli":
            print("importing", flush=True)
            time.sleep(600)
sys.meta_path.insert(0, Slow())
from forecause.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_start_up_shows_no_traceback(number, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_START],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # nohup ignores one
    )
    assert process.stdout.readline() == "importing\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 128 + number
    assert err == "forecause: stopped; nothing was written.\n"


def test_ctrl_c_ends_cleanly_and_writes_nothing(tmp_path):
    pd.DataFrame(chain(20_000), columns=list("abc")).to_csv(tmp_path / "d.csv", index=False)
    command = [
        sys.executable,
        "-m",
        "forecause",
        "discover",
        "d.csv",
        "--forecaster",
        "transformer",
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    said = iter(process.stderr.readline, "")
    assert any("Expecting about" in line for line in said)  # said right before the training
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert out == ""
    assert err.endswith("forecause: stopped; nothing was written.\n")
    assert [file.name for file in tmp_path.iterdir()] == ["d.csv"]


@pytest.fixture(scope="module")
def chain_run(tmp_path_factory):
    table = pd.DataFrame(chain(800), columns=list("abc"))
    stamps = pd.date_range("2024-01-01", periods=800, freq="D")
    found = fc.discover(table.assign(day=stamps), 2, time="day", forecaster="linear")
    return found.save(tmp_path_factory.mktemp("asked") / "run")


def test_effect_tells_the_interval_that_python_tells(run, chain_run):
    code, out, _ = run("effect", chain_run, "a", "b", "--json")
    (told,) = json.loads(out)
    known = fc.load(chain_run).effect("a", "b", told["lag"])
    assert code == 0
    assert [told["change"], told["low"], told["high"]] == [known.change, known.low, known.high]
    code, out, _ = run("effect", chain_run, "a", "b")
    assert code == 0
    assert "after" in out
    assert "1 day" in out
    code, _, err = run("effect", chain_run, "a", "z")
    assert (code, "Unknown variable 'z'" in err) == (2, True)


def test_forecast_has_dates_bands_and_what_would_come(run, chain_run, tmp_path):
    out_file = tmp_path / "ahead.csv"
    code, out, _ = run("forecast", chain_run, "--steps", 3, "--out", out_file)
    ahead = pd.read_csv(out_file)
    assert code == 0
    assert "2026-03-11" in out
    assert ahead["time"].unique().tolist() == ["2026-03-11", "2026-03-12", "2026-03-13"]
    assert ((ahead["low_95"] <= ahead["low_80"]) & (ahead["high_80"] <= ahead["high_95"])).all()
    code, out, _ = run("forecast", chain_run, "--steps", 2, "--hold", "a=3", "--json")
    assert [row["forecast"] for row in json.loads(out) if row["variable"] == "a"] == [
        pytest.approx(3),
        pytest.approx(3),
    ]
    code, _, err = run("forecast", chain_run, "--hold", "a")
    assert (code, "Expected --hold NAME=VALUE" in err) == (2, True)


def test_score_takes_run_folders(run, chain_run):
    code, out, _ = run("score", chain_run, chain_run / "graph.json", "--json")
    assert code == 0
    assert json.loads(out)["lagged"]["f1"] == 1.0


def test_the_graph_can_be_read_from_standard_output(run, csv, tmp_path):
    code, out, err = run(
        "discover", csv, "--max-lag", 2, "--forecaster", "linear", "--out", tmp_path / "run",
        "--json", "-", "--quiet",
    )  # fmt: skip
    assert code == 0
    assert edge_set(fc.LaggedGraph.from_json(out)) == CHAIN_EDGES
    assert "report.html" in err


def test_an_empty_graph_gets_its_sentence(run, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "noise.csv"
    pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")).to_csv(path, index=False)
    code, out, _ = run("discover", path, "--forecaster", "linear", "--out", tmp_path / "run", "-q")
    assert code == 0
    assert "No variable was found to drive another." in out


def test_a_page_that_is_a_link_is_not_written_through(run, tmp_path):
    folder = fc.discover(chain(150), max_lag=1, forecaster="linear").save(tmp_path / "run")
    (tmp_path / "mine.txt").write_text("mine")
    (folder / "report.html").unlink()
    (folder / "report.html").symlink_to(tmp_path / "mine.txt")
    code, _, said = run("report", folder)
    assert code == 2
    assert "is a link; name the page to write with --out" in said
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert run("report", folder, "--out", tmp_path / "page.html")[0] == 0
    assert fc.load(folder).save(folder).joinpath("report.html").is_symlink() is False
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.fixture
def little_room():
    """No file can grow beyond 200 bytes, as on a disk that is nearly full."""

    @contextmanager
    def limited():
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.mark.parametrize("name", ["forecast", "evaluate", "simulate"])
def test_a_full_disk_leaves_the_old_file_as_it_was(run, csv, tmp_path, little_room, name):
    out = tmp_path / "truth" / "data.csv"
    out.parent.mkdir()
    out.write_text("old\n" * 5)
    folder = fc.discover(csv, max_lag=1, forecaster="linear").save(tmp_path / "run")
    words = {
        "forecast": ("forecast", folder, "--out", out),
        "evaluate": ("evaluate", csv, "--max-lag", 1, "--forecaster", "linear", "--out", out, "-q"),
        "simulate": ("simulate", "--out", out.parent, "--rows", 100),
    }[name]
    with little_room():
        code, _, said = run(*words)
    assert code == 2
    assert "File too large" in said
    assert out.read_text() == "old\n" * 5
    assert [left.name for left in out.parent.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(
    "words",
    [
        ("discover", "data.csv"),
        ("evaluate", "data.csv"),
        ("forecast", "run"),
        ("response", "run", "--source", "a"),
        ("explain", "run", "--at", "5"),
        ("changed", "run", "--before", "0..99", "--after", "100..199"),
        ("report", "run"),
        ("refine", "run", "--latent"),
        ("simulate",),
        ("demo",),
    ],
    ids=lambda words: words[0],
)
def test_a_dash_is_no_name_to_write_to(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(chain(200), columns=list("abc"))
    table.to_csv("data.csv", index=False)
    fc.discover("data.csv", max_lag=1, forecaster="linear").save("run")
    code, out, err = run(*words, "--out", "-")
    assert (code, out) == (2, "")
    kind = "folder" if words[0] in ("discover", "refine", "simulate", "demo") else "file"
    assert err == f"forecause: Expected the name of a {kind} to write to, found '-'.\n"
    assert not (tmp_path / "-").exists()


def test_discover_and_evaluate_read_a_table_alike(run, tmp_path):
    """Every option that says how a table is read is one of both commands, and does its work."""
    group = typer.main.get_command(app)
    names = {
        command: {one.name for one in group.get_command(None, command).params}
        for command in ("discover", "evaluate")
    }
    reading = set(ReadingOptions.model_fields) - {"every_how", "interpolate", "gaps"}
    assert all(reading <= own for own in names.values())
    table = pd.DataFrame(chain(200), columns=["größe", "b", "c"])
    table["built"] = np.cumsum(np.random.default_rng(0).poisson(3, 200))
    table.to_csv(tmp_path / "data.csv", index=False, encoding="cp850")
    asked = ("--encoding", "cp850", "--exclude", "c", "--max-lag", 1, "--forecaster", "linear")
    few = ("--steps", 1, "--origins", 1, "--out", tmp_path / "errors.csv")
    code, _, said = run("evaluate", tmp_path / "data.csv", *asked, *few)
    assert code == 0, said
    errors = pd.read_csv(tmp_path / "errors.csv").query("method == 'mean'")
    assert set(errors["variable"]) == {"größe", "b", "built"}
    assert errors["mae"].max() < 10  # of the counter's increase, not of its level


def test_tables_mark_names_that_a_spreadsheet_would_run(run, tmp_path):
    table = pd.DataFrame(chain(150), columns=["=1+1", "@SUM(A1)", "-c"])
    folder = fc.discover(table, max_lag=1, forecaster="linear").save(tmp_path / "run")
    table.to_csv(tmp_path / "data.csv", index=False)
    assert run("forecast", folder, "--out", tmp_path / "f.csv", "--steps", 1)[0] == 0
    lines = ("evaluate", tmp_path / "data.csv", "--max-lag", 1, "--steps", 1, "--origins", 1)
    lines += ("--forecaster", "linear", "--out", tmp_path / "e.csv", "-q")
    assert run(*lines)[0] == 0
    for name in ("f.csv", "e.csv"):
        cells = set(pd.read_csv(tmp_path / name)["variable"])
        assert cells == {"'=1+1", "'@SUM(A1)", "'-c"}


@pytest.fixture(scope="module")
def cafe(tmp_path_factory):
    table = pd.DataFrame(chain(200), columns=["café", "b", "c"])
    return fc.discover(table, max_lag=1, forecaster="linear").save(
        tmp_path_factory.mktemp("c") / "r"
    )


def _elsewhere(*words, **changes):
    """The command in a process of its own; a stream can be any file."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    streams |= {name: changes.pop(name) for name in streams if name in changes}
    command = [sys.executable, "-m", "forecause", *map(str, words)]
    return subprocess.run(command, env=os.environ | changes, timeout=600, **streams)


def test_a_plain_locale_shows_every_name(cafe):
    ended = _elsewhere("forecast", cafe, "--steps", 1, LC_ALL="C", PYTHONUTF8="0")
    assert ended.returncode == 0
    assert "café" in ended.stdout.decode("utf-8")


def test_in_a_plain_locale_names_and_paths_may_hold_any_letter(tmp_path):
    folder = tmp_path / "größe"
    folder.mkdir()
    table = pd.DataFrame(chain(200), columns=["café", "b", "π"])
    table.to_csv(folder / "tür.csv", index=False, encoding="utf-8")
    asked = ("discover", folder / "tür.csv", "--out", folder / "läuf", "--forbid", "café -> π")
    more = ("--max-lag", 1, "--forecaster", "linear", "-q")
    ended = _elsewhere(*asked, *more, LC_ALL="C", PYTHONUTF8="0")
    assert ended.returncode == 0, ended.stderr
    run = fc.load(folder / "läuf")
    assert run.data.variables == ("café", "b", "π")
    assert run.config.edges.forbid == ("café -> π",)


def test_output_to_a_full_device_is_one_sentence(cafe):
    with open("/dev/full", "wb") as full:
        ended = _elsewhere("forecast", cafe, "--steps", 1, "--json", stdout=full)
        silent = _elsewhere("forecast", cafe, "--steps", 1, stdout=full, stderr=full)
    assert (ended.returncode, silent.returncode) == (2, 2)
    assert ended.stderr == (
        b"forecause: the system refuses to read or to write: No space left on device.\n"
    )


def test_an_event_is_explained_by_a_graph_of_ones_own(run, csv, tmp_path):
    folder = fc.discover(csv, 2, forecaster="linear").save(tmp_path / "run")
    calls = tmp_path / "calls.csv"
    calls.write_text("source,target\nb,a\n c , a \n\n")
    asked = ("explain", folder, "--at", 500, "--until", 530, "--target", "a")
    code, out, _ = run(*asked, "--graph", calls, "--json")
    assert code == 0
    assert {way["path"] for way in json.loads(out)["paths"]} == {"b -> a", "c -> a"}
    code, out, _ = run(*asked, "--graph", folder / "graph.json", "--json")
    assert (code, json.loads(out)["paths"]) == (0, [])  # nothing drives a
    for text, said in (
        ("b,a\nc\n", "expected source,target in line 2, found 'c'"),
        ("", "holds no pairs"),
        ("b,nobody\n", "pairs (source, target) of the run's variables"),
    ):
        calls.write_text(text)
        code, _, err = run(*asked, "--graph", calls)
        assert code == 2
        assert said in " ".join(err.split())

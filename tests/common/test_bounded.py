"""What others made is read within bounds: refused in a second, whatever it claims to be."""

import json
import os
import resource
import signal
from pathlib import Path

import pytest

import forecause as fc
from forecause.edges.knowledge import read_knowledge
from forecause.forecast.members import PerTargetChoice, rebuilt
from systems import chain

GB = 2**30


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    return fc.discover(chain(150), max_lag=1, forecaster="cnn", preset="quick").save(folder)


@pytest.fixture
def folder(whole, tmp_path):
    copy = tmp_path / "run"
    copy.mkdir()
    for file in whole.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    return copy


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def sparse(path):
    with path.open("wb") as file:
        file.truncate(3 * GB)


def brackets(path):
    path.write_text("[" + "[]," * 20_000_000 + "[]]")


@pytest.fixture
def little_memory():
    """An allocation of more than 3 GB fails, so that a lost bound is an error and not a swap."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 3 * GB, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("odd", [pipe, device, sparse, brackets])
@pytest.mark.parametrize(
    "name", ["run.json", "graph.json", "report.json", "power.json", "model.safetensors"]
)
def test_a_file_of_a_run_that_is_none_is_refused(folder, name, odd):
    (folder / name).unlink(missing_ok=True)
    odd(folder / name)
    with pytest.raises(fc.InputError, match=name) as caught:
        fc.load(folder)
    assert len(str(caught.value)) < 500


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("odd", [pipe, device, sparse, brackets])
@pytest.mark.parametrize("name", ["graph.json", "page.html", "rules.txt", "data.npy"])
def test_a_graph_or_a_table_that_is_none_is_refused(tmp_path, name, odd):
    odd(tmp_path / name)
    read = {".npy": fc.Panel.of, ".txt": read_knowledge}
    with pytest.raises(fc.InputError):
        read.get(Path(name).suffix, fc.load_graph)(tmp_path / name)


@pytest.fixture
def never_waiting():
    """Who waits for the other end of a pipe would never come back, and is woken by an error."""

    def woken(*_):
        raise TimeoutError("waited for the other end of a pipe")

    before = signal.signal(signal.SIGALRM, woken)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("never_waiting")
@pytest.mark.parametrize(
    "asked",
    [
        ("score", "PIPE", "PIPE"),
        ("evaluate", "PIPE.csv"),
        ("discover", "PIPE.csv"),
        ("report", "RUN", "--truth", "PIPE"),
        ("discover", "DATA", "--knowledge", "PIPE"),
        ("discover", "DATA", "--config", "PIPE"),
        ("explain", "RUN", "--at", "100", "--graph", "PIPE.csv"),
    ],
    ids=lambda words: f"{words[0]} {words[-2]}",
)
def test_a_pipe_given_to_the_command_is_refused_at_once(asked, command, folder, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "data.csv").write_text("a,b\n" + "1,2\n" * 50)
    named = {"PIPE": "pipe", "PIPE.csv": "pipe.csv", "RUN": "run", "DATA": "data.csv"}
    code, _, err = command(*(tmp_path / named[word] if word in named else word for word in asked))
    assert code == 2
    assert "is a pipe or a device; give a file" in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "odd",
    [device, sparse, brackets, lambda path: path.write_text("[" * 100_000)],
    ids=["device", "sparse", "brackets", "deep"],
)
def test_a_file_of_options_or_of_pairs_that_is_none_is_refused(tmp_path, command, folder, odd):
    (tmp_path / "data.csv").write_text("a,b\n" + "1,2\n" * 50)
    for name in ("options.json", "pairs.csv"):
        odd(tmp_path / name)
    for asked in (
        ("discover", tmp_path / "data.csv", "--config", tmp_path / "options.json"),
        ("explain", folder, "--at", 100, "--graph", tmp_path / "pairs.csv"),
    ):
        code, _, err = command(*asked)
        assert code == 2
        assert str(asked[-1]) in err
        assert err.count("\n") == 1


def test_a_cell_that_is_endless_makes_no_pairs(tmp_path, command, folder):
    (tmp_path / "pairs.csv").write_text("source,target\na," + "b" * 200_000)
    code, _, err = command("explain", folder, "--at", 100, "--graph", tmp_path / "pairs.csv")
    assert code == 2
    assert "cannot be read as a CSV file: field larger than field limit" in err


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "settings",
    [{"channels": 20_000}, {"kernel": 10**9}, {"channels": 10**12}, {"domains": 10**9}],
    ids=str,
)
def test_a_network_that_the_weights_do_not_fill_is_never_built(folder, settings):
    about = json.loads((folder / "run.json").read_text())
    about["forecaster"]["settings"] |= settings
    (folder / "run.json").write_text(json.dumps(about))
    with pytest.raises(fc.InputError, match="is damaged"):
        fc.load(folder)


def test_a_forecaster_for_each_of_a_billion_domains_is_never_built(tmp_path):
    folder = fc.discover(chain(150), max_lag=1, forecaster="linear").save(tmp_path / "run")
    about = json.loads((folder / "run.json").read_text())
    about["forecaster"]["settings"]["domains"] = 10**9
    (folder / "run.json").write_text(json.dumps(about))
    with pytest.raises(fc.InputError, match="a network of endless parts"):
        fc.load(folder)


@pytest.mark.usefixtures("little_memory")
def test_a_graph_of_more_candidates_than_fit_is_refused(tmp_path):
    names = [f"v{i}" for i in range(20_000)]
    graph = {"format": "forecause.graph/1", "variables": names, "max_lag": 5, "edges": []}
    graph |= {"score_lags": [1, 2, 3, 4, 5], "strongest_scores": []}
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    with pytest.raises(fc.InputError, match="20,000 variables and 5 lags is too large"):
        fc.load_graph(tmp_path / "graph.json")


def test_members_are_no_larger_than_their_weights():
    shape = (1, 3)
    each = {
        "mlp": fc.forecasters.MLP(hidden=4).build(shape),
        "linear": fc.forecasters.Linear().build(shape),
    }
    choice = PerTargetChoice.of(["mlp", "linear", "linear"], each)
    settings, weights = choice.settings.model_dump(mode="json"), choice.state()
    again = rebuilt("auto", shape, settings, weights).state()
    assert all((again[name] == weights[name]).all() for name in weights)
    for kind, larger in (("mlp", {"hidden": 10**6}), ("linear", {"domains": 10**9})):
        changed = json.loads(json.dumps(settings))
        changed["members"][kind]["settings"] |= larger
        with pytest.raises(fc.InputError, match="the settings describe a"):
            rebuilt("auto", shape, changed, weights)

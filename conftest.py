"""Fixtures for all tests, of the product and of the study."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

import errands
from forecause.cli import main
from forecause.data import Panel, Windows
from forecause.graph import LaggedGraph
from forecause.networks import settings as network_settings
from forecause.resources.workers import Workers, gather
from systems import LINEAR, chain, linear_rows

# No example is timed: on a busy machine any may take long.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

RAY = ("test_workers.py", "test_spread_discovery.py", "test_bench_workers.py")
LONG = (
    *RAY,
    "test_bench_runner.py",
    "test_distributed.py",
    "test_method.py",
    "test_evaluate.py",
    "test_mixed_tables.py",
    "test_cli.py",
    "test_browser.py",
    "test_soak.py",
    "test_files.py",
    "test_hard_numbers.py",
)


def pytest_collection_modifyitems(items):
    """The files that take longest begin, so that none is left alone at the end."""
    order = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.name, len(LONG)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files in this order, not in that of their numbers of tests; those of RAY in one process."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "ray" if Path(file).name in RAY else file

    config.option.loadscopereorder = False
    return Files(config, log)


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Tests run side by side; threads that wait for each other would only slow them down."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _quicker():
    """The preset quick of the tests takes fewer steps: small systems are learned in 200."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network_settings, "QUICK_STEPS", 200)
        yield


@pytest.fixture(scope="session")
def chain_panel() -> Panel:
    return Panel.from_arrays([chain()], ["a", "b", "c"])


@pytest.fixture(scope="session")
def chain_windows(chain_panel) -> Windows:
    return Windows.of(chain_panel, 2)


@pytest.fixture(scope="module")
def ray(request):
    """Two workers on this machine, started once for all files of RAY."""
    if find_spec("ray") is None:
        pytest.skip("the extra 'ray' is not installed")
    with pytest.MonkeyPatch.context() as patch:
        paths = [os.path.dirname(errands.__file__), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))  # where workers find the errands
        workers = Workers(2, "local")
        assert gather(errands.square, [2], workers) == [4]
        yield workers
        users = [item.path for item in request.session.items if item.path.name in RAY]
        if request.path == users[-1]:
            sys.modules["ray"].shutdown()


@pytest.fixture(scope="session")
def make_panel():
    """A panel of linear systems with the given weights; one series per entry of `rows`."""

    def make(weights=LINEAR, variables="abcd", rows=(1000,), seed=0, noise="normal"):
        series = [linear_rows(weights, variables, n, seed + i, noise) for i, n in enumerate(rows)]
        return Panel.from_arrays(series, list(variables))

    return make


@pytest.fixture(scope="session")
def easy_panel(make_panel):
    """Four variables, five strong edges with lags 1 and 2, 1000 rows."""
    return make_panel()


@pytest.fixture(scope="session")
def easy_truth():
    return LaggedGraph.from_edges("abcd", 2, list(LINEAR))


@pytest.fixture(scope="session")
def edges_of():
    """The edges of a graph as a set of (source, target, lag)."""

    def edges(graph):
        table = graph.edges
        return set(zip(table["source"], table["target"], table["lag"], strict=True))

    return edges


@pytest.fixture(scope="session")
def f1_of(edges_of):
    """F1 of a graph against the truth."""

    def f1(graph, truth):
        found, true = edges_of(graph), edges_of(truth)
        return 2 * len(found & true) / (len(found) + len(true))

    return f1


@pytest.fixture
def command(monkeypatch, capsys):
    """Call the command in this process; gives (exit code, stdout, stderr)."""

    def call(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["forecause", *map(str, arguments)])
            with pytest.raises(SystemExit) as ended:
                main()
        return ended.value.code or 0, *capsys.readouterr()

    return call

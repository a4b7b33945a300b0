"""Fixtures for all tests, of the product and of the study."""

import os
import sys
from importlib.util import find_spec

import hypothesis
import pytest
import torch

import errands
from forecause.cli import main
from forecause.data import Panel, Windows
from forecause.graph import LaggedGraph
from forecause.networks import settings as network_settings
from forecause.resources.workers import Workers, gather
from systems import LINEAR, chain, linear_rows

# An example may take as long as the machine needs: other work must fail no test.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")

LONG = ("test_workers.py", "test_bench_workers.py", "test_distributed.py")


def pytest_collection_modifyitems(items):
    """The files that take longest begin, so that none is left alone at the end."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Tests run side by side; threads that wait for each other would only slow them down."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _quicker():
    """The preset quick of the tests takes fewer steps: small systems are learned in 300."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network_settings, "QUICK_STEPS", 300)
        yield


@pytest.fixture(scope="session")
def chain_panel() -> Panel:
    return Panel.from_arrays([chain()], ["a", "b", "c"])


@pytest.fixture(scope="session")
def chain_windows(chain_panel) -> Windows:
    return Windows.of(chain_panel, 2)


@pytest.fixture(scope="module")
def ray():
    """Two workers on this machine, started once for all tests of a module."""
    if find_spec("ray") is None:
        pytest.skip("the extra 'ray' is not installed")
    with pytest.MonkeyPatch.context() as patch:
        paths = [os.path.dirname(errands.__file__), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))  # where workers find the errands
        workers = Workers(2, "local")
        assert gather(errands.square, [2], workers) == [4]
        yield workers
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

"""Fixtures for all tests."""

import pytest
import torch

from forecause.data import Panel, Windows
from forecause.forecast import registry
from systems import chain

LONG = ("test_workers.py", "test_distributed.py")


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
        patch.setattr(registry, "QUICK_STEPS", 300)
        yield


@pytest.fixture(scope="session")
def chain_panel() -> Panel:
    return Panel.from_arrays([chain()], ["a", "b", "c"])


@pytest.fixture(scope="session")
def chain_windows(chain_panel) -> Windows:
    return Windows.of(chain_panel, 2)

"""Fixtures for all tests."""

import pytest
import torch

from forecause.data import Panel, Windows
from systems import chain


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Tests run side by side; threads that wait for each other would only slow them down."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def chain_panel() -> Panel:
    return Panel.from_arrays([chain()], ["a", "b", "c"])


@pytest.fixture(scope="session")
def chain_windows(chain_panel) -> Windows:
    return Windows.of(chain_panel, 2)

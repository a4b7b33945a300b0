"""Windows and readouts as tensors, for tests of what is inside a network."""

from __future__ import annotations

import numpy as np
import torch

from forecause.data.windows import Window, Windows
from forecause.forecast.attribution import READOUTS
from forecause.networks.network import Network, NetworkModule, TensorWindow


def drawn(windows: Windows, count: int | None = None) -> TensorWindow:
    """The first windows, or all."""
    return TensorWindow.drawn(windows.draw(np.arange(len(windows) if count is None else count)))


def read(readout: str, module: NetworkModule, past: torch.Tensor) -> torch.Tensor:
    """A readout of a module, whatever follows the past being zero."""
    window = Window(past.numpy(), np.zeros_like(past[:, 0].numpy()))
    return torch.from_numpy(READOUTS[readout].per_sample(Network(module), window))

"""Any torch module that maps (window, lag, variable) to (window, variable), trained by Adam."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn

from forecause.common.arrays import Floats
from forecause.errors import InputError
from forecause.forecast.foreign import Adapter
from forecause.networks.network import seeded

# Shape of the model:
STEPS, BATCH, RATE = 1_500, 256, 3e-3
LOOK_EVERY, PATIENCE = 50, 6  # looks without a gain, after which training stops
HELD_OUT = 0.1  # of the windows, the last: they decide when to stop


class Module(Adapter):
    """A fresh copy of the module, its parameters drawn anew, for every fit."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        for name, part in module.named_modules():
            own = list(part.parameters(recurse=False))
            if own and not hasattr(part, "reset_parameters"):
                raise InputError(
                    f"The part {name or type(part).__name__!r} of the torch module has parameters "
                    "and no reset_parameters(), so it cannot be fitted anew; define it, or give "
                    "fit= and predict= functions."
                )

    def fit(self, past: Floats, target: Floats, seed: int) -> nn.Module:
        """Mean squared error, stopped by the last windows."""
        with seeded(seed):
            model = copy.deepcopy(self.module).float()
            for part in model.modules():
                reset = getattr(part, "reset_parameters", None)
                if callable(reset):
                    reset()
            return _trained(model, torch.as_tensor(past), torch.as_tensor(target), seed)

    def predict(self, fitted: nn.Module, past: Floats) -> Floats:
        with torch.no_grad():
            return np.asarray(fitted(torch.as_tensor(past, dtype=torch.float32)).numpy())


def _trained(model: nn.Module, past: torch.Tensor, target: torch.Tensor, seed: int) -> nn.Module:
    rng = np.random.default_rng(seed)
    count = max(int(len(past) * (1 - HELD_OUT)), 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    best, kept, waited = float("inf"), copy.deepcopy(model.state_dict()), 0
    for step in range(STEPS):
        if step % LOOK_EVERY == 0:
            model.eval()
            with torch.no_grad():
                loss = float(((model(past[count:]) - target[count:]) ** 2).mean())
            waited += 1
            if loss < best:
                best, kept, waited = loss, copy.deepcopy(model.state_dict()), 0
            if waited > PATIENCE:
                break
            model.train()
        chosen = torch.as_tensor(rng.integers(count, size=min(BATCH, count)))
        optimiser.zero_grad()
        ((model(past[chosen]) - target[chosen]) ** 2).mean().backward()
        optimiser.step()
    model.load_state_dict(kept)
    return model.eval()

"""Forecaster: what every model that predicts X_t from its past has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from forecause.data.windows import Windows
from forecause.forecast.rules import PLAIN, Rules

Report = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done."""


def silent(_what: str, _share: float) -> None:
    """The Report of a caller that does not want to hear of progress."""


class Settings(BaseModel):
    """Base of the saved settings: unknown names are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Forecaster(nn.Module, ABC):
    """Maps the standardised past of all variables to the forecast of each.

    A subclass is one file: settings, parameters, `forward` and `fit`. Attribution, selection and
    the report need nothing else.
    """

    kind: ClassVar[str]
    separate_targets: ClassVar[bool] = False  # the first axis of every parameter is the target

    def __init__(self, shape: tuple[int, int], settings: Settings) -> None:
        super().__init__()
        self.max_lag, self.n_variables = shape
        self.settings = settings

    @abstractmethod
    def forward(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        """Forecast (batch, variable) from the past (batch, max_lag, variable), oldest first."""

    @abstractmethod
    def fit(
        self,
        windows: Windows,
        held_out: Windows,
        seed: int,
        report: Report = silent,
        to_beat: Tensor | None = None,
    ) -> None:
        """Fit to `windows`; the held-out ones may stop or tune, never teach.

        A forecaster that learns step by step may give up once it clearly cannot beat the
        held-out losses `to_beat` (target,).
        """

    def loss(self, window: Tensor) -> Tensor:
        """Mean squared error per target, (variable,), of windows (batch, max_lag + 1, variable)."""
        return (self(window[:, :-1]) - window[:, -1]).square().mean(0)

    def jacobian(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        """d forecast / d past per sample: (batch, target, max_lag, source).

        One backward pass per target; a forecaster with a cheaper way overrides this.
        """
        past = past.detach().requires_grad_()
        forecast = self(past, rules)
        rows = [
            torch.autograd.grad(forecast[:, i].sum(), past, retain_graph=True)[0]
            for i in range(self.n_variables)
        ]
        return torch.stack(rows, dim=1)

    def extra_repr(self) -> str:
        return f"max_lag={self.max_lag}, n_variables={self.n_variables}"


@torch.no_grad()
def squared_errors(forecaster: Forecaster, windows: Windows, batch_size: int = 2048) -> Tensor:
    """Squared error of every window and target, (window, target)."""
    device = next(iter(forecaster.state_dict().values())).device
    parts = [
        (forecaster(batch[:, :-1]) - batch[:, -1]).square()
        for batch in (b.to(device) for b in windows.batches(batch_size))
    ]
    return torch.cat(parts).cpu()


def parameter_count(module: nn.Module) -> int:
    """Number of trainable numbers."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def settings_of(settings: Settings) -> dict[str, Any]:
    """Settings as plain JSON values."""
    return settings.model_dump(mode="json")

"""One small network per target, all evaluated together, beside a linear path."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forecause.data.windows import Windows
from forecause.forecast.base import Forecaster, Report, Settings, silent
from forecause.forecast.linear import Linear, LinearSettings
from forecause.forecast.rules import PLAIN, Rules, activation
from forecause.forecast.training import TrainingSettings, train


class MLPSettings(Settings):
    """Two hidden layers per target; the linear path starts at the closed-form fit."""

    hidden: int = 32
    training: TrainingSettings = TrainingSettings()


class MLP(Forecaster):
    """X_i,t = linear(past) + network_i(past), with separate weights for every target i."""

    kind = "mlp"
    separate_targets = True
    settings: MLPSettings

    def __init__(self, shape: tuple[int, int], settings: MLPSettings) -> None:
        super().__init__(shape, settings)
        p, inputs, hidden = self.n_variables, self.max_lag * self.n_variables, settings.hidden
        self.linear = nn.Parameter(torch.zeros(p, inputs))
        self.bias = nn.Parameter(torch.zeros(p))
        self.first = nn.Parameter(torch.randn(p, inputs, hidden) / inputs**0.5)
        self.first_bias = nn.Parameter(torch.zeros(p, 1, hidden))
        self.second = nn.Parameter(torch.randn(p, hidden, hidden) * (2 / hidden) ** 0.5)
        self.second_bias = nn.Parameter(torch.zeros(p, 1, hidden))
        self.last = nn.Parameter(torch.zeros(p, hidden, 1))

    def forward(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        return self._run(past.flatten(1).expand(self.n_variables, -1, -1), rules)

    def jacobian(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        """Every target reads its own copy of the past, so one backward pass serves them all."""
        copies = past.detach().flatten(1).repeat(self.n_variables, 1, 1).requires_grad_()
        (slopes,) = torch.autograd.grad(self._run(copies, rules).sum(), copies)
        return slopes.transpose(0, 1).unflatten(2, (self.max_lag, self.n_variables))

    def fit(
        self,
        windows: Windows,
        held_out: Windows,
        seed: int,
        report: Report = silent,
        to_beat: Tensor | None = None,
    ) -> None:
        start = Linear((self.max_lag, self.n_variables), LinearSettings())
        start.fit(windows, held_out, seed, report)
        with torch.no_grad():
            self.linear.copy_(start.get_buffer("weight").flatten(1))
            self.bias.copy_(start.get_buffer("intercept"))
        train(self, windows, held_out, self.settings.training, seed, report, to_beat)

    def _run(self, copies: Tensor, rules: Rules) -> Tensor:
        """copies (target, batch, max_lag * source) -> (batch, target)."""
        linear = torch.einsum("tbi,ti->tb", copies, self.linear) + self.bias[:, None]
        hidden = activation(torch.relu, torch.baddbmm(self.first_bias, copies, self.first), rules)
        hidden = activation(torch.relu, torch.baddbmm(self.second_bias, hidden, self.second), rules)
        return (linear + torch.bmm(hidden, self.last).squeeze(-1)).T

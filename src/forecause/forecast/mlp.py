"""One small network per target, all evaluated together, beside a linear path."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forecause.data.windows import Windows
from forecause.forecast.base import Report, silent
from forecause.forecast.linear import Linear, LinearSettings
from forecause.forecast.rules import PLAIN, Rules, activation
from forecause.forecast.training import Trained, TrainedSettings
from forecause.options import HeadName


class MLPSettings(TrainedSettings):
    """Two hidden layers per target; the linear path starts at the closed-form fit."""

    hidden: int = 32
    head: HeadName = "mse"


class MLP(Trained):
    """X_i,t = linear(past) + network_i(past), with separate weights for every target i.

    So for every number the head asks for, the mean first of all.
    """

    kind = "mlp"
    separate_targets = True
    settings: MLPSettings

    def __init__(self, shape: tuple[int, int], settings: MLPSettings) -> None:
        super().__init__(shape, settings, settings.head)
        p, inputs, hidden = self.n_variables, self.max_lag * self.n_variables, settings.hidden
        outputs = self.likelihood.outputs
        self.linear = nn.Parameter(torch.zeros(p, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(p, 1, outputs))
        self.first = nn.Parameter(torch.randn(p, inputs, hidden) / inputs**0.5)
        self.first_bias = nn.Parameter(torch.zeros(p, 1, hidden))
        self.second = nn.Parameter(torch.randn(p, hidden, hidden) * (2 / hidden) ** 0.5)
        self.second_bias = nn.Parameter(torch.zeros(p, 1, hidden))
        self.last = nn.Parameter(torch.zeros(p, hidden, outputs))

    def forward(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        return self.likelihood.mean(self.outputs(past, rules))

    def outputs(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        return self._run(self._copies(past), rules)

    def jacobian(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        """Every target reads its own copy of the past, so one backward pass serves them all."""
        copies = self._copies(past.detach()).clone().requires_grad_()
        return self._slopes(self.likelihood.mean(self._run(copies, rules)), copies)

    def score(self, window: Tensor) -> Tensor:
        if self.likelihood.fixed:
            return super().score(window)
        copies = self._copies(window[:, :-1].detach()).clone().requires_grad_()
        return self._slopes(
            self.likelihood.log_prob(self._run(copies, PLAIN), window[:, -1]), copies
        )

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
        likelihood, noise = self.likelihood, start.get_buffer("noise_variance")
        with torch.no_grad():
            weight = start.get_buffer("weight").flatten(1)[..., None]
            self.linear[..., likelihood.locations].copy_(
                weight.expand_as(self.linear[..., likelihood.locations])
            )
            first = likelihood.start(start.get_buffer("intercept"), noise.log())
            self.bias.copy_(first[:, None])
        super().fit(windows, held_out, seed, report, to_beat)

    def _copies(self, past: Tensor) -> Tensor:
        """past (batch, step, source) -> (target, batch, max_lag * source), the same for each."""
        return past.flatten(1).expand(self.n_variables, -1, -1)

    def _slopes(self, values: Tensor, copies: Tensor) -> Tensor:
        """d values (batch, target) / d past, (batch, target, max_lag, source)."""
        (slopes,) = torch.autograd.grad(values.sum(), copies)
        return slopes.transpose(0, 1).unflatten(2, (self.max_lag, self.n_variables))

    def _run(self, copies: Tensor, rules: Rules) -> Tensor:
        """copies (target, batch, max_lag * source) -> outputs (batch, target, output)."""
        linear = torch.baddbmm(self.bias, copies, self.linear)
        hidden = activation(torch.relu, torch.baddbmm(self.first_bias, copies, self.first), rules)
        hidden = activation(torch.relu, torch.baddbmm(self.second_bias, hidden, self.second), rules)
        return torch.baddbmm(linear, hidden, self.last).transpose(0, 1)

"""A 1-D convolutional network over the whole window, variables as channels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forecause.forecast.rules import PLAIN, Rules
from forecause.networks.backward import activation
from forecause.networks.settings import CNN
from forecause.networks.training import Trained


class CNNModel(Trained):
    """X_t = linear(conv(conv(past))), the full window at once; a domain shifts the channels."""

    settings: CNN

    def __init__(self, shape: tuple[int, int], settings: CNN) -> None:
        super().__init__(shape, settings, settings.head)
        channels = settings.channels
        self.first = nn.Conv1d(self.n_variables, channels, settings.kernel, padding="same")
        self.domain = nn.Parameter(torch.randn(self.domains, channels))
        self.second = nn.Conv1d(channels, channels, settings.kernel, padding="same")
        self.last = nn.Linear(channels * self.max_lag, self.n_variables * self.likelihood.outputs)

    def outputs(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self.without_forbidden(past, lambda part: self._run(part, domain, rules))

    def _run(self, past: Tensor, domain: Tensor | None, rules: Rules) -> Tensor:
        hidden = self.first(past.transpose(1, 2))
        if self.domains:
            hidden = hidden + self.domain[domain][..., None]
        hidden = activation(torch.relu, hidden, rules)
        hidden = activation(torch.relu, self.second(hidden), rules)
        return self.last(hidden.flatten(1)).unflatten(1, (self.n_variables, -1))

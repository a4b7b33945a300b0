"""Small networks: an MLP per target beside a linear path, a convolution over the whole window."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forecause.forecast.forecaster import PLAIN, FitData, Rules
from forecause.forecast.linear import Linear, LinearModel
from forecause.networks.backward import activation
from forecause.networks.separate import Separate
from forecause.networks.settings import CNN, MLP
from forecause.networks.training import Trained


class MLPModel(Separate):
    """X_i,t = linear(past) + network_i(past), with separate weights for every target i.

    So for every number the head asks for, the mean first of all. With domains, each has a linear
    path of its own and an embedding that shifts the first hidden layer.
    """

    separate_targets = True
    settings: MLP

    def __init__(self, shape: tuple[int, int], settings: MLP) -> None:
        super().__init__(shape, settings)
        p, inputs, hidden = self.n_variables, self.n_inputs, settings.hidden
        outputs, paths = self.likelihood.outputs, max(self.domains, 1)
        self.linear = nn.Parameter(torch.zeros(p, inputs, paths * outputs))
        self.bias = nn.Parameter(torch.zeros(p, 1, paths * outputs))
        self.domain = nn.Parameter(torch.randn(p, self.domains, hidden) * 0.5)
        self.first = nn.Parameter(torch.randn(p, inputs, hidden) / inputs**0.5)
        self.first_bias = nn.Parameter(torch.zeros(p, 1, hidden))
        self.second = nn.Parameter(torch.randn(p, hidden, hidden) * (2 / hidden) ** 0.5)
        self.second_bias = nn.Parameter(torch.zeros(p, 1, hidden))
        self.last = nn.Parameter(torch.zeros(p, hidden, outputs))

    def fit(self, fit_data: FitData) -> None:
        for path in range(max(self.domains, 1)):
            start = LinearModel((self.max_lag, self.n_variables), Linear())
            start.constrain(self.read_mask.cpu().numpy())
            start.fit(fit_data.of_domain(path) if self.domains else fit_data)
            self._start_path(path, start)
        super().fit(fit_data)

    @torch.no_grad()
    def _start_path(self, path: int, start: LinearModel) -> None:
        outputs = self.likelihood.outputs
        own = slice(path * outputs, (path + 1) * outputs)
        weight, intercept, noise = (
            torch.from_numpy(values).to(self.linear)
            for values in (start.weight, start.intercept, start.noise_variance)
        )
        slopes, bias = self.likelihood.linear_start(self.of_reads(weight), intercept, noise.log())
        self.linear[..., own] = slopes
        self.bias[..., own] = bias[:, None]

    def run(self, copies: Tensor, domain: Tensor | None, rules: Rules) -> Tensor:
        linear = torch.baddbmm(self.bias, copies, self.linear)
        hidden = torch.baddbmm(self.first_bias, copies, self.first)
        if self.domains:
            assert domain is not None
            every = linear.unflatten(2, (self.domains, -1))  # (target, batch, domain, output)
            linear = every[:, torch.arange(len(domain)), domain]
            hidden = hidden + self.domain[:, domain]
        hidden = activation(torch.relu, hidden, rules)
        hidden = activation(torch.relu, torch.baddbmm(self.second_bias, hidden, self.second), rules)
        return torch.baddbmm(linear, hidden, self.last).transpose(0, 1)


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

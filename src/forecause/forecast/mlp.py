"""One small network per target, all evaluated together, beside a linear path."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forecause.forecast.base import Lesson
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

    So for every number the head asks for, the mean first of all. With domains, each has a linear
    path of its own and an embedding that shifts the first hidden layer.
    """

    kind = "mlp"
    separate_targets = True
    settings: MLPSettings

    def __init__(self, shape: tuple[int, int], settings: MLPSettings) -> None:
        super().__init__(shape, settings, settings.head)
        p, inputs, hidden = self.n_variables, self.max_lag * self.n_variables, settings.hidden
        outputs, paths = self.likelihood.outputs, max(self.domains, 1)
        self.linear = nn.Parameter(torch.zeros(p, inputs, paths * outputs))
        self.bias = nn.Parameter(torch.zeros(p, 1, paths * outputs))
        self.domain = nn.Parameter(torch.randn(p, self.domains, hidden) * 0.5)
        self.first = nn.Parameter(torch.randn(p, inputs, hidden) / inputs**0.5)
        self.first_bias = nn.Parameter(torch.zeros(p, 1, hidden))
        self.second = nn.Parameter(torch.randn(p, hidden, hidden) * (2 / hidden) ** 0.5)
        self.second_bias = nn.Parameter(torch.zeros(p, 1, hidden))
        self.last = nn.Parameter(torch.zeros(p, hidden, outputs))

    def forward(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        return self.likelihood.mean(self.outputs(past, rules))

    def outputs(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        return self._run(self._copies(past), past, rules)

    def jacobian(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        """Every target reads its own copy of the past, so one backward pass serves them all."""
        copies = self._copies(past.detach()).clone().requires_grad_()
        outputs = self._run(copies, past, rules)
        return self._slopes(self.likelihood.mean(outputs), copies)

    def score(self, window: Tensor) -> Tensor:
        if self.likelihood.fixed and not self.labels:
            return super().score(window)
        past = window[:, :-1].detach()
        copies = self._copies(past).clone().requires_grad_()
        outputs = self._run(copies, past, PLAIN)
        if self.likelihood.fixed:
            log_variance = self.get_buffer("noise_variance").log()[:, None]
            outputs = torch.cat([outputs, log_variance.expand_as(outputs)], dim=-1)
        return self._slopes(self.likelihood.log_prob(outputs, self.following(window)), copies)

    def fit(self, lesson: Lesson) -> None:
        for path in range(max(self.domains, 1)):
            start = Linear((self.max_lag, self.n_variables), LinearSettings())
            start.constrain(self.get_buffer("allowed").cpu())
            start.fit(lesson.of_domain(path) if self.domains else lesson)
            self._start_path(path, start)
        super().fit(lesson)

    @torch.no_grad()
    def _start_path(self, path: int, start: Linear) -> None:
        outputs = self.likelihood.outputs
        own = slice(path * outputs, (path + 1) * outputs)
        weight, noise = start.get_buffer("weight"), start.get_buffer("noise_variance")
        slopes, bias = self.likelihood.linear_start(
            weight.flatten(1), start.get_buffer("intercept"), noise.log()
        )
        self.linear[..., own] = slopes.to(self.linear.device)
        self.bias[..., own] = bias[:, None].to(self.bias.device)

    def _copies(self, past: Tensor) -> Tensor:
        """past (batch, step, source) -> (target, batch, max_lag * source), the same for each."""
        return self.inputs(past).flatten(1).expand(self.n_variables, -1, -1)

    def _slopes(self, values: Tensor, copies: Tensor) -> Tensor:
        """d values (batch, target) / d past, (batch, target, max_lag, source)."""
        if self.labels:
            slopes = self._label_slopes(values, copies)
        else:
            (slopes,) = torch.autograd.grad(values.sum(), copies)
        return slopes.transpose(0, 1).unflatten(2, (self.max_lag, self.n_variables))

    def _label_slopes(self, values: Tensor, copies: Tensor) -> Tensor:
        """Slopes (target, batch, input) where a level's value depends on the copies of all levels
        of its label: the k-th levels of all labels are asked together, so that none meet."""
        owner = torch.arange(self.n_variables)
        level = torch.zeros(self.n_variables, dtype=torch.long)
        for label in self.labels:
            owner[label.columns] = label.first
            level[label.columns] = torch.arange(len(label.shares))
        found = torch.empty_like(copies)
        for k in range(int(level.max()) + 1):
            asked = (level == k).nonzero().flatten()
            (slopes,) = torch.autograd.grad(values[:, asked].sum(), copies, retain_graph=True)
            added = torch.zeros_like(slopes).index_add_(0, owner.to(slopes.device), slopes)
            found[asked] = added[owner[asked]]
        return found

    def _run(self, copies: Tensor, past: Tensor, rules: Rules) -> Tensor:
        """copies (target, batch, max_lag * source) -> outputs (batch, target, output).

        Of the past itself only the domain is looked at.
        """
        copies = copies * self.get_buffer("allowed").flatten(1)[:, None]
        linear = torch.baddbmm(self.bias, copies, self.linear)
        hidden = torch.baddbmm(self.first_bias, copies, self.first)
        if self.domains:
            domain = self.domain_of(past)
            every = linear.unflatten(2, (self.domains, -1))  # (target, batch, domain, output)
            linear = every[:, torch.arange(len(domain)), domain]
            hidden = hidden + self.domain[:, domain]
        hidden = activation(torch.relu, hidden, rules)
        hidden = activation(torch.relu, torch.baddbmm(self.second_bias, hidden, self.second), rules)
        return torch.baddbmm(linear, hidden, self.last).transpose(0, 1)

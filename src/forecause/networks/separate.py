"""Forecasters in which every target reads its own copy of its inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from forecause.forecast.forecaster import PLAIN, Rules
from forecause.networks.network import TensorWindow
from forecause.networks.settings import SeparateSettings
from forecause.networks.training import Trained


class Separate(Trained):
    """As no input is shared between targets, one backward pass gives the slopes of them all, and a
    target can be kept to the inputs that a screen found plausible.

    Copies are (target, batch, input); the buffer `reads` (target, input) says which place
    step * variable of the past each one is.
    """

    settings: SeparateSettings

    def __init__(self, shape: tuple[int, int], settings: SeparateSettings) -> None:
        super().__init__(shape, settings, settings.head)
        places = torch.arange(self.max_lag * self.n_variables)
        self.reads_few = settings.inputs > 0
        self.n_inputs = settings.inputs or len(places)
        self.register_buffer("reads", places[: self.n_inputs].repeat(self.n_variables, 1))

    @abstractmethod
    def run(self, copies: Tensor, domain: Tensor | None, rules: Rules) -> Tensor:
        """Copies (target, batch, input) -> outputs (batch, target, output)."""

    def read_only(self, places: Tensor) -> None:
        """Keep every target to these places (target, input), before fitting."""
        self.get_buffer("reads").copy_(places)

    def outputs(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self.run(self.allowed_copies(past), domain, rules)

    def jacobian(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self._slopes(past, domain, rules, self.likelihood.mean)

    def score(self, window: TensorWindow) -> Tensor:
        if self.likelihood.fixed and not self.labels:
            return super().score(window)

        def log_likelihood(outputs: Tensor) -> Tensor:
            return self.likelihood.log_prob(self.with_noise(outputs), window.target)

        return self._slopes(window.past, window.domain, PLAIN, log_likelihood)

    def copies(self, past: Tensor) -> Tensor:
        """past (batch, step, source) -> (target, batch, input)."""
        flat = past.flatten(1)
        if not self.settings.inputs:
            return flat.expand(self.n_variables, -1, -1)
        return flat[:, self.get_buffer("reads")].transpose(0, 1)

    def allowed_copies(self, past: Tensor) -> Tensor:
        """The copies, forbidden inputs held at their mean."""
        return self._allowed_alone(self.copies(past))

    def of_reads(self, values: Tensor) -> Tensor:
        """What belongs to the inputs read, (target, input), of values (target, step, source)."""
        return values.flatten(1).gather(1, self.get_buffer("reads"))

    @property
    def read_mask(self) -> Tensor:
        """What is both allowed and read, (target, step, source)."""
        allowed = self.get_buffer("allowed")
        read = torch.zeros_like(allowed.flatten(1)).scatter_(1, self.get_buffer("reads"), True)
        return allowed & read.view_as(allowed)

    def _allowed_alone(self, copies: Tensor) -> Tensor:
        allowed = self.get_buffer("allowed")
        return copies if bool(allowed.all()) else copies * self.of_reads(allowed)[:, None]

    def _slopes(
        self,
        past: Tensor,
        domain: Tensor | None,
        rules: Rules,
        told: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """d values (batch, target) / d past, (batch, target, max_lag, source); the values are what
        is `told` by outputs (batch, target, output)."""
        copies = self.copies(past.detach()).clone().requires_grad_()
        values = told(self.run(self._allowed_alone(copies), domain, rules))
        if self.labels:
            slopes = self._label_slopes(values, copies)
        else:
            (slopes,) = torch.autograd.grad(values.sum(), copies)
        if self.settings.inputs:
            every = slopes.new_zeros(*slopes.shape[:2], self.max_lag * self.n_variables)
            places = self.get_buffer("reads")[:, None].expand_as(slopes)
            slopes = every.scatter_(2, places, slopes)
        return slopes.transpose(0, 1).unflatten(2, (self.max_lag, self.n_variables))

    def _label_slopes(self, values: Tensor, copies: Tensor) -> Tensor:
        """Slopes (target, batch, input) where a level's value depends on the copies of all levels
        of its label: the k-th levels of all labels are asked together, so that none meet."""
        owner = torch.arange(self.n_variables)
        level = torch.zeros(self.n_variables, dtype=torch.long)
        for label in self.labels:
            owner[label.columns] = label.first
            level[label.columns] = torch.arange(len(label.shares))
        every = torch.empty_like(copies)
        for k in range(int(level.max()) + 1):
            asked = (level == k).nonzero().flatten()
            (slopes,) = torch.autograd.grad(values[:, asked].sum(), copies, retain_graph=True)
            added = torch.zeros_like(slopes).index_add_(0, owner.to(slopes.device), slopes)
            every[asked] = added[owner[asked]]
        return every

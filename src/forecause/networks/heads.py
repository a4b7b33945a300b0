"""Heads: how the numbers a forecaster gives for a target become its distribution.

A number follows a Gaussian or a mixture of them; the columns of a label together are one
categorical distribution.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from forecause.data.variables import LEAST_PROBABILITY, LabelColumns

# Numerics:
LOG_VARIANCE_LIMIT = 8.0  # targets have variance 1, so a real one never comes near e^8 or e^-8

# Shape of the model:
COMPONENTS = 3
SPREAD = 0.5  # between the mixture's first means: equal components would stay equal forever


class Likelihood(ABC):
    """A family of distributions; parameters are (..., target, parameter), values (..., target)."""

    outputs: int  # numbers a network gives per target
    fixed: bool = False  # the variance is not learned, the squared error is
    locations: slice  # the outputs that shift the distribution as a whole when all are raised alike

    @abstractmethod
    def log_prob(self, parameters: Tensor, value: Tensor) -> Tensor:
        """Log density of each value, (..., target)."""

    @abstractmethod
    def mean(self, parameters: Tensor) -> Tensor:
        """Mean of each distribution, (..., target)."""

    @abstractmethod
    def variance(self, parameters: Tensor) -> Tensor:
        """Variance of each distribution, (..., target)."""

    @abstractmethod
    def start(self, location: Tensor, log_variance: Tensor) -> Tensor:
        """Outputs (target, output) that mean about this Gaussian, both arguments (target,)."""

    def errors(self, parameters: Tensor, value: Tensor) -> Tensor:
        """What is made small, (..., target): the squared error or the negative log-likelihood."""
        if self.fixed:
            return (self.mean(parameters) - value).square()
        return -self.log_prob(parameters, value)

    def linear_start(
        self, weight: Tensor, location: Tensor, log_variance: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Slopes (target, input, output) and bias (target, output) that mean a linear model.

        `weight` (target, input) and `location` (target,) are the model's, with this variance.
        """
        slopes = weight.new_zeros(*weight.shape, self.outputs)
        slopes[..., self.locations] = weight[..., None]
        return slopes, self.start(location, log_variance)


class FixedVariance(Likelihood):
    """A Gaussian whose variance is one number per target: parameters are mean, log variance.

    A network gives the mean alone; the forecaster adds the variance of its held-out errors.
    """

    outputs = 1
    fixed = True
    locations = slice(0, 1)

    def log_prob(self, parameters: Tensor, value: Tensor) -> Tensor:
        return gaussian_log_prob(value, parameters[..., 0], parameters[..., 1])

    def mean(self, parameters: Tensor) -> Tensor:
        return parameters[..., 0]

    def variance(self, parameters: Tensor) -> Tensor:
        return parameters[..., 1].exp()

    def start(self, location: Tensor, log_variance: Tensor) -> Tensor:
        return location[:, None]


class Gaussian(FixedVariance):
    """A Gaussian whose variance depends on the past: parameters are mean, raw log variance."""

    outputs = 2
    fixed = False

    def log_prob(self, parameters: Tensor, value: Tensor) -> Tensor:
        return gaussian_log_prob(value, parameters[..., 0], bounded(parameters[..., 1]))

    def variance(self, parameters: Tensor) -> Tensor:
        return bounded(parameters[..., 1]).exp()

    def start(self, location: Tensor, log_variance: Tensor) -> Tensor:
        return torch.stack([location, log_variance], dim=1)


class Mixture(Likelihood):
    """Several Gaussians: parameters are all logits, then all means, then all raw log variances."""

    outputs = 3 * COMPONENTS
    locations = slice(COMPONENTS, 2 * COMPONENTS)

    def log_prob(self, parameters: Tensor, value: Tensor) -> Tensor:
        logits, means, log_variances = parameters.chunk(3, dim=-1)
        inner = gaussian_log_prob(value[..., None], means, bounded(log_variances))
        return torch.logsumexp(logits.log_softmax(-1) + inner, dim=-1)

    def mean(self, parameters: Tensor) -> Tensor:
        logits, means, _ = parameters.chunk(3, dim=-1)
        return (logits.softmax(-1) * means).sum(-1)

    def variance(self, parameters: Tensor) -> Tensor:
        logits, means, log_variances = parameters.chunk(3, dim=-1)
        apart = (means - self.mean(parameters)[..., None]).square()
        return (logits.softmax(-1) * (bounded(log_variances).exp() + apart)).sum(-1)

    def start(self, location: Tensor, log_variance: Tensor) -> Tensor:
        steps = torch.linspace(-SPREAD, SPREAD, COMPONENTS).to(location)
        sd = (log_variance / 2).exp()
        means = location[:, None] + steps * sd[:, None]
        return torch.cat([means * 0, means, log_variance[:, None].expand_as(means)], dim=1)


class Labelled(Likelihood):
    """Numbers follow `inner`; the columns of a label are one categorical distribution.

    With `logits` a column's first output is its level's logit (softmax, learned by cross-entropy);
    otherwise it is the level's probability as a standardised column, from least squares. Each of a
    label's columns gets an equal part of its log-likelihood, so that columns add up to variables.
    """

    def __init__(self, inner: Likelihood, labels: Sequence[LabelColumns], logits: bool) -> None:
        self.inner, self.labels, self.logits = inner, tuple(labels), logits
        self.outputs, self.fixed, self.locations = inner.outputs, inner.fixed, inner.locations

    def log_prob(self, parameters: Tensor, value: Tensor) -> Tensor:
        log_prob = self.inner.log_prob(parameters, value).clone()
        for label in self.labels:
            log_prob[..., label.columns] = self._label_log_prob(label, parameters, value)
        return log_prob

    def errors(self, parameters: Tensor, value: Tensor) -> Tensor:
        errors = self.inner.errors(parameters, value).clone()
        for label in self.labels if self.logits else ():
            errors[..., label.columns] = -self._label_log_prob(label, parameters, value)
        return errors

    def mean(self, parameters: Tensor) -> Tensor:
        mean = self.inner.mean(parameters).clone()
        for label in self.labels if self.logits else ():
            chance = self._log_probabilities(label, parameters).exp()
            share, sd = _moments(label, chance)
            mean[..., label.columns] = (chance - share) / sd
        return mean

    def variance(self, parameters: Tensor) -> Tensor:
        variance = self.inner.variance(parameters).clone()
        for label in self.labels:
            chance = self._log_probabilities(label, parameters).exp()
            variance[..., label.columns] = chance * (1 - chance) / _moments(label, chance)[1] ** 2
        return variance

    def start(self, location: Tensor, log_variance: Tensor) -> Tensor:
        return self.inner.start(location, log_variance)

    def linear_start(
        self, weight: Tensor, location: Tensor, log_variance: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Of a label, the logits whose softmax is the linear model's probability to first order:
        log share + (probability - share) / share."""
        slopes, bias = self.inner.linear_start(weight, location, log_variance)
        for label in self.labels:
            share, sd = _moments(label, weight)
            slopes[label.columns] = 0.0
            bias[label.columns] = 0.0
            slopes[label.columns, :, 0] = weight[label.columns] * (sd / share)[:, None]
            bias[label.columns, 0] = share.log() + location[label.columns] * sd / share
        return slopes, bias

    def _label_log_prob(self, label: LabelColumns, parameters: Tensor, value: Tensor) -> Tensor:
        """Log-likelihood of the level that is there, in equal parts (..., level)."""
        share, sd = _moments(label, value)
        holds = value[..., label.columns] * sd + share  # 1 for the level that is there
        log_prob = (holds * self._log_probabilities(label, parameters)).sum(-1, keepdim=True)
        return (log_prob / len(label.shares)).expand_as(holds)

    def _log_probabilities(self, label: LabelColumns, parameters: Tensor) -> Tensor:
        """(..., level)."""
        own = parameters[..., label.columns, 0]
        if self.logits:
            return own.log_softmax(-1)
        share, sd = _moments(label, own)  # forecasts of the label's columns: from 0 to 1, sum 1
        chances = (own * sd + share).clamp(min=LEAST_PROBABILITY)
        return (chances / chances.sum(-1, keepdim=True)).log()


def _moments(label: LabelColumns, like: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and sd of a label's columns, (level,)."""
    share = torch.tensor(label.shares, dtype=like.dtype, device=like.device)
    return share, (share * (1 - share)).sqrt()


LIKELIHOODS: dict[str, Likelihood] = {
    "mse": FixedVariance(),
    "gaussian": Gaussian(),
    "mixture": Mixture(),
}


def gaussian_log_prob(value: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """-(log 2 pi + log variance + (value - mean)^2 / variance) / 2."""
    scaled = (value - mean).square() * torch.exp(-log_variance)
    return -0.5 * (math.log(2 * math.pi) + log_variance + scaled)


def bounded(log_variance: Tensor) -> Tensor:
    """Within the limit, without the dead gradient of a hard clamp."""
    return LOG_VARIANCE_LIMIT * torch.tanh(log_variance / LOG_VARIANCE_LIMIT)

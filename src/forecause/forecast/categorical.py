"""Labels as targets: the columns of a label together are one categorical distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from forecause.data.windows import Windows
from forecause.forecast.likelihood import Likelihood

LEAST_PROBABILITY = 1e-3  # of a level, where a linear model says less


class LabelColumns(BaseModel):
    """Where a label's columns are, and the share of the rows in which each level holds.

    Standardised, a column is (1 - share) / sd where its level holds and -share / sd elsewhere.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    first: int
    shares: tuple[float, ...]  # (level,)

    @classmethod
    def of(cls, windows: Windows) -> tuple[LabelColumns, ...]:
        """The labels of a panel."""
        mean = windows.scale.mean
        return tuple(
            cls(first=label.first, shares=tuple(mean[label.columns].tolist()))
            for label in windows.panel.labels
        )

    @property
    def columns(self) -> slice:
        """Its columns among all."""
        return slice(self.first, self.first + len(self.shares))

    def moments(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sd of its columns, (level,)."""
        share = torch.tensor(self.shares, dtype=like.dtype, device=like.device)
        return share, (share * (1 - share)).sqrt()

    def probabilities(self, standardised: Tensor) -> Tensor:
        """What forecasts (..., level) of its columns mean: from 0 to 1, adding up to 1."""
        share, sd = self.moments(standardised)
        chances = (standardised * sd + share).clamp(min=LEAST_PROBABILITY)
        return chances / chances.sum(-1, keepdim=True)

    def standardised(self, probabilities: Tensor) -> Tensor:
        """The way back."""
        share, sd = self.moments(probabilities)
        return (probabilities - share) / sd


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
        return self._replaced(
            self.inner.log_prob(parameters, value),
            lambda label: self._label_log_prob(label, parameters, value),
        )

    def errors(self, parameters: Tensor, value: Tensor) -> Tensor:
        found = self.inner.errors(parameters, value)
        if not self.logits:
            return found
        return self._replaced(found, lambda label: -self._label_log_prob(label, parameters, value))

    def mean(self, parameters: Tensor) -> Tensor:
        found = self.inner.mean(parameters)
        if not self.logits:
            return found
        return self._replaced(
            found,
            lambda label: label.standardised(self._log_probabilities(label, parameters).exp()),
        )

    def variance(self, parameters: Tensor) -> Tensor:
        def variance(label: LabelColumns) -> Tensor:
            chance = self._log_probabilities(label, parameters).exp()
            return chance * (1 - chance) / label.moments(chance)[1].square()

        return self._replaced(self.inner.variance(parameters), variance)

    def start(self, location: Tensor, log_variance: Tensor) -> Tensor:
        return self.inner.start(location, log_variance)

    def linear_start(
        self, weight: Tensor, location: Tensor, log_variance: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Of a label, the logits whose softmax is the linear model's probability to first order:
        log share + (probability - share) / share."""
        slopes, bias = self.inner.linear_start(weight, location, log_variance)
        for label in self.labels:
            share, sd = label.moments(weight)
            slopes[label.columns] = 0.0
            bias[label.columns] = 0.0
            slopes[label.columns, :, 0] = weight[label.columns] * (sd / share)[:, None]
            bias[label.columns, 0] = share.log() + location[label.columns] * sd / share
        return slopes, bias

    def _label_log_prob(self, label: LabelColumns, parameters: Tensor, value: Tensor) -> Tensor:
        """Log-likelihood of the level that is there, in equal parts (..., level)."""
        share, sd = label.moments(value)
        holds = value[..., label.columns] * sd + share  # 1 for the level that is there
        found = (holds * self._log_probabilities(label, parameters)).sum(-1, keepdim=True)
        return (found / len(label.shares)).expand_as(holds)

    def _log_probabilities(self, label: LabelColumns, parameters: Tensor) -> Tensor:
        """(..., level)."""
        own = parameters[..., label.columns, 0]
        return own.log_softmax(-1) if self.logits else label.probabilities(own).log()

    def _replaced(self, found: Tensor, of_label: Callable[[LabelColumns], Tensor]) -> Tensor:
        """`found` (..., column) with the columns of each label set to what is right for them."""
        found = found.clone()
        for label in self.labels:
            found[..., label.columns] = of_label(label)
        return found

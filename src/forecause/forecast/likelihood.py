"""The distribution around a forecast of the mean: a Gaussian, or of a label its levels' shares.

The heads of networks, which learn more than the mean, are in networks/heads.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from forecause.common.arrays import Floats
from forecause.data.variables import LEAST_PROBABILITY, LabelColumns


class MeanLikelihood:
    """Numbers follow a Gaussian with one variance per target; the columns of a label together are
    one categorical distribution, a forecast being its level's standardised probability.

    Each of a label's columns gets an equal part of its log-likelihood, so that columns add up to
    variables. Means and values are (..., column), the variance (column,).
    """

    def __init__(self, labels: Sequence[LabelColumns] = ()) -> None:
        self.labels = tuple(labels)

    def log_prob(self, mean: Floats, variance: Floats, value: Floats) -> Floats:
        """Log density of each value, (..., column)."""
        # -(log 2 pi + log variance + (value - mean)^2 / variance) / 2
        scaled = (value - mean) ** 2 / variance
        result = np.asarray(-0.5 * (math.log(2 * math.pi) + np.log(variance) + scaled))
        for label in self.labels:
            own = mean[..., label.columns]
            logs = np.log(label.probabilities(own))
            total = (self._holds(label, value) * logs).sum(-1, keepdims=True)
            result[..., label.columns] = total / len(label.shares)
        return result

    def variance(self, mean: Floats, variance: Floats) -> Floats:
        """Variance of each distribution, (..., column)."""
        result = np.broadcast_to(variance, mean.shape).copy()
        for label in self.labels:
            chance = label.probabilities(mean[..., label.columns])
            _, sd = label.moments(chance)
            result[..., label.columns] = chance * (1 - chance) / sd**2
        return result

    def score(self, mean: Floats, variance: Floats, value: Floats, slopes: Floats) -> Floats:
        """d log p / d past from slopes d mean / d past, both (batch, column, max_lag, source).

        Of a number (value - mean) / variance times its slopes. Of a label, whose level k has the
        chance c_k / sum(c) with c_k = mean_k sd_k + share_k, by the chain rule over its levels.
        """
        pull = (value - mean) / variance
        result = np.asarray(pull[..., None, None] * slopes)
        for label in self.labels:
            own = label.columns
            share, sd = label.moments(mean)
            raw = mean[..., own] * sd + share
            chance = np.maximum(raw, LEAST_PROBABILITY)
            holds = self._holds(label, value)
            pull = holds / chance - holds.sum(-1, keepdims=True) / chance.sum(-1, keepdims=True)
            pull = pull * sd * (raw >= LEAST_PROBABILITY) / len(label.shares)
            joint = np.einsum("bk,bkls->bls", pull, slopes[:, own])
            result[:, own] = joint[:, None]
        return result

    @staticmethod
    def _holds(label: LabelColumns, value: Floats) -> Floats:
        """1 for the level that is there, (..., level)."""
        share, sd = label.moments(value)
        return np.asarray(value[..., label.columns] * sd + share)

"""Data simulated from a forecaster along a graph: inputs that are no edges stay at their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from forecause.common.arrays import Array, Floats, Index
from forecause.data.variables import LabelColumns, Variables
from forecause.forecast.attribution.readouts import VariableRelevance
from forecause.forecast.forecaster import Forecaster
from forecause.graph.axes import by_lag

# Time and memory:
CHAINS = 32  # series simulated side by side
BURN_IN = 100  # steps thrown away

# Numerics:
BOUND = 10.0  # standard deviations that simulated values of numbers may not leave


@dataclass(frozen=True)
class Model:
    """A forecaster as it forecasts in the domain with this index; None: where there are none."""

    forecaster: Forecaster
    domain: int | None = None

    def __call__(self, past: Floats) -> Floats:
        """past (batch, step, variable) -> (batch, variable)."""
        return self.forecaster(past, domain=self._domain(past))

    def slopes(self, past: Floats, target: int) -> Floats:
        """d forecast / d past of one target, (batch, step, source)."""
        model = self.forecaster.member_of(target)
        return np.asarray(model.jacobian(past, domain=self._domain(past))[:, target])

    def _domain(self, past: Floats) -> Index | None:
        return None if self.domain is None else np.full(len(past), self.domain)


class AlongGraph:
    """A forecaster that sees, for each target, its parents only.

    `weight` (target, step, source) of columns, oldest step first, multiplies the standardised
    inputs: 0 holds an input at its mean, 1 leaves it as it is, between them its edge is weakened.
    """

    def __init__(self, model: Model, weight: Floats) -> None:
        self.model = model
        self.weight = weight
        self.steps, self.columns = weight.shape[1:]

    def forecast(self, past: Floats) -> Floats:
        """past (batch, step, column) -> (batch, column)."""
        seen = past[:, None] * self.weight  # (batch, target, step, source)
        every = self.model(seen.reshape(-1, self.steps, self.columns))
        own = every.reshape(len(past), self.columns, self.columns)
        return np.diagonal(own, axis1=1, axis2=2)

    @property
    def labels(self) -> Sequence[LabelColumns]:
        """The columns that are levels of labels."""
        return self.model.forecaster.labels

    @cached_property
    def owner(self) -> Index:
        """(column,) the variable of every column."""
        return Variables.of_label_columns(self.columns, self.labels).of_column

    def strengths(self, past: Floats) -> Array:
        """Root mean square of d forecast / d input of variables, (target, source, lag)."""
        if self.labels:
            return self._strengths_with_labels(past)
        size = np.zeros(self.weight.shape)
        for target in np.flatnonzero(self.weight.any((1, 2))):
            size[target] = np.sqrt((self._slopes(past, int(target)) ** 2).mean(0))
        return by_lag(size)

    def _slopes(self, past: Floats, target: int) -> Array:
        """Of one target's forecast along its inputs, (batch, step, source)."""
        own = self.weight[target]
        return np.asarray(self.model.slopes(past * own, target) * own, dtype=np.float64)

    def _strengths_with_labels(self, past: Floats) -> Array:
        relevance = VariableRelevance.of(self.model.forecaster)
        slopes = np.stack([self._slopes(past, target) for target in range(self.columns)], axis=1)
        energies = relevance.energies(np.square(relevance.signed(slopes)))
        return by_lag(np.sqrt(energies.mean(0)))


def simulate_along(
    system: AlongGraph, noise: Array, windows: int, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Series (chain, row, column) that hold about `windows` windows, and the clipped share.

    Many short chains instead of a long one: a step of all of them costs little more than of one.
    `noise` (variable,) is that of numbers; of a label, a level is drawn by its probability.
    """
    steps, columns = system.steps, system.columns
    chains = int(np.clip(windows // (10 * (steps + 1)), 1, CHAINS))
    length = int(np.ceil(windows / chains)) + steps
    values = np.zeros((chains, steps + BURN_IN + length, columns), dtype=np.float32)
    shocks = (rng.normal(size=values.shape) * noise[system.owner]).astype(np.float32)
    numbers = np.bincount(system.owner)[system.owner] == 1
    clipped = 0
    for t in range(steps, values.shape[1]):
        told = system.forecast(values[:, t - steps : t])
        following = told + shocks[:, t]
        clipped += int((np.abs(following[:, numbers]) > BOUND).sum())
        values[:, t] = np.clip(np.nan_to_num(following, nan=0.0), -BOUND, BOUND)
        for label in system.labels:
            values[:, t, label.columns] = _drawn_level(label, told[:, label.columns], rng)
    return values[:, -length:], clipped / values[:, steps:].size


def _drawn_level(label: LabelColumns, told: Floats, rng: np.random.Generator) -> Floats:
    """A level of a label for every chain, by its probability, as standardised columns."""
    chances = label.probabilities(np.nan_to_num(told.astype(np.float64))).cumsum(-1)
    drawn = (chances[:, :-1] < rng.random((len(told), 1))).sum(-1)
    return label.standardised(np.eye(chances.shape[-1])[drawn])

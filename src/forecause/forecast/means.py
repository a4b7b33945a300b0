"""Means of forecasters, plain or weighted, and how much each is worth on held-out time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import ClassVar

import numpy as np

from forecause.common.arrays import Array, Floats, Index
from forecause.forecast.forecaster import PLAIN, FitData, Forecaster, ForecasterSettings, Rules
from forecause.forecast.members import Member, OfMembers, built
from forecause.regression.least_squares import solved

JOINED = " + "  # between the labels of the parts of a stack


class StackSettings(ForecasterSettings):
    """What every part of a stack is, by its label."""

    kind: ClassVar[str] = "stack"
    refusal: ClassVar[str] = (
        "A stack of forecasters is kept by single targets; ask for forecaster='auto'."
    )

    parts: dict[str, Member]

    def build(self, shape: tuple[int, int]) -> Stack:
        return Stack(shape, self, built(self.parts, shape))


class Stack(OfMembers):
    """Forecasts and slopes are the means of those of the parts."""

    def __init__(
        self, shape: tuple[int, int], settings: StackSettings, parts: Mapping[str, Forecaster]
    ) -> None:
        super().__init__(shape, settings, parts)
        self.noise_variance = np.min([part.noise_variance for part in parts.values()], axis=0)

    @classmethod
    def of(cls, parts: Mapping[str, Forecaster]) -> Stack:
        """Of fitted forecasters."""
        settings = StackSettings(parts={label: Member.of(part) for label, part in parts.items()})
        return cls(_shape_of(parts), settings, parts)

    @property
    def label(self) -> str:
        return JOINED.join(self._members)

    def has_model_for(self, column: int) -> bool:
        return all(part.has_model_for(column) for part in self._members.values())

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        return self._mean(part(past, rules, domain) for part in self._members.values())

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        return self._mean(part.jacobian(past, rules, domain) for part in self._members.values())

    def fit(self, fit_data: FitData) -> None:
        for part in self._members.values():
            part.fit(fit_data)
        self.estimate_noise(fit_data.held_out)

    def _mean(self, answers: Iterable[Floats]) -> Floats:
        """Of the parts' answers (batch, column, ...)."""
        return np.mean(list(answers), axis=0)


class BlendSettings(StackSettings):
    """What every part of a blend is, by its name."""

    kind: ClassVar[str] = "blend"
    refusal: ClassVar[str] = "A blend of forecasters follows from a run; ask for forecaster='auto'."

    def build(self, shape: tuple[int, int]) -> Blend:
        return Blend(shape, self, built(self.parts, shape))


class Blend(Stack):
    """A weighted mean, in which each column has shares of its own."""

    state_names = ("shares",)

    def __init__(
        self, shape: tuple[int, int], settings: BlendSettings, parts: Mapping[str, Forecaster]
    ) -> None:
        super().__init__(shape, settings, parts)
        self.shares: Array = np.zeros((len(parts), self.n_variables))

    @classmethod
    def weighted(cls, parts: Mapping[str, Forecaster], shares: Array) -> Blend:
        """Of fitted forecasters and their shares (part, column)."""
        settings = BlendSettings(parts={name: Member.of(part) for name, part in parts.items()})
        made = cls(_shape_of(parts), settings, parts)
        made.shares = shares
        reads = [
            part.allowed & (own > 0)[:, None, None]
            for part, own in zip(parts.values(), shares, strict=True)
        ]
        made.allowed = np.logical_or.reduce(reads)
        return made

    @property
    def label(self) -> str:
        return self.kind

    def _mean(self, answers: Iterable[Floats]) -> Floats:
        total = 0.0
        for answer, share in zip(answers, self.shares, strict=True):
            own = share.reshape(-1, *[1] * (answer.ndim - 2))
            total = total + own * np.where(own > 0, answer, 0.0)  # an unused part may be unknown
        return np.asarray(total, dtype=np.float32)


def _shape_of(parts: Mapping[str, Forecaster]) -> tuple[int, int]:
    first = next(iter(parts.values()))
    return first.max_lag, first.n_variables


def best_shares(products: Array, count: float, prior: Array, sd: float) -> Array:
    """Shares (part,) of least squared error that stay near a prior; none below 0, their sum 1.

    `products` (part, part) are sums of products of residuals over `count` rows. The prior is that
    of a normal distribution about it: where forecasts hardly differ the shares stay there.
    """
    parts = len(prior)
    noise = max(float(products.diagonal().min()) / max(count, 1.0), 1e-12)
    curvature = products / noise + np.eye(parts) / sd**2
    pull = prior / sd**2
    best, least = prior, float("inf")
    for size in range(1, parts + 1):  # which shares are above 0: few parts, so all are tried
        for chosen in combinations(range(parts), size):
            shares = np.zeros(parts)
            shares[list(chosen)] = _adding_to_one(curvature, pull, list(chosen))
            loss = float(shares @ curvature @ shares - 2 * pull @ shares)
            if (shares >= 0).all() and loss < least:
                best, least = shares, loss
    return best


def _adding_to_one(curvature: Array, pull: Array, chosen: list[int]) -> Array:
    """The least of a quadratic form over the shares of some parts that add up to one."""
    size = len(chosen)
    system = np.ones((size + 1, size + 1))
    system[:size, :size] = curvature[np.ix_(chosen, chosen)]
    system[size, size] = 0.0
    return solved(system, np.append(pull[chosen], 1.0))[:size]

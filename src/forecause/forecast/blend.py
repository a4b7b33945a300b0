"""Weighted means of forecasters, and how much each of them is worth on held-out time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from forecause.config import ForecasterSpec
from forecause.errors import InputError
from forecause.forecast.forecaster import FitData, Floats, Forecaster, ForecasterSettings, Index
from forecause.forecast.members import Member, OfMembers
from forecause.forecast.rules import PLAIN, Rules

Array: TypeAlias = npt.NDArray[np.float64]


class BlendSettings(ForecasterSettings):
    """What every part of a blend is, by its name."""

    kind: ClassVar[str] = "blend"

    parts: dict[str, Member]

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        """Refused: what is blended follows from other fits."""
        raise InputError("A blend of forecasters follows from a run; ask for forecaster='auto'.")

    def build(self, shape: tuple[int, int]) -> Blend:
        return Blend(shape, self, {name: part.build(shape) for name, part in self.parts.items()})


class Blend(OfMembers):
    """Forecasts and slopes are means of those of the parts, each column with its own shares."""

    state_names = ("shares",)
    settings: BlendSettings

    def __init__(
        self, shape: tuple[int, int], settings: BlendSettings, parts: Mapping[str, Forecaster]
    ) -> None:
        super().__init__(shape, settings, parts)
        self.shares: Array = np.zeros((len(parts), self.n_variables))

    @classmethod
    def of(cls, parts: Mapping[str, Forecaster], shares: Array) -> Blend:
        """Of fitted forecasters and their shares (part, column)."""
        first = next(iter(parts.values()))
        settings = BlendSettings(parts={name: Member.of(part) for name, part in parts.items()})
        made = cls((first.max_lag, first.n_variables), settings, parts)
        made.shares = shares
        reads = [
            part.allowed & (own > 0)[:, None, None]
            for part, own in zip(parts.values(), shares, strict=True)
        ]
        made.allowed = np.logical_or.reduce(reads)
        made.noise_variance = np.min([part.noise_variance for part in parts.values()], axis=0)
        return made

    def fit(self, fit_data: FitData) -> None:
        for part in self.members.values():
            part.fit(fit_data)
        self.estimate_noise(fit_data.held_out)

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        each = zip(self.members.values(), self.shares, strict=True)
        parts = [own * np.where(own > 0, part(past, rules, domain), 0.0) for part, own in each]
        return np.asarray(sum(parts), dtype=np.float32)

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        each = zip(self.members.values(), self.shares, strict=True)
        slopes = [own[:, None, None] * part.jacobian(past, rules, domain) for part, own in each]
        return np.asarray(sum(slopes), dtype=np.float32)


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
    return np.asarray(np.linalg.solve(system, np.append(pull[chosen], 1.0))[:size])

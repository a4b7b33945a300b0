"""Noise: one independent stream per variable, scaled to the variance that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SINGLE_KINDS = ("gaussian", "laplace", "student-t", "uniform")
NOISE_KINDS = (*SINGLE_KINDS, "mixed")
DEGREES_OF_FREEDOM = 5.0  # of Student's t: heavy tails, yet a finite fourth moment


@dataclass(frozen=True, eq=False)
class Noise:
    """Kind and standard deviation of each variable's noise, and the seeds of their streams."""

    kinds: tuple[str, ...]
    sd: npt.NDArray[np.float64]  # (variable,)
    seeds: Sequence[np.random.SeedSequence]

    def draw(self, rows: int) -> npt.NDArray[np.float64]:
        """Noise (row, variable); more rows begin with the same values."""
        drawn = np.empty((rows, len(self.kinds)))
        for column, (kind, seed) in enumerate(zip(self.kinds, self.seeds, strict=True)):
            drawn[:, column] = _unit_noise(kind, rows, np.random.default_rng(seed))
        drawn *= self.sd
        return drawn


def draw_noise(
    kind: str, variance: tuple[float, float], variables: int, seed: np.random.SeedSequence
) -> Noise:
    """Choose each variable's kind (`mixed` draws one) and its variance, uniform in a range."""
    own, *streams = seed.spawn(variables + 1)
    rng = np.random.default_rng(own)
    low, high = variance
    kinds = rng.choice(SINGLE_KINDS, variables) if kind == "mixed" else [kind] * variables
    # 1 - U[0, 1) lies in (0, 1], so that a range starting at 0 never gives a variance of 0
    variances = low + (high - low) * (1 - rng.random(variables))
    return Noise(tuple(str(name) for name in kinds), np.sqrt(variances), streams)


def _unit_noise(kind: str, rows: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Independent values of mean 0 and variance 1."""
    if kind == "laplace":
        return rng.laplace(scale=np.sqrt(0.5), size=rows)
    if kind == "student-t":
        shrink = np.sqrt((DEGREES_OF_FREEDOM - 2) / DEGREES_OF_FREEDOM)
        return np.asarray(rng.standard_t(DEGREES_OF_FREEDOM, rows) * shrink)
    if kind == "uniform":
        return rng.uniform(-np.sqrt(3), np.sqrt(3), rows)
    return rng.standard_normal(rows)

"""The simulated systems of pretraining: many shapes, graphs, mechanisms and kinds of noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.signal import lfilter
from torch import Tensor

from forecause.errors import InputError
from forecause.simulation import simulate

Array = npt.NDArray[np.float64]

FIRST_SEED = 1_000_000  # benchmarks count their seeds from 0
SEEDS = 1_000_000_000  # of one pretraining; another begins after them
ROWS = 2000
MECHANISMS = (
    "linear",
    "monotonic",
    "piecewise-linear",
    "trigonometric",
    "mlp-add",
    "mlp-concat",
    "linear+monotonic",
    "piecewise-linear+monotonic",
)
MEMORY = 0.3  # share of the systems whose series are given a long memory
CHANCES = (0.3, 0.15, 0.1, 0.05, 0.15, 0.15, 0.05, 0.05)  # of the mechanisms
NOISES = (("gaussian", 1.0), ("gaussian", (0.5, 5.0)), ("mixed", 1.0), ("mixed", (0.5, 5.0)))


def draw_systems(
    count: int, shape: tuple[int, int], first_seed: int, rng: np.random.Generator
) -> Tensor:
    """Standardised series (system, row, variable) of systems of the shape (max_lag, variables)."""
    series = np.stack([_series(shape, first_seed + i, rng) for i in range(count)])
    series -= series.mean(1, keepdims=True)
    series /= series.std(1, keepdims=True)
    return torch.from_numpy(series.astype(np.float32))


def windows_of(series: Tensor, max_lag: int) -> Tensor:
    """(system, row, variable) -> all windows (system, window, max_lag + 1, variable)."""
    return series.unfold(1, max_lag + 1, 1).transpose(2, 3)


def draw_shape(max_lag: int, variables: int, rng: np.random.Generator) -> tuple[int, int]:
    """A number of lags and a number of variables, at least 2."""
    return int(rng.integers(1, max_lag + 1)), int(rng.integers(2, variables + 1))


def _series(shape: tuple[int, int], seed: int, rng: np.random.Generator) -> Array:
    """Draw until a system stays within bounds; some piecewise-linear ones explode."""
    while True:
        try:
            values = simulate(rows=ROWS, seed=seed, **_system(shape, rng)).values
            return _with_memory(values, rng) if rng.random() < MEMORY else values
        except InputError:
            continue


def _with_memory(values: Array, rng: np.random.Generator) -> Array:
    """Series that remember themselves for long: each passed through a filter of one or two poles.

    The simulator's own series forget fast; those of the world often do not.
    """
    found = np.empty_like(values)
    for column, series in enumerate(values.T):
        radius, angle = rng.uniform(0.5, 0.995), rng.uniform(0.0, np.pi)
        if rng.random() < 0.5:
            poles = [1.0, -radius]
        else:
            poles = [1.0, -2 * radius * np.cos(angle), radius**2]
        found[:, column] = lfilter([1.0], poles, series)
    return found


def _system(shape: tuple[int, int], rng: np.random.Generator) -> dict[str, Any]:
    """How one system is simulated: between a few and up to three or four causes per variable."""
    max_lag, variables = shape
    candidates = max_lag * (variables - 1)
    in_degree = float(rng.uniform(0.5, min(3.5, 0.8 * candidates)))
    noise, variance = NOISES[rng.integers(len(NOISES))]
    return {
        "nodes": variables,
        "max_lag": max_lag,
        "mechanism": str(rng.choice(MECHANISMS, p=CHANCES)),
        "in_degree": in_degree,
        "max_in_degree": None if rng.random() < 0.5 else int(in_degree) + 1,
        "autoregression": float(min(rng.choice([0.0, 0.3, 0.7]), in_degree)),
        "noise": noise,
        "noise_variance": variance,
    }

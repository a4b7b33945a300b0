"""How far the coefficients of a linear fit may be off: draws about the estimate, with HC3 noise.

A draw moves the coefficients of all targets by sum over blocks of time of g h e, where h e are the
terms of HC3 and g is a standard normal number per block, the same for all targets. So the draws
have the robust covariance within and between equations, without it ever being formed.
"""

from __future__ import annotations

import numpy as np

from forecause.common.arrays import Array, Mask
from forecause.config.thresholds import thresholds
from forecause.regression.robust import hc3_fit

# Time and memory:
WORK = 2e9  # multiplications; with more, neighbouring windows share their noise
FEWEST_BLOCKS = 100


def has_dense_fit(windows: int, inputs: int) -> bool:
    """Whether there are windows enough to fit every target to all inputs."""
    return windows > thresholds().effects.windows_per_input * (inputs + 1)


def coefficient_errors(
    past: Array, targets: Array, draws: int, seed: int, causes: Mask | None = None
) -> tuple[Array, Array]:
    """Least squares coefficients (target, input) and draws of their errors (draw, target, input).

    past (window, input) and targets (window, target). With `causes` (target, input) each target is
    fitted to its own inputs alone; other coefficients are 0 in every draw.
    """
    count, inputs = past.shape
    columns = targets.shape[1]
    blocks = int(np.clip(WORK / (columns * draws * inputs), FEWEST_BLOCKS, count))
    first = np.linspace(0, count, blocks, endpoint=False).astype(np.int64)
    noise = np.random.default_rng(seed).standard_normal((draws, len(first)))
    design = np.column_stack([np.ones(count), past])
    found, errors = np.zeros((columns, inputs)), np.zeros((draws, columns, inputs))
    groups = [(np.arange(columns), np.arange(inputs))]
    if causes is not None:
        groups = [(np.array([i]), np.flatnonzero(own)) for i, own in enumerate(causes)]
    for some, used in groups:
        own = np.concatenate([[0], used + 1])
        own_design, own_targets = design[:, own], targets[:, some]
        coefficients, h, left = hc3_fit(own_design, own_targets)
        for place, target in enumerate(some.tolist()):
            influence = np.add.reduceat(h[:, 1:] * left[:, [place]], first)  # (block, input)
            found[target, used] = coefficients[1:, place]
            errors[:, target, used] = noise @ influence
    return found, errors

"""Lorenz-96: a chaotic ring of variables whose equation tells the true graph."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from forecause import InputError, LaggedGraph
from forecause.simulation import Simulated

Array = npt.NDArray[np.float64]

LONGEST_INNER_STEP = 0.01  # of the Runge-Kutta solver, in model time
BURN_IN = 50.0  # model time left out at the start


def lorenz96(
    *,
    nodes: int = 10,
    rows: int = 10_000,
    forcing: float = 10.0,
    dt: float = 0.1,
    noise_sd: float = 0.1,
    seed: int = 0,
) -> Simulated:
    """Simulate dx_i/dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + forcing, one row every `dt`.

    Gaussian noise of sd `noise_sd` disturbs the state once per row, so that each row follows from
    the last one alone. The true graph has i-2, i-1, i and i+1 driving i at lag 1; over a long
    `dt` influence also reaches farther neighbours, weakly.
    """
    _check(nodes, rows, dt, noise_sd, seed)
    rng = np.random.default_rng(seed)
    inner_steps = math.ceil(dt / LONGEST_INNER_STEP)
    burn_in = math.ceil(BURN_IN / dt)
    noise = noise_sd * rng.standard_normal((burn_in + rows, nodes))
    values = np.empty((burn_in + rows, nodes))
    state = forcing + rng.standard_normal(nodes)
    with np.errstate(all="ignore"):
        for row in range(len(values)):
            state = _advance(state, forcing, dt / inner_steps, inner_steps) + noise[row]
            values[row] = state
    if not np.isfinite(values).all():
        raise InputError(
            f"Lorenz-96 with forcing {forcing:g} and noise_sd {noise_sd:g} left the range of "
            "floating-point numbers; use a smaller forcing or less noise."
        )
    names = tuple(f"X{i + 1}" for i in range(nodes))
    edges = [
        (names[(i + offset) % nodes], names[i], 1)
        for i in range(nodes)
        for offset in (-2, -1, 0, 1)
    ]
    return Simulated(
        values=values[burn_in:],
        graph=LaggedGraph.from_edges(names, 1, edges),
        noise_sd=np.full(nodes, noise_sd),
        noise_kinds=("gaussian",) * nodes,
    )


def _check(nodes: int, rows: int, dt: float, noise_sd: float, seed: int) -> None:
    if nodes < 4:
        raise InputError(
            f"Lorenz-96 needs at least 4 nodes for distinct neighbours, found {nodes}."
        )
    if rows < 1 or seed < 0:
        raise InputError(f"rows must be at least 1 and seed at least 0, found {rows} and {seed}.")
    if not 0 < dt < math.inf:
        raise InputError(f"dt, the time between two rows, must be positive, found {dt}.")
    if not 0 <= noise_sd < math.inf:
        raise InputError(f"noise_sd must be 0 or more, found {noise_sd}.")


def _advance(state: Array, forcing: float, step: float, steps: int) -> Array:
    """`steps` classical Runge-Kutta steps."""
    for _ in range(steps):
        first = _derivative(state, forcing)
        second = _derivative(state + step / 2 * first, forcing)
        third = _derivative(state + step / 2 * second, forcing)
        fourth = _derivative(state + step * third, forcing)
        state = state + step / 6 * (first + 2 * second + 2 * third + fourth)
    return state


def _derivative(state: Array, forcing: float) -> Array:
    ring = np.concatenate([state[-2:], state, state[:1]])  # ring[i + 2] is variable i
    return np.asarray((ring[3:] - ring[:-3]) * ring[1:-2] - state + forcing)

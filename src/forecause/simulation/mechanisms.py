"""Mechanisms: how a variable follows from its parents.

Additive forms act edge by edge: bias + sum_m outer_m act(inner_m x + shift_m). Networks act on
all parents of a target together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Array = npt.NDArray[np.float64]

HIDDEN = 16  # hidden units of a network
NETWORK_GAIN = 2.0  # makes about half of an mlp-add variable's variance predictable


def _relu(values: Array, out: Array) -> Array:
    return np.maximum(values, 0.0, out=out)


# How each additive form bends its input, in place; None leaves it as it is.
ACTIVATIONS: dict[str, Callable[[Array, Array], Any] | None] = {
    "linear": None,
    "piecewise-linear": _relu,
    "monotonic": expit,
    "trigonometric": np.sin,
}
NETWORKS = ("mlp-add", "mlp-concat")
MECHANISMS = (*ACTIVATIONS, *NETWORKS)


@dataclass(frozen=True, eq=False)
class Form:
    """One edge's function: bias + sum_m outer_m act(inner_m x + shift_m)."""

    kind: str
    outer: Array  # (term,)
    inner: Array  # (term,)
    shift: Array  # (term,)
    bias: float = 0.0

    def __call__(self, x: Array) -> Array:
        """The edge's contribution for inputs of any shape."""
        bent = np.asarray(x)[..., None] * self.inner + self.shift
        activation = ACTIVATIONS[self.kind]
        if activation is not None:
            activation(bent, bent)
        return np.asarray(bent @ self.outer + self.bias)

    @property
    def strength(self) -> float:
        """|slope| of a linear edge, the largest |slope| of a piecewise linear one, the whole rise
        of a monotonic one, the amplitude of a trigonometric one."""
        if self.kind == "piecewise-linear":
            knots = np.sort(-self.shift / self.inner)
            between = np.concatenate([knots[:1] - 1, (knots[:-1] + knots[1:]) / 2, knots[-1:] + 1])
            active = between[:, None] * self.inner + self.shift > 0  # (interval, term)
            return float(np.abs(active @ (self.outer * self.inner)).max())
        return float(np.abs(self.outer).sum())


@dataclass(frozen=True, eq=False)
class Network:
    """One target's function of all its parents: outer . tanh(inner parents + shift).

    With `noise_inner` the noise is one more input (mlp-concat); without, it is added outside.
    """

    inner: Array  # (hidden, parent)
    shift: Array  # (hidden,)
    outer: Array  # (hidden,)
    noise_inner: Array | None = None  # (hidden,)

    @property
    def kind(self) -> str:
        """The mechanism's name."""
        return "mlp-add" if self.noise_inner is None else "mlp-concat"


Mechanism = tuple[Form, ...] | Network


def draw_mechanism(kinds: tuple[str, ...], parents: int, rng: np.random.Generator) -> Mechanism:
    """Draw one target's mechanism; a mixture draws per edge, or per target if it has a network."""
    if not set(kinds).isdisjoint(NETWORKS):
        kinds = (str(rng.choice(kinds)),)
    if kinds[0] in NETWORKS:
        return _draw_network(parents, kinds[0] == "mlp-concat", rng)
    return tuple(_draw_form(str(rng.choice(kinds)), parents + 1, rng) for _ in range(parents))


def linear_form(weight: float) -> Form:
    """The form `weight * x`, without a bias."""
    return Form("linear", np.array([weight]), np.ones(1), np.zeros(1))


def _draw_form(kind: str, share: int, rng: np.random.Generator) -> Form:
    """Draw an edge's form; `share` is the number of parents, the noise counted as one."""
    bias = float(rng.uniform(-0.1, 0.1))
    if kind == "linear":
        return Form(kind, _weights(1, share, rng), np.ones(1), np.zeros(1), bias)
    if kind == "trigonometric":
        frequency, phase = rng.uniform(0.5, 5.0, 1), rng.uniform(-np.pi, np.pi, 1)
        return Form(kind, _weights(1, share, rng), 2 * np.pi * frequency, phase, bias)
    terms = int(rng.integers(1, 11))
    offsets = rng.uniform(-5.0, 5.0, terms)
    if kind == "piecewise-linear":
        outer, inner = _weights(terms, share, rng), _weights(terms, share, rng)
    else:  # monotonic: all terms rise, or all fall
        outer = np.abs(_weights(terms, share, rng)) * rng.choice([-1.0, 1.0])
        inner = rng.uniform(0.5, 10.0, terms)
    return Form(kind, outer, inner, -inner * offsets, bias)


def _weights(count: int, share: int, rng: np.random.Generator) -> Array:
    """|w| ~ U(0.7, 0.99) / share with random signs: a linear row's L1 norm stays below 1."""
    sizes: Array = rng.uniform(0.7, 0.99, count) / share
    sizes *= rng.choice([-1.0, 1.0], count)
    return sizes


def _draw_network(parents: int, concat: bool, rng: np.random.Generator) -> Network:
    """Every hidden unit listens to every input; bounded, so that no network can explode."""
    inputs = parents + concat
    signs = rng.choice([-1.0, 1.0], (HIDDEN, inputs))
    inner = signs * rng.uniform(0.5, 1.5, (HIDDEN, inputs))
    shift = rng.uniform(-1.0, 1.0, HIDDEN)
    outer = rng.choice([-1.0, 1.0], HIDDEN) * rng.uniform(0.5, 1.0, HIDDEN)
    outer *= NETWORK_GAIN / np.sqrt(HIDDEN)
    return Network(inner[:, :parents], shift, outer, inner[:, parents] if concat else None)


NoiseName = Literal["gaussian", "laplace", "student-t", "uniform", "mixed"]
SINGLE_KINDS = ("gaussian", "laplace", "student-t", "uniform")
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

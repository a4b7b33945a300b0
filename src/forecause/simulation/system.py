"""System: the structural equations of one graph, grouped into a few array operations per time step.

A step sees `window`, the flattened rows t - max_lag .. t, and `row`, its last part. The row starts
as the noise plus the biases and every block adds to it, in an order in which no instantaneous
parent is read before it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.linalg import block_diag
from scipy.special import expit

from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause.simulation.mechanisms import (
    ACTIVATIONS,
    HIDDEN,
    Form,
    Mechanism,
    Network,
    draw_mechanism,
    linear_form,
)
from forecause.simulation.structure import Parent, Structure

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

CHECK_EVERY = 2_000  # rows between two looks at whether the series still stays within bounds

# A variance parent x multiplies the noise variance by LOWEST + SPAN sigmoid(SLOPE x): within
# 0.1 and 1.9, and 1 on average when x is symmetric about 0.
LOWEST_VARIANCE, VARIANCE_SPAN, VARIANCE_SLOPE = 0.1, 1.8, 2.0


class Block(Protocol):
    """A part of all equations that is computed at once."""

    def add(self, window: Array, row: Array, noise: Array) -> None:
        """Add this part's contribution to `row`, the last (variable,) entries of `window`."""


@dataclass(frozen=True, eq=False)
class FormBlock:
    """All terms of one additive form: row += outer act(inner x + shift)."""

    index: Index  # (term,) places in the window
    inner: Array  # (term,)
    shift: Array  # (term,)
    outer: Array  # (variable, term)
    activation: Callable[[Array, Array], Any] | None

    @classmethod
    def of(
        cls,
        forms: Sequence[tuple[int, int, Form]],
        variables: int,
        activation: Callable[[Array, Array], Any] | None,
    ) -> FormBlock:
        """Join the terms of (place in the window, target, form) triples."""
        terms = [len(form.outer) for _, _, form in forms]
        targets = np.repeat([target for _, target, _ in forms], terms)
        outer = np.zeros((variables, sum(terms)))
        outer[targets, np.arange(sum(terms))] = np.concatenate([form.outer for *_, form in forms])
        return cls(
            index=np.repeat([place for place, _, _ in forms], terms),
            inner=np.concatenate([form.inner for *_, form in forms]),
            shift=np.concatenate([form.shift for *_, form in forms]),
            outer=outer,
            activation=activation,
        )

    def add(self, window: Array, row: Array, noise: Array) -> None:
        bent = window.take(self.index)
        if self.activation is not None:  # linear terms have inner 1 and shift 0
            bent *= self.inner
            bent += self.shift
            self.activation(bent, bent)
        row += self.outer.dot(bent)


@dataclass(frozen=True, eq=False)
class NetworkBlock:
    """The networks of a few targets side by side: row += outer tanh(inner inputs + shift)."""

    index: Index  # (input,) places in the window
    inner: Array  # (hidden, input), block-diagonal
    noise_inner: Array | None  # (hidden, variable), if some network takes its noise in
    shift: Array  # (hidden,)
    outer: Array  # (variable, hidden)

    @classmethod
    def of(
        cls, networks: Sequence[tuple[Sequence[int], int, Network]], variables: int
    ) -> NetworkBlock:
        """Join the networks of (places in the window, target, network) triples."""
        hidden = HIDDEN * len(networks)
        noise_inner, outer = np.zeros((hidden, variables)), np.zeros((variables, hidden))
        for own, (_, target, network) in enumerate(networks):
            units = slice(own * HIDDEN, (own + 1) * HIDDEN)
            outer[target, units] = network.outer
            if network.noise_inner is not None:
                noise_inner[units, target] = network.noise_inner
        return cls(
            index=np.concatenate([places for places, _, _ in networks]).astype(np.int64),
            inner=block_diag(*(network.inner for *_, network in networks)),
            noise_inner=noise_inner if noise_inner.any() else None,
            shift=np.concatenate([network.shift for *_, network in networks]),
            outer=outer,
        )

    def add(self, window: Array, row: Array, noise: Array) -> None:
        hidden = self.inner.dot(window.take(self.index))
        if self.noise_inner is not None:
            hidden += self.noise_inner.dot(noise)
        hidden += self.shift
        np.tanh(hidden, hidden)
        row += self.outer.dot(hidden)


@dataclass(frozen=True, eq=False)
class VarianceBlock:
    """Parents that only scale the noise: row[target] += (scale(x) - 1) noise[target]."""

    targets: Index  # (target,)
    index: Index  # (target,) places in the window

    def add(self, window: Array, row: Array, noise: Array) -> None:
        variance = LOWEST_VARIANCE + VARIANCE_SPAN * expit(VARIANCE_SLOPE * window.take(self.index))
        row[self.targets] += (np.sqrt(variance) - 1) * noise.take(self.targets)


def trajectory(
    blocks: Sequence[Block], past: Array, noise: Array, start: Array, limit: float = np.inf
) -> Array | None:
    """Continue `past` (max_lag, variable) by one row per row of `noise` (row, variable).

    `start` (row, variable) is what each new row holds before the blocks add to it. Returns None
    once a value is not finite or leaves -limit .. limit.
    """
    max_lag, variables = past.shape
    series = np.concatenate([past, start])
    flat = series.reshape(-1)
    width = max_lag * variables
    with np.errstate(all="ignore"):
        for first in range(0, len(noise), CHECK_EVERY):
            last = min(first + CHECK_EVERY, len(noise))
            for step in range(first, last):
                begin = step * variables
                window = flat[begin : begin + width + variables]
                row = window[width:]
                for block in blocks:
                    block.add(window, row, noise[step])
            if not np.abs(series[max_lag + first : max_lag + last]).max() <= limit:
                return None
    return series[max_lag:]


GROUP = 10  # networks computed together; more would make their joint matrix large and empty


@dataclass(frozen=True, eq=False)
class System:
    """One structural equation per variable, observed variables first, then latents."""

    observed: tuple[str, ...]
    latents: tuple[str, ...]
    max_lag: int
    structure: Structure
    mechanisms: tuple[Mechanism, ...]  # one per variable

    @property
    def variables(self) -> tuple[str, ...]:
        """Observed variables, then latents: the columns of every array here."""
        return self.observed + self.latents

    def step(self, past: npt.ArrayLike, noise: npt.ArrayLike) -> Array:
        """The next values (variable,) after `past` (max_lag, variable), latest row last.

        The noise (variable,) is given, so that two pasts can be compared under the same noise.
        """
        past, noise = np.asarray(past, dtype=float), np.asarray(noise, dtype=float)
        expected = (self.max_lag, len(self.variables))
        if past.shape != expected or noise.shape != expected[1:]:
            raise InputError(
                f"Expected a past of shape {expected} and noise of shape {expected[1:]}, found "
                f"{past.shape} and {noise.shape}."
            )
        following = self.run(past, noise[None])
        if following is None:
            raise InputError("The next values are not finite; give a past and noise that are.")
        return np.asarray(following[0])

    def run(self, past: Array, noise: Array, limit: float = np.inf) -> Array | None:
        """Continue `past` by one row per row of `noise`; None if a value leaves the limit."""
        additive, bias = self._start
        return trajectory(self._blocks, past, noise, noise * additive + bias, limit)

    @property
    def graph(self) -> LaggedGraph:
        """The true graph over the observed variables."""
        edges = self.edges
        seen = edges["source"].isin(self.observed) & edges["target"].isin(self.observed)
        return LaggedGraph(self.observed, self.max_lag, edges[seen])

    @property
    def edges(self) -> pd.DataFrame:
        """All edges, latents' too: source, target, lag, score (the strength), mechanism."""
        names = self.variables
        rows: list[tuple[str, str, int, float, str]] = []
        for target, parents in enumerate(self.structure.parents):
            for place, (source, lag) in enumerate(parents):
                strength, kind = _strength(self.mechanisms[target], place)
                rows.append((names[source], names[target], lag, strength, kind))
        for target, (source, lag) in self.structure.variance_parents.items():
            rows.append((names[source], names[target], lag, 1.0, "variance"))
        return pd.DataFrame(rows, columns=["source", "target", "lag", "score", "mechanism"])

    @cached_property
    def _start(self) -> tuple[Array, Array]:
        """Per variable: 1 where noise is added (0 where a network takes it in), and the bias."""
        concat = [isinstance(m, Network) and m.kind == "mlp-concat" for m in self.mechanisms]
        bias = [0.0 if isinstance(m, Network) else sum(f.bias for f in m) for m in self.mechanisms]
        return 1.0 - np.array(concat), np.array(bias)

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        blocks: list[Block] = []
        if self.structure.variance_parents:
            targets = list(self.structure.variance_parents)
            places = [self._place(p) for p in self.structure.variance_parents.values()]
            blocks.append(VarianceBlock(np.array(targets), np.array(places)))
        for targets in _instantaneous_order(self.structure.parents):
            blocks.extend(self._blocks_of(targets))
        return tuple(blocks)

    def _blocks_of(self, targets: Sequence[int]) -> list[Block]:
        """One block per form, and one for all networks, of these targets."""
        forms: dict[str, list[tuple[int, int, Form]]] = {}
        networks: list[tuple[list[int], int, Network]] = []
        for target in targets:
            mechanism = self.mechanisms[target]
            places = [self._place(parent) for parent in self.structure.parents[target]]
            if isinstance(mechanism, Network):
                networks.append((places, target, mechanism))
            else:
                for place, form in zip(places, mechanism, strict=True):
                    forms.setdefault(form.kind, []).append((place, target, form))
        blocks: list[Block] = [
            FormBlock.of(forms[kind], len(self.variables), ACTIVATIONS[kind])
            for kind in sorted(forms)
        ]
        groups = (networks[i : i + GROUP] for i in range(0, len(networks), GROUP))
        return [*blocks, *(NetworkBlock.of(group, len(self.variables)) for group in groups)]

    def _place(self, parent: Parent) -> int:
        """Where a parent's value is found in the flattened rows t - max_lag .. t."""
        return (self.max_lag - parent.lag) * len(self.variables) + parent.source


def draw_mechanisms(
    structure: Structure,
    nodes: int,
    kinds: tuple[str, ...],
    latent_autoregression: float,
    rng: np.random.Generator,
) -> tuple[Mechanism, ...]:
    """Draw the observed variables' mechanisms; a latent follows only its own last value."""
    observed = [draw_mechanism(kinds, len(own), rng) for own in structure.parents[:nodes]]
    latent = [
        tuple(linear_form(latent_autoregression) for _ in own) for own in structure.parents[nodes:]
    ]
    return (*observed, *latent)


def _strength(mechanism: Mechanism, place: int) -> tuple[float, str]:
    if isinstance(mechanism, Network):
        return 1.0, mechanism.kind
    return mechanism[place].strength, mechanism[place].kind


def _instantaneous_order(parents: Sequence[Sequence[Parent]]) -> list[list[int]]:
    """Targets in groups, each after the groups that hold its lag-0 parents."""
    depth: dict[int, int] = {}

    def depth_of(target: int) -> int:
        if target not in depth:
            above = [depth_of(parent.source) for parent in parents[target] if parent.lag == 0]
            depth[target] = 1 + max(above, default=-1)
        return depth[target]

    deepest = max(depth_of(target) for target in range(len(parents)))
    return [[i for i in range(len(parents)) if depth[i] == level] for level in range(deepest + 1)]

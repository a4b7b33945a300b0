"""Structure: who is a parent of whom, and at which lag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtrc

from forecause.errors import InputError

if TYPE_CHECKING:
    from forecause.simulation.settings import Settings


class Parent(NamedTuple):
    """A source variable and its delay; variables are counted observed first, then latents."""

    source: int
    lag: int


@dataclass(frozen=True)
class Structure:
    """The parents of every variable, observed first, then latents."""

    parents: tuple[tuple[Parent, ...], ...]
    variance_parents: Mapping[int, Parent]  # target -> the parent that drives only its variance


def draw_structure(settings: Settings, max_lag: int, rng: np.random.Generator) -> Structure:
    """Draw a graph: lagged parents, then instantaneous ones, latents and variance parents.

    A lag-1 self edge appears with probability `autoregression`; every other candidate becomes a
    parent with one common probability until the cap, chosen so that the expected number of
    lagged observed parents is `in_degree`.
    """
    nodes = range(settings.nodes)
    probability = edge_probability(settings, max_lag)
    parents = [_lagged_parents(target, settings, max_lag, probability, rng) for target in nodes]
    _add_instantaneous(parents, settings.instantaneous, rng)
    _add_latents(parents, settings, max_lag, rng)
    variance = _variance_parents(parents, settings, max_lag, rng)
    return Structure(tuple(tuple(own) for own in parents), variance)


def rewired(
    structure: Structure, nodes: int, max_lag: int, share: float, rng: np.random.Generator
) -> Structure:
    """Give a share of the lagged edges between observed variables another source and lag.

    At least one edge moves if there is any; every target keeps its number of parents.
    """
    movable = [
        (target, place)
        for target in range(nodes)
        for place, parent in enumerate(structure.parents[target])
        if parent.lag > 0 and parent.source < nodes and parent.source != target
    ]
    count = min(len(movable), max(1, round(share * len(movable))))
    parents = [list(own) for own in structure.parents]
    for chosen in rng.choice(len(movable), count, replace=False) if movable else ():
        target, place = movable[chosen]
        before = structure.parents[target]
        taken = {*parents[target], *before, structure.variance_parents.get(target)}
        free = [
            Parent(source, lag)
            for source in range(nodes)
            for lag in range(1, max_lag + 1)
            if source != target and Parent(source, lag) not in taken
        ]
        if free:
            parents[target][place] = free[rng.integers(len(free))]
    return replace(structure, parents=tuple(tuple(own) for own in parents))


def edge_probability(settings: Settings, max_lag: int) -> float:
    """The probability of each candidate that makes the expected in-degree the requested one."""
    candidates = _candidates(settings, max_lag)
    if candidates == 0 or settings.in_degree == settings.autoregression:
        return 0.0
    if settings.in_degree >= largest_in_degree(settings, max_lag):
        return 1.0
    if settings.max_in_degree is None:
        return (settings.in_degree - settings.autoregression) / candidates

    def excess(probability: float) -> float:
        return _expected_in_degree(settings, candidates, probability) - settings.in_degree

    return float(brentq(excess, 0.0, 1.0, xtol=1e-12))


def largest_in_degree(settings: Settings, max_lag: int) -> float:
    """The largest expected in-degree that these nodes, lags and cap allow."""
    candidates = _candidates(settings, max_lag)
    if settings.max_in_degree is None:
        return candidates + settings.autoregression
    return _expected_in_degree(settings, candidates, 1.0)


def _candidates(settings: Settings, max_lag: int) -> int:
    """Possible parents of one target, its lag-1 self edge not counted."""
    self_lags = max_lag - 1 if settings.long_self_lags else 0
    return (settings.nodes - 1) * max_lag + self_lags


def _expected_in_degree(settings: Settings, candidates: int, probability: float) -> float:
    """E[min(S + B, cap)] with S ~ Bernoulli(autoregression), B ~ Binomial(candidates, p)."""
    assert settings.max_in_degree is not None
    cap = min(settings.max_in_degree, candidates + 1)

    def expected_up_to(limit: int) -> float:  # E[min(B, limit)] = sum over k of P(B > k)
        levels = np.arange(min(limit, candidates))
        return float(bdtrc(levels, candidates, probability).sum())

    alone, beside_self = expected_up_to(cap), 1 + expected_up_to(cap - 1)
    return alone + settings.autoregression * (beside_self - alone)


def _lagged_parents(
    target: int, settings: Settings, max_lag: int, probability: float, rng: np.random.Generator
) -> list[Parent]:
    has_self = bool(rng.random() < settings.autoregression)
    candidates = [
        Parent(source, lag)
        for source in range(settings.nodes)
        for lag in range(1, max_lag + 1)
        if source != target or (settings.long_self_lags and lag > 1)
    ]
    count = int(rng.binomial(len(candidates), probability))
    if settings.max_in_degree is not None:
        count = min(count, settings.max_in_degree - has_self)
    chosen = rng.permutation(len(candidates))[:count]
    return [Parent(target, 1)] * has_self + sorted(candidates[i] for i in chosen)


def _add_instantaneous(parents: list[list[Parent]], mean: float, rng: np.random.Generator) -> None:
    """Lag-0 edges along a random order, so that they never form a cycle."""
    nodes = len(parents)
    if mean == 0:
        return
    order = rng.permutation(nodes)
    present = rng.random((nodes, nodes)) < 2 * mean / (nodes - 1)
    for later in range(nodes):
        for earlier in range(later):
            if present[later, earlier]:
                parents[order[later]].append(Parent(int(order[earlier]), 0))


def _add_latents(
    parents: list[list[Parent]], settings: Settings, max_lag: int, rng: np.random.Generator
) -> None:
    """Latents have no parent but themselves; each drives at least two observed variables.

    Beyond two, a latent has about as many children as an observed variable has.
    """
    for latent in range(settings.nodes, settings.nodes + settings.latents):
        share = min(1.0, settings.in_degree / settings.nodes)
        count = max(2, int(rng.binomial(settings.nodes, share)))
        for child in rng.choice(settings.nodes, count, replace=False):
            parents[child].append(Parent(latent, int(rng.integers(1, max_lag + 1))))
    for latent in range(settings.nodes, settings.nodes + settings.latents):
        parents.append([Parent(latent, 1)] if settings.latent_autoregression else [])


def _variance_parents(
    parents: list[list[Parent]], settings: Settings, max_lag: int, rng: np.random.Generator
) -> dict[int, Parent]:
    """For some targets, one more observed parent that is not among the others."""
    chosen: dict[int, Parent] = {}
    for target in rng.choice(settings.nodes, settings.variance_edges, replace=False):
        free = [
            Parent(source, lag)
            for source in range(settings.nodes)
            for lag in range(1, max_lag + 1)
            if source != target and Parent(source, lag) not in parents[target]
        ]
        if not free:
            raise InputError(
                f"Variable {target + 1} has every other variable and lag as a parent already, so "
                "no variance edge fits; use a smaller in_degree or a larger max_lag."
            )
        chosen[int(target)] = free[rng.integers(len(free))]
    return chosen

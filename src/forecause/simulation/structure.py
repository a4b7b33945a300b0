"""What can be chosen about a simulated system, and who becomes a parent of whom at which lag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field
from scipy.optimize import brentq
from scipy.special import bdtrc

from forecause.config.spec import Settings
from forecause.errors import InputError
from forecause.simulation.mechanisms import MECHANISMS, NoiseName

MOST_CELLS = 4_000_000_000  # of a table: 32 GB
MOST_CANDIDATES = 500_000_000  # edges of a graph, whose scores are held


Share = Annotated[float, Field(ge=0, le=1)]


class SystemSettings(Settings):
    """What `simulate` was asked for; see there for the meaning of each field."""

    nodes: Annotated[int, Field(ge=1)]
    max_lag: Annotated[int, Field(ge=1)]
    rows: Annotated[int, Field(ge=1)]
    mechanism: str
    seed: Annotated[int, Field(ge=0)]
    in_degree: float
    max_in_degree: Annotated[int, Field(ge=1)] | None
    autoregression: Share
    noise: NoiseName
    noise_variance: float | tuple[float, float]
    latents: Annotated[int, Field(ge=0)]
    latent_autoregression: Annotated[float, Field(ge=0, lt=1)]  # at 1 it grows without bound
    instantaneous: float
    segments: Annotated[int, Field(ge=1)]
    drift: Annotated[float, Field(gt=0, le=1)] | None
    vary_lag: bool
    variance_edges: int

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The forms an edge or target is drawn from."""
        return tuple(name.strip() for name in self.mechanism.split("+"))

    @property
    def variance_range(self) -> tuple[float, float]:
        """Lowest and highest noise variance."""
        if isinstance(self.noise_variance, tuple):
            return self.noise_variance
        return self.noise_variance, self.noise_variance

    def check(self) -> None:
        """Refuse what contradicts itself, or could not be held."""
        for name in self.mechanisms:
            if name not in MECHANISMS:
                raise InputError(
                    f"Unknown mechanism {name!r}; choose from {', '.join(MECHANISMS)}, or join "
                    "several by + for a mixture."
                )
        low, high = self.variance_range
        positive = low > 0 if low == high else low >= 0
        if not (positive and low <= high < float("inf")):
            raise InputError(
                "noise_variance must be a positive number or a range (low, high) with "
                f"0 <= low < high, found {self.noise_variance}."
            )
        _check_sizes(self)
        _check_in_degree(self)
        _check_extras(self)


def _check_sizes(asked: SystemSettings) -> None:
    if asked.rows * (asked.nodes + asked.latents) > MOST_CELLS:
        raise InputError(
            f"{asked.rows:,} rows of {asked.nodes:,} nodes are more than this simulator makes "
            f"({MOST_CELLS:,} numbers); use fewer."
        )
    if asked.nodes**2 * asked.max_lag > MOST_CANDIDATES:
        raise InputError(
            f"{asked.nodes:,} nodes and {asked.max_lag:,} lags are more than this simulator makes "
            f"({MOST_CANDIDATES:,} possible edges); use fewer."
        )
    least = asked.segments * (asked.max_lag + 1)
    if asked.rows < least:
        raise InputError(
            f"{asked.rows} rows are too few for {asked.segments} segment(s) with a largest lag "
            f"of {asked.max_lag}; at least {least} are needed."
        )
    if asked.segments == 1 and (asked.drift is not None or asked.vary_lag):
        raise InputError("drift and vary_lag describe several segments, but segments is 1.")


def _check_in_degree(asked: SystemSettings) -> None:
    if not asked.in_degree >= asked.autoregression:
        raise InputError(
            f"in_degree ({asked.in_degree:g}) counts self edges, so it cannot be below "
            f"autoregression ({asked.autoregression:g}), which alone gives that many parents; "
            "raise the one or lower the other."
        )
    lag = 1 if asked.vary_lag else asked.max_lag
    largest = largest_in_degree(asked, lag)
    if asked.in_degree > largest:
        raise InputError(
            f"in_degree ({asked.in_degree:g}) is above {largest:g}, the most that {asked.nodes} "
            f"nodes, a largest lag of {lag} and max_in_degree={asked.max_in_degree} allow; lower "
            "it, or allow more nodes, lags or parents."
        )


def _check_extras(asked: SystemSettings) -> None:
    if asked.latents and asked.nodes < 2:
        raise InputError("A latent needs two observed children to confound; use 2 nodes or more.")
    if not 0 <= asked.instantaneous <= (asked.nodes - 1) / 2:
        raise InputError(
            "instantaneous is the mean number of lag-0 parents; an acyclic graph of "
            f"{asked.nodes} nodes allows 0 to {(asked.nodes - 1) / 2:g}, found "
            f"{asked.instantaneous}."
        )
    most = asked.nodes if asked.nodes > 1 else 0
    if not 0 <= asked.variance_edges <= most:
        raise InputError(
            f"variance_edges must be within 0 and {most} (one per variable, driven by another "
            f"one), found {asked.variance_edges}."
        )
    if asked.variance_edges and "mlp-concat" in asked.mechanisms:
        raise InputError(
            "variance_edges scale additive noise, which mlp-concat does not have; use another "
            "mechanism or no variance edges."
        )


class Parent(NamedTuple):
    """A source variable and its delay; variables are counted observed first, then latents."""

    source: int
    lag: int


@dataclass(frozen=True)
class Structure:
    """The parents of every variable, observed first, then latents."""

    parents: tuple[tuple[Parent, ...], ...]
    variance_parents: Mapping[int, Parent]  # target -> the parent that drives only its variance


def draw_structure(settings: SystemSettings, max_lag: int, rng: np.random.Generator) -> Structure:
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


def edge_probability(settings: SystemSettings, max_lag: int) -> float:
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


def largest_in_degree(settings: SystemSettings, max_lag: int) -> float:
    """The largest expected in-degree that these nodes, lags and cap allow."""
    candidates = _candidates(settings, max_lag)
    if settings.max_in_degree is None:
        return candidates + settings.autoregression
    return _expected_in_degree(settings, candidates, 1.0)


def _candidates(settings: SystemSettings, max_lag: int) -> int:
    """Possible parents of one target, itself not counted."""
    return (settings.nodes - 1) * max_lag


def _expected_in_degree(settings: SystemSettings, candidates: int, probability: float) -> float:
    """E[min(S + B, cap)] with S ~ Bernoulli(autoregression), B ~ Binomial(candidates, p)."""
    assert settings.max_in_degree is not None
    cap = min(settings.max_in_degree, candidates + 1)

    def expected_up_to(limit: int) -> float:  # E[min(B, limit)] = sum over k of P(B > k)
        levels = np.arange(min(limit, candidates))
        return float(bdtrc(levels, candidates, probability).sum())

    alone, beside_self = expected_up_to(cap), 1 + expected_up_to(cap - 1)
    return alone + settings.autoregression * (beside_self - alone)


def _lagged_parents(
    target: int,
    settings: SystemSettings,
    max_lag: int,
    probability: float,
    rng: np.random.Generator,
) -> list[Parent]:
    has_self = bool(rng.random() < settings.autoregression)
    candidates = [
        Parent(source, lag)
        for source in range(settings.nodes)
        for lag in range(1, max_lag + 1)
        if source != target
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
    parents: list[list[Parent]], settings: SystemSettings, max_lag: int, rng: np.random.Generator
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
    parents: list[list[Parent]], settings: SystemSettings, max_lag: int, rng: np.random.Generator
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

"""Will it work on data like mine? Simulate from what a run learnt, discover again, compare.

The simulated system follows the fitted forecaster along the run's own graph: inputs that are no
edges are held at their mean, so the truth of the simulated data is exactly that graph. A found
graph has no edges that were too weak to be found, so in every repetition half of the edges are
weakened at random; that is how the strength below which edges stay invisible can be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Floats, Index
from forecause.common.bounded import is_whole
from forecause.common.views import card
from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.summary import DataSummary
from forecause.diagnostics.along_graph import BOUND, AlongGraph, Model, simulate_along
from forecause.errors import InputError
from forecause.forecast.comparison import chosen_losses
from forecause.forecast.forecaster import Forecaster
from forecause.graph.axes import by_step
from forecause.graph.lagged import LaggedGraph
from forecause.progress import QUIET, Progress
from forecause.resources.workers import LOCAL, Workers, gather

BINS = (0.0, 0.025, 0.05, 0.1, 0.2, 0.4, np.inf)  # strengths, in sd of effect per sd of cause

# Time and memory:
MOST_REPEATS = 10_000
LOOKED = 256  # simulated windows over which an edge's strength is averaged


@dataclass(frozen=True, eq=False)
class Power:
    """How a run's own edges are recovered from data simulated along them.

    Strength is the root mean square gradient: standard deviations the target moves per standard
    deviation of the cause (the square root of the gradient score). `table` has one row per range
    of strength: from, to, edges (simulated), recovered (share of them), found (edges of that
    strength in the new graphs) and false (share of those).
    """

    windows: int
    repeats: int
    seed: int
    recovered: float | None  # share of the edges at their full strength; None without edges
    false: float | None  # share of the found edges that are not in the graph
    clipped: float  # share of the simulated values held at the bound
    table: pd.DataFrame

    @property
    def sentence(self) -> str:
        """The answer in plain words."""
        tried = self.table[self.table["edges"] > 0]
        start = f"With {self.windows:,} windows of data like this, "
        end = "" if self.false is None else f"; {self.false:.0%} of the edges found are false"
        if self.clipped > 0:
            end += f" ({self.clipped:.2%} of the simulated values were cut off at {BOUND:g} sd)"
        if tried.empty:
            return f"{start}there is no edge to recover{end}."
        hidden = tried[tried["recovered"] < 0.5]
        if hidden.empty:
            return f"{start}{self.recovered:.0%} of the edges are found again{end}."
        limit = float(hidden["to"].max())
        if np.isinf(limit):
            return f"{start}most edges are invisible, even the strongest{end}."
        stronger = tried[tried["from"] >= limit]
        share = (stronger["recovered"] * stronger["edges"]).sum() / max(stronger["edges"].sum(), 1)
        seen = f", and {share:.0%} of the stronger ones are found" if len(stronger) else ""
        return f"{start}edges below strength {limit:g} are mostly invisible{seen}{end}."

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return card("What would be found again, by its strength", [self.sentence], self.table)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an open end and an unknown share are None."""
        cells = self.table.astype(object).where(np.isfinite(self.table.astype(float)), None)
        return {
            "windows": self.windows,
            "repeats": self.repeats,
            "seed": self.seed,
            "recovered": self.recovered,
            "false": self.false,
            "clipped": self.clipped,
            "strengths": cells.to_dict(orient="records"),
            "sentence": self.sentence,
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Power:
        """Back from `to_dict`."""
        table = pd.DataFrame(saved["strengths"])
        table["to"] = table["to"].astype(float).fillna(np.inf)
        table[["recovered", "false"]] = table[["recovered", "false"]].astype(float)
        names = ("windows", "repeats", "seed", "recovered", "false", "clipped")
        return cls(**{name: saved[name] for name in names}, table=table)


@dataclass(frozen=True, eq=False)
class Learned:
    """What a run learned, as far as it can be simulated from."""

    graph: LaggedGraph
    forecaster: Forecaster
    data: DataSummary
    noise: Array  # (variable,) standard deviation of what the forecaster leaves unexplained


class Rediscover(Protocol):
    """Runs the whole method on other data; to reach other processes, importable by name."""

    def __call__(self, panel: Panel, seed: int, progress: Progress = QUIET) -> Learned: ...


def measure_power(
    learned: Learned,
    rediscover: Rediscover,
    *,
    seed: int = 0,
    repeats: int = 1,
    progress: Progress = QUIET,
    workers: Workers = LOCAL,
) -> Power:
    """Simulate as many windows as the run had, rediscover, and compare.

    `workers` do the repetitions.
    """
    if not is_whole(repeats) or not 1 <= repeats <= MOST_REPEATS:
        raise InputError(
            f"The number of repetitions must lie between 1 and {MOST_REPEATS}, "
            f"found {repeats!r:.40}."
        )
    seeds = [[seed, number] for number in range(repeats)]
    runs = _repetitions(learned, rediscover, seeds, progress, workers)
    table, clipped = pd.concat([run for run, _ in runs]), np.mean([share for _, share in runs])
    full = table[table["true"] & table["full"]]
    chosen = table[table["chosen"]]
    return Power(
        windows=learned.data.windows,
        repeats=repeats,
        seed=seed,
        recovered=float(full["chosen"].mean()) if len(full) else None,
        false=float((~chosen["true"]).mean()) if len(chosen) else None,
        clipped=float(clipped),
        table=_by_strength(table),
    )


def _repetitions(
    learned: Learned,
    rediscover: Rediscover,
    seeds: list[list[int]],
    progress: Progress,
    workers: Workers,
) -> list[tuple[pd.DataFrame, float]]:
    """One for each seed, in their order."""
    if workers.here:
        return gather(partial(_repeat, learned, rediscover, progress=progress), seeds)

    def done(count: int) -> None:
        progress.step("measuring the power", count / len(seeds))

    done(0)
    return gather(partial(_repeat, learned, rediscover), seeds, workers, done)


def _repeat(
    learned: Learned, rediscover: Rediscover, seed: list[int], progress: Progress = QUIET
) -> tuple[pd.DataFrame, float]:
    """One simulation and rediscovery: every candidate, and the share of clipped values.

    Columns: true, full (not weakened), chosen, strength (of a false edge: as it was read).
    """
    rng = np.random.default_rng(seed)
    systems = [_Simulation(learned, part, rng) for part in _parts(learned)]
    chains = [_with_levels(learned.data, chain) for system in systems for chain in system.series]
    panel = replace(
        Panel.from_arrays(chains, learned.data.columns), labels=tuple(learned.data.labels)
    )
    domains = learned.graph.domains
    if domains:  # found regimes are known from now on
        rows = [system.series[..., 0].size for system in systems]
        panel = panel.with_domain(np.repeat(np.arange(len(rows)), rows), list(domains))
    again = rediscover(panel, int(rng.integers(2**31)), progress)
    tables = [
        system.compared(again, view, panel, rng)
        for system, view in zip(systems, _parts(again, domains), strict=True)
    ]
    return pd.concat(tables), float(np.mean([system.clipped for system in systems]))


@dataclass(frozen=True)
class _Part:
    """A graph, the forecaster as it forecasts where that graph holds, and the windows there."""

    graph: LaggedGraph
    model: Model
    windows: int


def _parts(learned: Learned, wanted: Iterable[str] = ()) -> list[_Part]:
    """The whole run, or its domains: all that have a graph, or those that are wanted."""
    forecaster, data = learned.forecaster, learned.data
    names = list(wanted) or list(learned.graph.domains)
    if not names:
        return [_Part(learned.graph, Model(forecaster), data.windows)]
    nothing = LaggedGraph.from_edges(data.variables, learned.graph.max_lag, [])
    codes = {name: code for code, name in enumerate(data.domain_windows)}
    return [
        _Part(
            learned.graph.domains.get(name, nothing),
            Model(forecaster, codes[name]),
            data.domain_windows[name],
        )
        for name in names
    ]


class _Simulation:
    """Data simulated along one graph, and how much of it a new run finds."""

    def __init__(self, learned: Learned, part: _Part, rng: np.random.Generator) -> None:
        self.factor = edge_factors(part.graph, rng)
        self.learned = learned.data
        self.system = AlongGraph(part.model, _weight(self.factor, learned.data.coding.of_column))
        self.series, self.clipped = simulate_along(self.system, learned.noise, part.windows, rng)

    def compared(
        self, again: Learned, view: _Part, panel: Panel, rng: np.random.Generator
    ) -> pd.DataFrame:
        """Every candidate: whether it is true, at full strength and chosen, and its strength."""
        mean, sd = again.data.mean, again.data.sd
        coding = again.data.coding
        unit = np.array([1.0 if s.stop - s.start > 1 else sd[s.start] for s in coding.slices])
        to_own_units = unit[None, :, None] / unit[:, None, None]  # of cause / of effect
        steps = self.system.steps
        every = np.lib.stride_tricks.sliding_window_view(self.series, steps, axis=1)
        past = every.reshape(-1, *every.shape[2:]).transpose(0, 2, 1)  # (window, step, variable)
        looked = past[rng.choice(len(past), min(LOOKED, len(past)), replace=False)]
        true = self.factor > 0
        read = AlongGraph(view.model, np.ones_like(self.system.weight))
        standard = ((_with_levels(self.learned, looked) - mean) / sd).astype(np.float32)
        own = self.system.strengths(looked) * to_own_units
        columns = {
            "true": true,
            "full": self.factor == 1,
            "chosen": view.graph.adjacency.sel(lag=slice(1, None)).values,
            "strength": np.where(true, own, read.strengths(standard)),
        }
        return pd.DataFrame({name: values.ravel() for name, values in columns.items()})


def edge_factors(graph: LaggedGraph, rng: np.random.Generator) -> Array:
    """What each input is multiplied by, (target, source, lag): 0 where there is no edge, 1 for
    half of the edges, and for the others a factor drawn evenly on a logarithmic scale."""
    edges = graph.adjacency.sel(lag=slice(1, None)).values
    weakened = np.exp(rng.uniform(np.log(thresholds().diagnosis.weakest_simulated), 0, edges.shape))
    places = rng.permutation(np.flatnonzero(edges))
    keep = np.zeros(edges.size, dtype=bool)
    keep[places[: (len(places) + 1) // 2]] = True
    return np.where(edges, np.where(keep.reshape(edges.shape), 1.0, weakened), 0.0)


def noise_sd(losses: pd.DataFrame) -> Array:
    """Standard deviation of each variable's noise: the root of its held-out loss."""
    return np.sqrt(np.maximum(chosen_losses(losses).to_numpy(), 1e-6))


def _weight(factor: Array, owner: Index) -> Floats:
    """What a forecaster's inputs (target, step, source) of columns are multiplied by."""
    return by_step(factor[owner][:, owner].astype(np.float32))


def _with_levels(data: DataSummary, values: Floats) -> Floats:
    """Simulated values (..., column), in which the columns of labels are 0 or 1."""
    found = values.copy()
    for label in data.labels:
        own = label.columns
        found[..., own] = np.round(values[..., own] * data.sd[own] + data.mean[own])
    return found


def _by_strength(table: pd.DataFrame) -> pd.DataFrame:
    """Shares of recovered and of false edges per range of strength."""
    rows = []
    for low, high in pairwise(BINS):
        part = table[(table["strength"] >= low) & (table["strength"] < high)]
        true, chosen = part[part["true"]], part[part["chosen"]]
        rows.append(
            {
                "from": low,
                "to": high,
                "edges": len(true),
                "recovered": float(true["chosen"].mean()) if len(true) else np.nan,
                "found": len(chosen),
                "false": float((~chosen["true"]).mean()) if len(chosen) else np.nan,
            }
        )
    return pd.DataFrame(rows)

"""simulate: draw a system with a known graph and record one series of it, with its truth."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.common.files import whole_file
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause.simulation.mechanisms import Noise, draw_noise
from forecause.simulation.structure import SystemSettings, draw_structure, rewired
from forecause.simulation.system import System, draw_mechanisms

if TYPE_CHECKING:
    from forecause.data.panel import Panel

Array = npt.NDArray[np.float64]

DRAWS = 20  # systems tried before giving up on one that stays within bounds
BOUND = 1_000.0  # an explosion: a value beyond this, in noise standard deviations if above 1


@dataclass(frozen=True, eq=False)
class Simulated:
    """One continuous series of a system whose graph is known."""

    values: npt.NDArray[np.float64]  # (row, observed variable)
    graph: LaggedGraph  # over observed variables; one graph per segment in `domains`
    noise_sd: npt.NDArray[np.float64]  # (observed variable,), before any network or scaling
    noise_kinds: tuple[str, ...]  # one per observed variable
    domain: npt.NDArray[np.int64] | None = None  # (row,) index of the segment, if several
    systems: tuple[System, ...] = ()  # one per segment, with latents and mechanisms

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the observed variables, the columns of `values`."""
        return self.graph.variables

    @property
    def confounded(self) -> tuple[tuple[str, str], ...]:
        """Pairs of observed variables that share a latent parent in some segment."""
        pairs: set[tuple[str, str]] = set()
        for system in self.systems:
            hidden = system.edges[system.edges["source"].isin(system.latents)]
            for _, children in hidden[hidden["target"].isin(system.observed)].groupby("source"):
                in_order = sorted(children["target"], key=system.observed.index)
                pairs.update(combinations(in_order, 2))
        return tuple(sorted(pairs))

    @property
    def panel(self) -> Panel:
        """The data as a panel of one series, with the segments as its domains."""
        from forecause.data.panel import Panel

        rows = len(self.values)
        return Panel(
            values=self.values,
            variables=self.variables,
            starts=np.zeros(1, dtype=np.int64),
            series=np.zeros(rows, dtype=np.int64),
            domain=self.domain,
            domain_names=tuple(self.graph.domains),
        )

    def frame(self) -> pd.DataFrame:
        """The data as a table, with the segment's name in the column `domain` if several."""
        table = pd.DataFrame(self.values, columns=list(self.variables))
        if self.domain is not None:
            table["domain"] = np.array(list(self.graph.domains), dtype=object)[self.domain]
        return table

    def save(self, folder: str | Path) -> None:
        """Write `data.csv` and the truth `graph.json` into a folder, made if needed."""
        folder = Path(folder)
        new = not folder.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with whole_file(folder / "data.csv") as file:
                self.frame().to_csv(file, index=False, lineterminator="\n")
        except OSError as problem:
            if new:  # nothing is left behind
                with suppress(OSError):
                    folder.rmdir()
            raise InputError(f"Cannot write into {str(folder)!r}: {problem.strerror}.") from None
        self.graph.to_json(folder / "graph.json")


def simulate(
    *,
    nodes: int = 10,
    max_lag: int = 5,
    rows: int = 10_000,
    mechanism: str = "linear",
    seed: int = 0,
    in_degree: float = 3.0,
    max_in_degree: int | None = None,
    autoregression: float = 0.3,
    noise: str = "gaussian",
    noise_variance: float | tuple[float, float] = 1.0,
    latents: int = 0,
    latent_autoregression: float = 0.0,
    instantaneous: float = 0.0,
    segments: int = 1,
    drift: float | None = None,
    vary_lag: bool = False,
    variance_edges: int = 0,
) -> Simulated:
    """Simulate one continuous series of a random structural system, with its true graph.

    Parameters
    ----------
    mechanism
        `linear`, piecewise-linear, monotonic, trigonometric, mlp-add, mlp-concat, or a
        mixture joined by `+`, drawn per edge (per target if it holds an mlp form).
    in_degree, max_in_degree
        Expected number of lagged parents of a variable, self edges counted,
        and the most it may have. The edge probability is set so that the expectation holds under
        the cap; with both equal, every variable has exactly that many parents.
    autoregression
        Probability of a lag-1 self edge.
    noise
        `gaussian`, laplace, student-t, uniform, or mixed (one kind per variable).
    noise_variance
        One variance for all, or a range from which each variable draws its own.
    latents
        Hidden variables with at least two observed children each, whose edges come on top
        of in_degree; latent_autoregression is their lag-1 coefficient, their variance is kept.
    instantaneous
        Mean number of lag-0 parents (acyclic), on top of in_degree.
    segments
        Stretches of equal length with a graph each, fresh ones, or with drift the last one
        with that share of its edges rewired; vary_lag gives each its own largest lag up to
        max_lag. The state carries over, and the top-level graph is the union of all.
    variance_edges
        Targets with one more parent that drives only the variance of their noise.

    Examples
    --------
    >>> import forecause as fc
    >>> system = fc.simulate(nodes=4, max_lag=2, rows=100, mechanism="linear", seed=0)
    >>> system.frame().shape, system.graph.max_lag
    ((100, 4), 2)
    """
    settings = SystemSettings.checked(**locals())
    settings.check()
    for draw in range(DRAWS):
        simulated = _simulate_once(settings, np.random.SeedSequence([seed, draw]))
        if simulated is not None:
            return simulated
    raise InputError(
        f"All {DRAWS} {mechanism} systems drawn with seed {seed} exploded: expected values within "
        f"{BOUND:g} noise standard deviations; use fewer nodes, another seed or another mechanism."
    )


def _simulate_once(settings: SystemSettings, seed: np.random.SeedSequence) -> Simulated | None:
    """Draw one system and run it; None if it explodes."""
    for_structure, for_mechanisms, for_noise = seed.spawn(3)
    systems = _draw_systems(
        settings, np.random.default_rng(for_structure), np.random.default_rng(for_mechanisms)
    )
    variables = settings.nodes + settings.latents
    noise = draw_noise(settings.noise, settings.variance_range, variables, for_noise)
    # An autocorrelated latent keeps its variance: that of its noise shrinks by 1 - a^2.
    shrink = np.ones(variables)
    shrink[settings.nodes :] = np.sqrt(1 - settings.latent_autoregression**2)
    noise = replace(noise, sd=noise.sd * shrink)
    values = _run(systems, noise, settings.rows)
    if values is None:
        return None
    return Simulated(
        values=np.ascontiguousarray(values[:, : settings.nodes]),
        graph=_truth(systems),
        noise_sd=noise.sd[: settings.nodes],
        noise_kinds=noise.kinds[: settings.nodes],
        domain=_segment_of_row(settings.rows, settings.segments) if len(systems) > 1 else None,
        systems=systems,
    )


def _draw_systems(
    settings: SystemSettings, structure_rng: np.random.Generator, mechanism_rng: np.random.Generator
) -> tuple[System, ...]:
    """One system per segment. An edge that drifts elsewhere keeps its function."""
    systems: list[System] = []
    for _ in range(settings.segments):
        lag = settings.max_lag
        if settings.vary_lag:
            lag = int(structure_rng.integers(1, settings.max_lag + 1))
        if systems and settings.drift is not None:
            moved = rewired(
                systems[-1].structure, settings.nodes, lag, settings.drift, structure_rng
            )
            systems.append(replace(systems[-1], structure=moved))
            continue
        structure = draw_structure(settings, lag, structure_rng)
        mechanisms = draw_mechanisms(
            structure,
            settings.nodes,
            settings.mechanisms,
            settings.latent_autoregression,
            mechanism_rng,
        )
        observed = tuple(f"X{i + 1}" for i in range(settings.nodes))
        hidden = tuple(f"U{i + 1}" for i in range(settings.latents))
        systems.append(System(observed, hidden, settings.max_lag, structure, mechanisms))
    return tuple(systems)


def _run(systems: Sequence[System], noise: Noise, rows: int) -> Array | None:
    """Burn in, then run the segments one after the other, the state carried over."""
    max_lag = systems[0].max_lag
    burn_in = 500 + 20 * max_lag
    drawn = noise.draw(max_lag + burn_in + rows)
    limit = BOUND * max(1.0, float(noise.sd.max()))
    ends = max_lag + burn_in + _segment_ends(rows, len(systems))
    past, start = drawn[:max_lag], max_lag
    parts: list[Array] = []
    for system, end in zip(systems, ends, strict=True):
        part = system.run(past, drawn[start:end], limit)
        if part is None:
            return None
        parts.append(part)
        past, start = np.concatenate([past, part[-max_lag:]])[-max_lag:], end
    return np.concatenate(parts)[burn_in:]


def _segment_ends(rows: int, segments: int) -> npt.NDArray[np.int64]:
    """The row after each segment's last; lengths differ by at most one row."""
    return np.arange(1, segments + 1, dtype=np.int64) * rows // segments


def _segment_of_row(rows: int, segments: int) -> npt.NDArray[np.int64]:
    return np.searchsorted(_segment_ends(rows, segments), np.arange(rows), side="right")


def _truth(systems: Sequence[System]) -> LaggedGraph:
    """The graph of the only segment, or the union of all with one graph per segment."""
    graphs = [system.graph for system in systems]
    if len(graphs) == 1:
        return graphs[0]
    together = pd.concat([graph.edges for graph in graphs]).sort_values(
        "score", ascending=False, kind="stable"
    )
    return replace(
        graphs[0],
        edges=together.drop_duplicates(["source", "target", "lag"]),
        domains={f"segment {i + 1}": graph for i, graph in enumerate(graphs)},
    )

"""Which systems the published models are fitted to, ordered by what a reader asks first.

One fit serves every table that can use it: `linear` is the base column of most of the paper's
tables, and all readouts, rules and values of k are read from the same fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from forecause_bench.suite import BASE

ROWS = 50_000
SEEDS = 3
LOW_DRIFT = 0.2  # share of the edges that move from one segment to the next
DEEP, SHALLOW = 4, 1  # layers
TRANSFORMER, CNN = "transformer", "cnn"

EXTREME: dict[str, Any] = {"mechanism": "monotonic", "vary_lag": True}
UNNAMED: dict[str, Any] = {"mechanism": "piecewise-linear+monotonic"}

SYSTEMS: dict[str, Mapping[str, Any]] = {
    "linear": {},
    "monotonic": {"mechanism": "monotonic"},
    "piecewise-monotonic": UNNAMED,
    "mlp-add": {"mechanism": "mlp-add"},
    "mlp-concat": {"mechanism": "mlp-concat"},
    "noise-uniform": {"noise": "uniform"},
    "noise-mixed": {"noise": "mixed"},
    "noise-small": {"noise_variance": (0.5, 5.0)},
    "noise-large": {"noise_variance": (0.0, 10.0)},
    **{f"hidden-{count}": {"hidden": count} for count in (3, 5, 10)},
    **{f"regular-{count}": {"segments": count} for count in (2, 5, 10)},
    **{f"extreme-{count}": {"segments": count, **EXTREME} for count in (2, 5, 10)},
    "nodes-25": {"nodes": 25},
    "nodes-25-nonlinear": {"nodes": 25, **UNNAMED},
    "nodes-50": {"nodes": 50},
    "nodes-100": {"nodes": 100},
    "lag-10": {"max_lag": 10},
    "lag-25": {"max_lag": 25},
    "lag-50": {"max_lag": 50},
    "regular-5-drift": {"segments": 5, "drift": LOW_DRIFT},
    "extreme-5-drift": {"segments": 5, "drift": LOW_DRIFT, **EXTREME},
    "instantaneous-1": {"instantaneous": 1.0},
}
"""Settings of every system besides BASE; `hidden` counts variables that are not recorded."""


@dataclass(frozen=True)
class Fit:
    """One training of a published model: the transformer, or the convolutions in its place."""

    system: str
    seed: int = 0
    rows: int = ROWS
    layers: int = DEEP
    told_segment: bool = False  # the number of the segment is an input
    network: str = TRANSFORMER

    @property
    def name(self) -> str:
        """The name of its file in the store."""
        parts = [self.system, f"{self.rows // 1000}k"]
        parts += [self.network] if self.network != TRANSFORMER else []
        parts += [f"{self.layers}-layer"] if self.layers != DEEP else []
        parts += ["told-segment"] if self.told_segment else []
        return "_".join([*parts, f"seed{self.seed}"])

    @property
    def settings(self) -> dict[str, Any]:
        """Those of its system, rows and seed left out."""
        return {**BASE, **SYSTEMS[self.system]}

    @property
    def inputs(self) -> int:
        """Variables times lags."""
        return int(self.settings["nodes"] * self.settings["max_lag"])


NONLINEARITY = ("linear", "monotonic", "piecewise-monotonic", "mlp-add", "mlp-concat")
NOISE = ("noise-uniform", "noise-mixed", "noise-small", "noise-large")
HIDDEN = ("hidden-3", "hidden-5", "hidden-10")
TWO_SEGMENTS = ("regular-2", "extreme-2")
MORE_SEGMENTS = ("regular-5", "extreme-5", "regular-10", "extreme-10")
WIDE = ("nodes-25", "nodes-25-nonlinear", "lag-10")
TOLD = ("regular-5", "extreme-5")
ONE_LAYER = ("linear", "monotonic", "mlp-concat", "regular-2")
BY_DEPTH = ("linear", "mlp-concat")  # with two and three layers too


def in_order() -> Iterator[Fit]:
    """Every fit of the study, the ones that are asked for first at the start."""
    first = (*NONLINEARITY, *NOISE, *HIDDEN, *TWO_SEGMENTS)
    every = list(range(SEEDS))
    yield from _all(first, every)
    yield from _all(("regular-5", "extreme-5"), every)
    yield from (replace(fit, layers=SHALLOW) for fit in _all(ONE_LAYER, every))
    yield from (replace(fit, network=CNN) for fit in _all(NONLINEARITY, every))  # a minute each
    yield from (Fit(system, layers=layers) for system in BY_DEPTH for layers in (2, 3))
    yield from (replace(fit, told_segment=True) for fit in _all(TOLD, every))
    yield from _all(("lag-10", "nodes-25-nonlinear", "instantaneous-1"), [0])
    yield from _all((*MORE_SEGMENTS[2:], "nodes-25", "regular-5-drift", "extreme-5-drift"), [0])
    yield from _all(("lag-25",), [0])
    yield from _all((*MORE_SEGMENTS[2:], *WIDE), [1, 2])
    yield from _all(("regular-5-drift", "extreme-5-drift", "instantaneous-1", "lag-25"), [1, 2])
    yield from (Fit(system, rows=100_000) for system in (*NONLINEARITY, *TWO_SEGMENTS))
    yield from (Fit(system) for system in ("nodes-50", "lag-50", "nodes-100"))
    yield from (Fit(system, rows=1_000_000) for system in (*NONLINEARITY, *TWO_SEGMENTS))


def _all(systems: tuple[str, ...], seeds: list[int]) -> Iterator[Fit]:
    for seed in seeds:
        for system in systems:
            yield Fit(system, seed)

"""What changed: `forecause bench changes`, power and false alarms of `run.changed`.

Linear systems of 10 variables and two lags, 500 rows before and 500 after. Of each system a pair of
equal periods, also with noise of three times the variance afterwards and with noise whose size
depends on the state; and a pair in which one link vanished, one changed its sign and one is new.
Beside it: the difference of the graphs of the two periods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.method import discover

FIRST_SEED = 45_000
ROWS = (500,)  # of each period
SEEDS = 40
NODES, LAGS, LINKS = 10, 2, 12
EQUAL = ("equal", "noise times 3", "state-dependent noise")
CHANGED = ("vanished", "sign", "appeared")

Array = npt.NDArray[np.float64]
Edge = tuple[str, str, int]


def measure(first_seed: int, seeds: int, rows: Sequence[int], _data: Any) -> Iterator[pd.DataFrame]:
    """A line for every pair of periods and rule."""
    for seed in range(first_seed, first_seed + seeds):
        for count in rows:
            lines = [line for kind in (*EQUAL, "changed") for line in of_pair(seed, count, kind)]
            yield pd.DataFrame(lines).assign(seed=seed, rows=count)


def of_pair(seed: int, rows: int, kind: str) -> list[dict[str, Any]]:
    """What is found to have changed between two periods of one system."""
    rng = np.random.default_rng([seed, (*EQUAL, "changed").index(kind)])
    weights, links = drawn(np.random.default_rng([seed, 9]))
    after, truth = weights.copy(), dict[Edge, str]()
    if kind == "changed":
        for what, place in zip(CHANGED[:2], rng.choice(len(links), 2, replace=False), strict=True):
            lag, target, source = links[place]
            after[lag, target, source] *= -1.0 if what == "sign" else 0.0
            truth[f"x{source}", f"x{target}", lag + 1] = what
        free = np.argwhere(((weights != 0).sum(0) == 0) & ~np.eye(NODES, dtype=bool))
        target, source = free[rng.integers(len(free))].tolist()
        after[0, target, source] = 0.35 * rng.choice([-1, 1])
        truth[f"x{source}", f"x{target}", 1] = CHANGED[2]
    louder = np.sqrt(3.0) if kind == EQUAL[1] else 1.0
    depends = kind == EQUAL[2]
    before = simulated(weights, rows, rng, depends)
    values = np.concatenate([before, simulated(after, rows, rng, depends, louder, before[-LAGS:])])
    frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(NODES)])
    run = discover(frame, LAGS, forecaster="linear", season="none", seed=seed)
    told = run.changed((0, rows - 1), (rows, 2 * rows - 1))
    found = set(told.links[["source", "target", "lag"]].itertuples(index=False, name=None))
    parts = (frame.iloc[:rows], frame.iloc[rows:])
    graphs = [discover(p, LAGS, forecaster="linear", season="none", seed=seed).graph for p in parts]
    one, other = (
        set(g.edges[["source", "target", "lag"]].itertuples(index=False, name=None)) for g in graphs
    )
    rules = {"Forecause": found, "difference of two graphs": one ^ other}
    return [{"kind": kind, "rule": rule} | _scored(got, truth) for rule, got in rules.items()]


def _scored(found: set[Any], truth: dict[Edge, str]) -> dict[str, float]:
    hits = {what: float(edge in found) for edge, what in truth.items()}
    wrong = len(found - truth.keys())
    return hits | {"any false": float(wrong > 0), "false": float(wrong)}


def drawn(rng: np.random.Generator) -> tuple[Array, list[tuple[int, int, int]]]:
    """Weights (lag - 1, target, source) of a stable system, and its links between variables."""
    weights = np.zeros((LAGS, NODES, NODES))
    weights[0, np.arange(NODES), np.arange(NODES)] = rng.uniform(0.2, 0.5, NODES)
    order, links = rng.permutation(NODES), list[tuple[int, int, int]]()
    pairs = [(a, b) for b in range(NODES) for a in range(b)]
    for place in rng.choice(len(pairs), LINKS, replace=False):
        source, target = (int(order[i]) for i in pairs[place])
        lag = int(rng.integers(LAGS))
        weights[lag, target, source] = rng.uniform(0.25, 0.5) * rng.choice([-1, 1])
        links.append((lag, target, source))
    return weights, links


def simulated(
    weights: Array,
    rows: int,
    rng: np.random.Generator,
    depends: bool = False,
    louder: float = 1.0,
    past: Array | None = None,
) -> Array:
    """Rows (row, variable) of a system; with `depends` the noise grows with the last values."""
    burn = 100 if past is None else 0
    values = np.zeros((LAGS + burn + rows, NODES))
    if past is not None:
        values[:LAGS] = past
    noise = louder * rng.standard_normal(values.shape)
    for row in range(LAGS, len(values)):
        size = np.sqrt(0.5 + 0.4 * np.minimum(values[row - 1] ** 2, 9.0)) if depends else 1.0
        values[row] = noise[row] * size
        for lag in range(1, LAGS + 1):
            values[row] += weights[lag - 1] @ values[row - lag]
    return values[LAGS + burn :]


def summary(found: pd.DataFrame) -> list[pd.DataFrame]:
    """Power per kind of change, and false alarms per kind of pair."""
    equal = found[found["kind"] != "changed"]
    keys = ["kind", "rule"]
    alarms = equal.groupby(keys, sort=False)[["any false", "false"]].mean().reset_index()
    pairs = equal.groupby(keys, sort=False).size().to_numpy()
    power = found[found["kind"] == "changed"].groupby("rule", sort=False)[list(CHANGED)].mean()
    return [power.reset_index(), alarms.assign(pairs=pairs)]

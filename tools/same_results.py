"""Graphs of ten simulated systems, written as JSON: run before and after a change, then compare.

    python tools/same_results.py write before.json
    python tools/same_results.py compare before.json

Every mechanism, domains, labels and a preset each; edges, scores and effects are compared bit for
bit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import forecause as fc

ROWS = 900


def simulated(mechanism: str, seed: int, rows: int = ROWS) -> pd.DataFrame:
    """A table of five variables from the package's simulator."""
    from typer.testing import CliRunner

    from forecause.cli import app

    folder = Path(".same-results") / f"{mechanism}-{seed}"
    asked = ["simulate", "--nodes", "5", "--max-lag", "2", "--rows", str(rows)]
    asked += ["--mechanism", mechanism, "--seed", str(seed), "--out", str(folder)]
    answer = CliRunner().invoke(app, asked)
    assert answer.exit_code == 0, answer.output
    return pd.read_csv(folder / "data.csv")


def with_domain() -> pd.DataFrame:
    """Two systems one after the other, told apart by a column."""
    parts = [simulated("linear", seed).assign(place=f"place{seed}") for seed in (11, 12)]
    return pd.concat(parts, ignore_index=True)


def with_labels() -> pd.DataFrame:
    """A label of three levels that drives a number."""
    rng = np.random.default_rng(5)
    level = rng.integers(0, 3, ROWS)
    number = np.zeros(ROWS)
    for t in range(1, ROWS):
        number[t] = 0.4 * number[t - 1] + (level[t - 1] == 2) - 0.5 * (level[t - 1] == 1)
        number[t] += rng.normal()
    return pd.DataFrame({"level": np.array(list("abc"))[level], "number": number})


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "linear, default": (lambda: simulated("linear", 1), {}),
    "monotonic, quick": (lambda: simulated("monotonic", 2), {"preset": "quick"}),
    "piecewise linear, additive": (
        lambda: simulated("piecewise-linear", 3),
        {"forecaster": "additive", "readout": "lrp"},
    ),
    "trigonometric, mlp": (
        lambda: simulated("trigonometric", 4),
        {"forecaster": "mlp", "head": "gaussian", "preset": "quick"},
    ),
    "mlp-add, transformer": (
        lambda: simulated("mlp-add", 5),
        {"forecaster": "transformer", "preset": "quick"},
    ),
    "mlp-concat, cross-fitted": (
        lambda: simulated("mlp-concat", 6),
        {"forecaster": "linear", "cross_fit": 3},
    ),
    "domains": (with_domain, {"domain": "place", "preset": "quick"}),
    "labels": (with_labels, {"labels": ["level"], "preset": "quick"}),
    "sparse": (
        lambda: simulated("linear", 7, 200),
        {"preset": "sparse", "forecaster": "cnn", "select": "top-k", "k": 2},
    ),
    "regimes and knowledge": (
        lambda: pd.concat([simulated("linear", s) for s in (8, 9)], ignore_index=True),
        {"regimes": 2, "forecaster": "linear", "forbid": ["X1 -> X2"]},
    ),
}


def answers() -> dict[str, Any]:
    """The graph of every case, as its JSON."""
    torch.set_num_threads(1)
    found = {}
    for name, (table, settings) in CASES.items():
        run = fc.discover(table(), max_lag=2, config=fc.Config.of(**settings))
        path = Path(".same-results") / "graph.json"
        run.graph.to_json(path)
        found[name] = json.loads(path.read_text(encoding="utf-8"))
        sys.stderr.write(f"{name}: {len(run.graph)} edges\n")
    return found


def edges_of(graph: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Edges with score and effect; what else is told of an edge may grow with versions."""
    names = ("source", "target", "lag", "score", "effect")
    return [tuple(edge.get(name) for name in names) for edge in graph["edges"]]


def main(command: str, path: str) -> int:
    """Write the answers, or compare them with written ones."""
    found = answers()
    if command == "write":
        Path(path).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return 0
    before = json.loads(Path(path).read_text(encoding="utf-8"))
    differing = [name for name in CASES if edges_of(before[name]) != edges_of(found[name])]
    sys.stdout.write(f"{len(CASES) - len(differing)} of {len(CASES)} graphs are equal.\n")
    for name in differing:
        sys.stdout.write(f"differs: {name}\n")
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))

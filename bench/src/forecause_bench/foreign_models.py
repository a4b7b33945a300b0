"""The tested drivers of somebody else's model, on systems that trees can learn and lines cannot.

    python -m forecause_bench.foreign_models bench-foreign --seeds 10

Each system has six variables; three of them are driven by the signs or steps of two others.
Gradient boosting of scikit-learn is handed to `fc.drivers`, a ridge regression beside it. Its
importances are read in two ways: as many as the truth has (which nobody knows), and those above a
uniform share.
The folder keeps `results.csv` and `table.md`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.errors import ForecauseWarning
from forecause.foreign_drivers import drivers
from forecause_bench.questions import markdown
from forecause_bench.run import describe_machine

FIRST_SEED = 700
VARIABLES, DRIVEN, MAX_LAG = 6, 3, 2
NOISE = 0.6
ROWS = (600, 1_200, 2_400)
KEY = ["source", "target", "lag"]

Array = npt.NDArray[np.float64]
Edges = set[tuple[str, str, int]]
Rule = Callable[[Array, Array], Array]


def same_sign(a: Array, b: Array) -> Array:
    """1 where both have one sign, else -1."""
    return np.asarray(np.sign(a) * np.sign(b))


def both_high(a: Array, b: Array) -> Array:
    """Raised where both are above their thresholds."""
    return np.asarray(2.5 * ((a > 0.2) & (b > -0.3)))


def step_and_box(a: Array, b: Array) -> Array:
    """A step of one and a box of the other."""
    return np.asarray(1.2 * (a > 0.4) + 1.2 * (np.abs(b) < 0.6))


RULES: tuple[Rule, ...] = (same_sign, both_high, step_and_box)


def stairs(rows: int, seed: int) -> tuple[pd.DataFrame, Edges]:
    """A table and its true edges: each rule drives one variable from two others."""
    rng = np.random.default_rng(seed)
    values, names = rng.normal(size=(rows + MAX_LAG, VARIABLES)), list("abcdef")
    order, truth = rng.permutation(VARIABLES), set()
    for place, rule in zip(range(VARIABLES - DRIVEN, VARIABLES), RULES, strict=True):
        target = order[place]
        sources, lags = rng.choice(order[:place], 2, replace=False), rng.integers(1, MAX_LAG + 1, 2)
        past = [
            values[MAX_LAG - lag : len(values) - lag, s]
            for s, lag in zip(sources, lags, strict=True)
        ]
        values[MAX_LAG:, target] = NOISE * values[MAX_LAG:, target] + rule(*past)
        truth |= {(names[s], names[target], int(lag)) for s, lag in zip(sources, lags, strict=True)}
    return pd.DataFrame(values[MAX_LAG:], columns=names), truth


def measure(seeds: int) -> Iterator[dict[str, Any]]:
    """A line for every system, number of rows and way to read a model."""
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.linear_model import Ridge

    models = {"boosting": GradientBoostingRegressor(max_depth=3, random_state=0), "ridge": Ridge()}
    for rows in ROWS:
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            table, truth = stairs(rows, seed)
            for name, model in models.items():
                found = drivers(model, table, max_lag=MAX_LAG)
                about = {"rows": rows, "seed": seed}
                tested = _edges(found.table[found.table["is_driver"]])
                yield about | {"model": f"{name}, tested"} | scores(tested, truth)
                if found.table["importance"].notna().any():
                    top = found.table.nlargest(len(truth), "importance")
                    above = found.table[found.table["importance"] > 1 / (VARIABLES * MAX_LAG)]
                    for how, chosen in (("top (oracle)", top), ("above uniform", above)):
                        label = f"{name}, importances {how}"
                        yield about | {"model": label} | scores(_edges(chosen), truth)


def _edges(table: pd.DataFrame) -> Edges:
    return {(str(a), str(b), int(c)) for a, b, c in table[KEY].itertuples(index=False)}


def scores(found: Edges, truth: Edges) -> dict[str, float]:
    """F1, recall and the share of false edges."""
    hits = len(found & truth)
    return {
        "F1": 2 * hits / (len(found) + len(truth)),
        "recall": hits / len(truth),
        "false": 1 - hits / len(found) if found else 0.0,
    }


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m forecause_bench.foreign_models")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ForecauseWarning)
    lines = pd.DataFrame(measure(asked.seeds))
    lines.to_csv(asked.folder / "results.csv", index=False)
    means = lines.groupby(["rows", "model"], sort=False)[["F1", "recall", "false"]].mean()
    text = [
        "# Tested drivers of a foreign model, where only trees can learn",
        "",
        f"- Command: python -m forecause_bench.foreign_models FOLDER --seeds {asked.seeds}",
        f"- Machine: {describe_machine()}",
        "",
        f"Means over {asked.seeds} systems of six variables, six true links, none to the own past. "
        "Importances above uniform are larger than if all inputs mattered alike; the "
        "top ones are as many as there are true links, which only an oracle knows.",
        "",
        *markdown(means.reset_index()),
    ]
    (asked.folder / "table.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

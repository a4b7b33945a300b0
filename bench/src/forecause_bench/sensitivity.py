"""What every threshold does: each is halved and doubled, alone, on tables of many kinds.

    python -m forecause_bench.sensitivity docs/benchmarks/sensitivity --groups tests,edges

A threshold that the run of a table never reads cannot matter there and is not tried. The folder
keeps `trials.jsonl`, a line for every trial, so that a stopped study goes on, and `table.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from forecause.config import Config
from forecause.config.spec import Settings
from forecause.config.thresholds import THRESHOLDS
from forecause.errors import ForecauseWarning, InputError
from forecause.method import discover
from forecause.simulation import simulate
from forecause_bench import driven, unlinked
from forecause_bench.calibration import MECHANISMS
from forecause_bench.questions import markdown
from forecause_bench.run import describe_machine

SEED = 8600  # no rule was chosen on it
MAX_LAG = 3
SIMULATED = {"nodes": 5, "max_lag": MAX_LAG, "in_degree": 2, "max_in_degree": 2}
SIMULATED_ROWS = (300, 1_000)
OTHER_ROWS = 800
UNLINKED = ("white-noise", "random-walks", "strong-day", "outliers")
DRIVEN = ("state at own pace", "staggered driver", "one volatility", "plain")
FACTORS = {"halved": 0.5, "doubled": 2.0}

Edge = tuple[str, str, int]  # source, target, lag


class Table(NamedTuple):
    """A table and its true edges."""

    name: str
    frame: pd.DataFrame
    true: frozenset[Edge]


class Answer(NamedTuple):
    """What a run says, as far as thresholds can change it."""

    edges: frozenset[Edge]
    grades: frozenset[tuple[Any, ...]]
    findings: frozenset[tuple[Any, ...]]

    def f1(self, true: frozenset[Edge]) -> float:
        """1 where there is nothing to find and nothing was found."""
        both = len(self.edges) + len(true)
        return 2 * len(self.edges & true) / both if both else 1.0


def tables() -> Iterator[Table]:
    """Systems of the study, unlinked tables, and such with a hidden driver."""
    for cell in MECHANISMS:
        for rows in SIMULATED_ROWS:
            system = simulate(rows=rows, seed=SEED, **{**cell.system, **SIMULATED})
            true = _edges(system.graph.edges)
            yield Table(f"{cell.name}, {rows} rows", system.frame(), true)
    for family in UNLINKED:
        values, present, stamps = unlinked.make(family, OTHER_ROWS, SEED)
        frame = _frame(values).set_index(stamps) if stamps is not None else _frame(values)
        yield Table(family, frame, _true(present))
    for family in DRIVEN:
        values, coefficients = driven.make(family, OTHER_ROWS, SEED, links=True)
        yield Table(family, _frame(values), _true(coefficients != 0))


def names(groups: list[str]) -> list[tuple[str, str]]:
    """Group and name of every threshold of these groups."""
    return [
        (group, name) for group in groups for name in type(getattr(THRESHOLDS, group)).model_fields
    ]


def answer(frame: pd.DataFrame, asked: dict[str, dict[str, Any]]) -> Answer:
    """Of one run with some thresholds replaced."""
    config = Config(thresholds=asked)
    run = discover(frame, max_lag=MAX_LAG, config=config)
    edges = run.graph.edges
    keys = [*zip(edges["source"], edges["target"], edges["lag"], strict=True)]
    grades = zip(keys, edges["grade"], strict=True)
    told = {(one.kind, one.gravity, str(one.about)) for one in run.findings}
    return Answer(frozenset(keys), frozenset(grades), frozenset(told))


def reads(frame: pd.DataFrame) -> set[tuple[str, str]]:
    """The thresholds that a run of this table looks at."""
    seen: set[tuple[str, str]] = set()
    group_of = {type(getattr(THRESHOLDS, group)): group for group in type(THRESHOLDS).model_fields}
    usual = Settings.__getattribute__

    def look(self: Settings, name: str) -> Any:
        if not name.startswith("_") and type(self) in group_of:
            seen.add((group_of[type(self)], name))
        return usual(self, name)

    Settings.__getattribute__ = look  # type: ignore[assignment]
    try:
        answer(frame, {})
    finally:
        del Settings.__getattribute__
    return seen


def moved(value: Any, factor: float) -> Any:
    """A threshold times a factor; whole numbers stay whole."""
    if isinstance(value, tuple):
        return tuple(part * factor for part in value)
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def trials(table: Table, wanted: list[tuple[str, str]], done: set[str]) -> Iterator[dict[str, Any]]:
    """What changes in one table, threshold by threshold; lines for what it does not read too."""
    todo = [pair for pair in wanted if f"{table.name}/{'.'.join(pair)}" not in done]
    if not todo:
        return
    usual, read = answer(table.frame, {}), reads(table.frame)
    for group, name in todo:
        line: dict[str, Any] = {"table": table.name, "threshold": f"{group}.{name}"}
        if (group, name) in read:
            for word, factor in FACTORS.items():
                value = moved(getattr(getattr(THRESHOLDS, group), name), factor)
                try:
                    other = answer(table.frame, {group: {name: value}})
                except InputError:  # beyond what it may be
                    continue
                line[word] = {
                    "edges": len(usual.edges ^ other.edges),
                    "grades": len(usual.grades ^ other.grades),
                    "findings": len(usual.findings ^ other.findings),
                    "f1": round(other.f1(table.true) - usual.f1(table.true), 4),
                }
        yield line


def summarise(lines: list[dict[str, Any]]) -> pd.DataFrame:
    """A row for every threshold, those that change most first."""
    rows = []
    for threshold, own in pd.Series(lines).groupby([line["threshold"] for line in lines]):
        group, name = str(threshold).split(".")
        told = [line for line in own if line.keys() & FACTORS.keys()]
        row: dict[str, Any] = {
            "threshold": threshold,
            "value": getattr(getattr(THRESHOLDS, group), name),
            "read in": f"{len(told)} of {len(own)}",
        }
        for word in FACTORS:
            tried = [line[word] for line in told if word in line]
            for what in ("edges", "grades", "findings"):
                row[f"{what}, {word}"] = sum(trial[what] > 0 for trial in tried)
            row[f"F1, {word}"] = f"{np.mean([t['f1'] for t in tried]):+.3f}" if tried else "-"
        rows.append(row)
    table = pd.DataFrame(rows)
    counts = [name for name in map(str, table) if name.startswith(("edges", "grades", "findings"))]
    order = table[counts].sum(axis=1).sort_values(ascending=False, kind="stable").index
    return table.loc[order]


def main() -> None:
    """Try what has not been tried, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m forecause_bench.sensitivity")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--groups", default=",".join(type(THRESHOLDS).model_fields))
    parser.add_argument("--only-table", action="store_true", help="of the trials that are there")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ForecauseWarning)
    store = asked.folder / "trials.jsonl"
    lines = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    done = {f"{line['table']}/{line['threshold']}" for line in lines}
    if not asked.only_table:
        with store.open("a", encoding="utf-8") as file:
            for table in tables():
                for line in trials(table, names(asked.groups.split(",")), done):
                    lines.append(line)
                    file.write(json.dumps(line) + "\n")
                    file.flush()
                    sys.stderr.write(f"\r{table.name}: {line['threshold']:60}")
    text = [
        "# What every threshold does",
        "",
        "- Command: python -m forecause_bench.sensitivity FOLDER",
        f"- Machine: {describe_machine()}",
        "",
        "Each threshold is halved and doubled, alone, and each table is run again. Read in: tables "
        "whose run looks at the number at all. Edges, grades, findings: tables in which any of "
        "them changes. F1: its mean change over the tables that read the number.",
        "",
        *markdown(summarise(lines)),
    ]
    (asked.folder / "table.md").write_text("\n".join(text) + "\n", encoding="utf-8")


def _edges(frame: pd.DataFrame) -> frozenset[Edge]:
    return frozenset(zip(frame["source"], frame["target"], frame["lag"], strict=True))


def _true(present: Any) -> frozenset[Edge]:
    """present (target, source, lag)."""
    return frozenset((f"x{j}", f"x{i}", int(lag) + 1) for i, j, lag in np.argwhere(present))


def _frame(values: Any) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[f"x{k}" for k in range(values.shape[1])])


if __name__ == "__main__":
    main()

"""From stored results to the entries of a table: means and spreads over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forecause.benchmark.methods import METHODS
from forecause.benchmark.store import Result
from forecause.benchmark.suite import Cell, Suite

LOWER_IS_BETTER = ("shd", "fdr", "missed", "invented", "error", "loss")
Key = tuple[str, int, str]  # cell, rows, method


def lead_metric(suite: Suite) -> str:
    """What wins and losses are counted by: F1 where it is reported."""
    return "f1" if "f1" in suite.metrics else suite.metrics[0]


def rows_text(rows: int) -> str:
    """How tables call a number of rows; 0 stands for all that were recorded."""
    return f"{rows:,} rows" if rows else "all rows"


@dataclass(frozen=True)
class Row:
    """One row of a table: a method, or one of its answers if it gives several."""

    method: str
    answer: str = ""

    @property
    def label(self) -> str:
        """How tables call it."""
        label = METHODS[self.method].label
        return f"{label}: {self.answer}" if self.answer else label


@dataclass(frozen=True)
class Column:
    """One column of a table: a cell at a number of rows."""

    heading: str
    cell: Cell
    rows: int


@dataclass(frozen=True)
class Entry:
    """The values of one metric over seeds, and what became of the seeds without one."""

    values: Mapping[int, float]  # by seed
    asked: int  # seeds that were to be run; 0 if the method does not run on this column
    troubles: tuple[str, ...] = ()  # status of every other seed

    @property
    def complete(self) -> bool:
        """Whether every seed has a value, so that the mean can be compared."""
        return 0 < self.asked == len(self.values)

    @property
    def mean(self) -> float:
        """Over the seeds that have a value."""
        return sum(self.values.values()) / len(self.values)

    @property
    def sd(self) -> float | None:
        """Sample standard deviation; None for a single seed."""
        if len(self.values) < 2:
            return None
        squares = sum((value - self.mean) ** 2 for value in self.values.values())
        return math.sqrt(squares / (len(self.values) - 1))


class Results:
    """The results of a suite's jobs, looked up by what a table needs."""

    def __init__(self, suite: Suite, results: Sequence[Result]) -> None:
        self.suite = suite
        self.by_key: dict[Key, dict[int, Result]] = {}
        for result in results:
            job = result["job"]
            key = (job["cell"], job["rows"], job["method"])
            self.by_key.setdefault(key, {})[job["seed"]] = result

    def layouts(self) -> list[tuple[str, list[Column]]]:
        """The tables of the suite: title and columns."""
        suite = self.suite
        if suite.rows_as_columns:
            return [
                (cell.name, [Column(rows_text(rows), cell, rows) for rows in suite.rows])
                for cell in suite.cells
            ]
        return [
            (rows_text(rows), [Column(cell.name, cell, rows) for cell in suite.cells])
            for rows in suite.rows
        ]

    def columns(self) -> list[Column]:
        """Every column of every table, with a heading that tells them apart."""
        suite = self.suite
        several = len(suite.rows) > 1
        return [
            Column(f"{cell.name}, {rows_text(rows)}" if several else cell.name, cell, rows)
            for cell in suite.cells
            for rows in suite.rows
        ]

    def rows(self, *, oracle: bool) -> list[Row]:
        """The rows of a table in order, either all truth-free or all oracles."""
        rows: list[Row] = []
        for method in self.suite.methods:
            if METHODS[method].oracle is oracle:
                labels = {
                    answer["label"]: None
                    for result in self.of_method(method)
                    for answer in result.get("answers", [])
                }
                rows.extend(Row(method, label) for label in labels or {"": None})
        return rows

    def of_method(self, method: str) -> list[Result]:
        """All results of a method."""
        return [
            result
            for (_, _, name), by_seed in self.by_key.items()
            if name == method
            for result in by_seed.values()
        ]

    def entry(self, row: Row, column: Column, metric: str) -> Entry:
        """One metric of one row in one column."""
        cell = column.cell.name
        if cell not in self.suite.only.get(row.method, (cell,)):
            return Entry({}, 0)
        by_seed = self.by_key.get((cell, column.rows, row.method), {})
        values: dict[int, float] = {}
        troubles: list[str] = []
        for seed in range(self.suite.seeds):
            result = by_seed.get(seed, {"status": "not run"})
            value = _value(result, row.answer, metric)
            if value is not None:
                values[seed] = value
            else:
                troubles.append("undefined" if result["status"] == "done" else result["status"])
        return Entry(values, self.suite.seeds, tuple(troubles))


def _value(result: Result, label: str, metric: str) -> float | None:
    """A metric by name: of the lagged graph, of another `view/metric`, extra, or an oracle's."""
    for answer in result.get("answers", []):
        if answer["label"] != label:
            continue
        if metric in answer["extra"]:
            return float(answer["extra"][metric])
        view, _, name = metric.rpartition("/")
        found = (
            answer["oracle"] if view == "oracle" else answer["metrics"].get(view or "lagged", {})
        )
        return None if found.get(name) is None else float(found[name])
    return None

"""From stored results to the entries of a table: means and spreads over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forecause_bench.jobs import Result
from forecause_bench.methods import METHODS
from forecause_bench.suite import Cell, Suite

OF_THE_JOB = (  # not of a graph
    "seconds",
    "method_cpu_seconds",
    "products",
    "memory_mb",
    "expected_least",
    "expected_seconds",
)
LOWER_IS_BETTER = (
    "shd",
    "lagged_no_self/shd",
    "fdr",
    "false_cross",
    "silent",
    "broken",
    "false_links",
    "firm_false",
    "missed",
    "invented",
    "error",
    "loss",
    "seconds",
    "method_cpu_seconds",
    "products",
    "memory_mb",
)
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

    @property
    def size(self) -> int:
        """Of a column along an axis, where it lies there."""
        assert self.cell.along is not None
        return self.cell.along[1]


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
        """The tables of the suite, title and columns: one for each thing that columns are sizes
        of, then those of the other columns."""
        suite = self.suite
        plain = [cell for cell in suite.cells if cell.along is None]
        return [(f"by {axis}", columns) for axis, columns in self.axes()] + self._plain(plain)

    def axes(self) -> list[tuple[str, list[Column]]]:
        """What columns are sizes of, and these columns, small to large."""
        found: dict[str, list[Column]] = {}
        for column in self.columns():
            if column.cell.along is not None:
                found.setdefault(column.cell.along[0], []).append(column)
        return [(axis, sorted(own, key=lambda column: column.size)) for axis, own in found.items()]

    def _plain(self, cells: Sequence[Cell]) -> list[tuple[str, list[Column]]]:
        suite = self.suite
        if suite.rows_as_columns:
            return [
                (cell.name, [Column(rows_text(rows), cell, rows) for rows in suite.rows_of(cell)])
                for cell in cells
            ]
        tables: dict[str, list[Column]] = {}
        for cell in cells:
            for rows in suite.rows_of(cell):
                title = ", ".join(part for part in (cell.group, rows_text(rows)) if part)
                tables.setdefault(title, []).append(Column(cell.name, cell, rows))
        return list(tables.items())

    def columns(self) -> list[Column]:
        """Every column of every table, with a heading that tells them apart."""
        suite = self.suite
        found = []
        for cell in suite.cells:
            several = len(suite.rows_of(cell)) > 1
            for rows in suite.rows_of(cell):
                heading = f"{cell.name}, {rows_text(rows)}" if several else cell.name
                found.append(Column(heading, cell, rows))
        return found

    def rows(self, *, oracle: bool) -> list[Row]:
        """The rows of a table in order, either all truth-free or all oracles."""
        rows: list[Row] = []
        for method in self.suite.methods:
            if METHODS[method].oracle is oracle:
                shown = self.suite.answers.get(method, METHODS[method].main)
                labels = {
                    answer["label"]: None
                    for result in self.of_method(method)
                    for answer in result.get("answers", [])
                    if shown is None or answer["label"] in shown
                }
                rows.extend(Row(method, label) for label in labels or {"": None})
        return rows

    def ceiling(self, column: Column) -> float | None:
        """The mean over seeds of the best F1 that the paper's 3 edges per target could have."""
        found: dict[int, float] = {}
        for (cell, rows, _), by_seed in self.by_key.items():
            if (cell, rows) == (column.cell.name, column.rows):
                found |= {s: r["ceiling"] for s, r in by_seed.items() if "ceiling" in r}
        return sum(found.values()) / len(found) if found else None

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
        for seed in self.suite.seed_numbers:
            result = by_seed.get(seed, {"status": "not run"})
            value = _value(result, row.answer, metric)
            if value is not None:
                values[seed] = value
            else:
                troubles.append("undefined" if result["status"] == "done" else result["status"])
        return Entry(values, self.suite.seeds, tuple(troubles))


def _value(result: Result, label: str, metric: str) -> float | None:
    """A metric by name: of the lagged graph, of another `view/metric`, extra, an oracle's, or of
    the job that found the graph."""
    if metric in OF_THE_JOB:
        known = result["status"] == "done" and metric in result
        return float(result[metric]) if known else None
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

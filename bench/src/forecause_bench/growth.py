"""How fast time and memory grow with size: exponents of power laws, and costs as foreseen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forecause_bench.aggregate import Column, Results, Row
from forecause_bench.document import Block, Heading, Paragraph, Table, Text
from forecause_bench.jobs import Result
from forecause_bench.methods import METHODS

LEAST_SIZES = 3  # for an exponent
STEEPER = 0.1  # by how much the last step must exceed the exponent to be told
READING = (
    "The exponent b of cost = a · size^b, by least squares of the logarithms over the sizes that a "
    f"method finished, of which it needs {LEAST_SIZES}; where it finished only some, their number "
    "is in brackets. `last` is the exponent between the two largest of them, where it is steeper. "
    "Jobs over the limit are left out, which flatters the methods that have some."
)
EXPECTED = (
    "Processor seconds, and the range that Forecause announced before it started, for an idle "
    "machine. The range should hold in 9 of 10 runs."
)


@dataclass(frozen=True)
class Growth:
    """The exponent over all sizes and that between the two largest; None with too few sizes."""

    exponent: float | None
    last: float | None
    finished: int
    asked: int

    def __str__(self) -> str:
        if not self.asked:
            return "-"
        if self.exponent is None or self.last is None:
            return f"- ({self.finished} of {self.asked})"
        text = f"{self.exponent:.2f}"
        if self.last > self.exponent + STEEPER:
            text += f", last {self.last:.2f}"
        return text if self.finished == self.asked else f"{text} ({self.finished} of {self.asked})"


def growth(results: Results, row: Row, columns: Sequence[Column], metric: str) -> Growth:
    """How a metric of one row grows along columns that are sizes, small to large."""
    sizes, values, asked = [], [], 0
    for column in columns:
        entry = results.entry(row, column, metric)
        asked += entry.asked > 0
        if entry.complete and entry.mean > 0:
            sizes.append(column.size)
            values.append(entry.mean)
    if len(sizes) < LEAST_SIZES:
        return Growth(None, None, len(sizes), asked)
    x, y = np.log(sizes), np.log(values)
    slope = float(np.polyfit(x, y, 1)[0])
    return Growth(slope, float((y[-1] - y[-2]) / (x[-1] - x[-2])), len(sizes), asked)


def growth_tables(results: Results) -> list[Block]:
    """Exponents of time and memory along every axis, and time as expected; nothing without axes."""
    axes = results.axes()
    if not axes:
        return _expected(results) if results.suite.foreseen else []
    blocks: list[Block] = [Heading("Growth with size"), Paragraph(READING)]
    for metric, name in (("seconds", "time"), ("memory_mb", "memory")):
        body = [
            [Text(row.label), *[Text(str(growth(results, row, c, metric))) for _, c in axes]]
            for row in results.rows(oracle=False)
        ]
        header = ["Method", *[f"{name} by {axis}" for axis, _ in axes]]
        blocks.append(Table(header, body))
    return [*blocks, *_expected(results)]


def _expected(results: Results) -> list[Block]:
    """Measured and expected seconds of our methods, a row per column."""
    rows = [row for row in results.rows(oracle=False) if METHODS[row.method].expect]
    if not rows:
        return []
    body = [
        [Text(column.heading), *[Text(_of_expected(results, row, column)) for row in rows]]
        for column in results.columns()
    ]
    table = Table(["System", *[row.label for row in rows]], body)
    every = (result for of_seed in results.by_key.values() for result in of_seed.values())
    told = [_is_within(result) for result in every if "expected_least" in result]
    kept = [inside for inside in told if inside is not None]
    share = f"It held in {sum(kept)} of {len(kept)}." if kept else ""
    return [Heading("Time measured and expected"), Paragraph(f"{EXPECTED} {share}".strip()), table]


def _is_within(result: Result) -> bool | None:
    """Whether a job took a time in the range that was announced; None: it is not known."""
    if result["status"] != "done" or "method_cpu_seconds" not in result:
        return None
    return bool(
        result["expected_least"] <= result["method_cpu_seconds"] <= result["expected_seconds"]
    )


def _of_expected(results: Results, row: Row, column: Column) -> str:
    measured = results.entry(row, column, "method_cpu_seconds")
    if not measured.asked:
        return "-"
    least, most = (
        results.entry(row, column, name) for name in ("expected_least", "expected_seconds")
    )
    if not (measured.values and least.values):
        return ", ".join(dict.fromkeys(measured.troubles)) or "not announced"
    return f"{measured.mean:.1f} in {least.mean:.1f} to {most.mean:.1f}"

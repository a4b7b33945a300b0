"""Does the time that `discover` announces hold? Measured on systems drawn at random.

    OMP_NUM_THREADS=1 python -m forecause_bench.expectation --systems 40 --first-seed 8000

Every seed is a system of its own: its size, its mechanism and its forecaster are drawn too.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from forecause.common.work_sharing import one_thread
from forecause.config import Config
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.forecast.selection import specs_tried
from forecause.method import discover
from forecause.resources.cost import Cost, expected_cost
from forecause.simulation import simulate
from forecause_bench.document import Block, Lines, Paragraph, Table, Text, to_markdown
from forecause_bench.hard_systems import MAX_LAG, VARIABLES, hard
from forecause_bench.run import describe_machine

COMMAND = "OMP_NUM_THREADS=1 python -m forecause_bench.expectation"
MECHANISMS = ("linear", "monotonic", "mlp-concat", "gate-of-two")
FORECASTERS = {
    "auto": {}, "linear": {}, "additive": {},
    "transformer": {"preset": "quick"}, "mlp": {"preset": "quick"},
}  # fmt: skip
CHANCES = (0.4, 0.2, 0.2, 0.1, 0.1)
MOST_INPUTS = 300  # variables times lag
MOST_OF_TRANSFORMER = 100


@dataclass(frozen=True)
class Drawn:
    """A system and how it is discovered."""

    seed: int
    nodes: int
    max_lag: int
    rows: int
    mechanism: str
    forecaster: str

    @classmethod
    def of(cls, seed: int) -> Drawn:
        """Sizes even on a logarithmic scale: 3 to 60 variables, lag 1 to 10, 300 to 20,000 rows."""
        rng = np.random.default_rng(seed)
        while True:
            mechanism = str(rng.choice(MECHANISMS))
            forecaster = str(rng.choice(list(FORECASTERS), p=CHANCES))
            nodes, max_lag, rows = (
                round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))
                for low, high in ((3, 60), (1, 10), (300, 20_000))
            )
            if mechanism == "gate-of-two":
                nodes, max_lag = VARIABLES, max(max_lag, MAX_LAG)
            most = MOST_OF_TRANSFORMER if forecaster == "transformer" else MOST_INPUTS
            if nodes * max_lag <= most and rows >= 3 * nodes * max_lag:
                return cls(seed, nodes, max_lag, rows, mechanism, forecaster)

    @property
    def panel(self) -> Panel:
        """Its table."""
        if self.mechanism == "gate-of-two":
            return hard(self.rows, self.seed, self.max_lag, self.mechanism)[0]
        return simulate(
            nodes=self.nodes,
            max_lag=self.max_lag,
            rows=self.rows,
            in_degree=min(3, self.nodes * self.max_lag // 2),
            mechanism=self.mechanism,
            seed=self.seed,
        ).panel


@dataclass(frozen=True)
class Measured:
    """What was announced, and the processor seconds that it took."""

    drawn: Drawn
    cost: Cost
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the announced range has it."""
        return self.cost.least <= self.seconds <= self.cost.most

    @property
    def width(self) -> float:
        """How many times the lower end the upper one is."""
        return self.cost.most / self.cost.least


def measure(drawn: Drawn) -> Measured:
    """Ask what to expect, then do it."""
    panel = drawn.panel
    options: dict[str, Any] = {
        "forecaster": drawn.forecaster,
        **FORECASTERS[drawn.forecaster],
        "device": "cpu",
    }
    windows = Windows.of(panel, drawn.max_lag)
    asked = Config.of(max_lag=drawn.max_lag, **options).forecasting
    with one_thread():
        cost = expected_cost(windows, specs_tried(asked, windows))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        discover(panel, drawn.max_lag, seed=drawn.seed, config=Config(**options))
    return Measured(drawn, cost, time.process_time() - start)


def document(found: Sequence[Measured]) -> list[Block]:
    """How often the range held, how wide it was, and every run."""
    held = sum(one.holds for one in found)
    less, more = (
        sum(one.seconds < one.cost.least for one in found),
        sum(one.seconds > one.cost.most for one in found),
    )
    short = [one for one in found if one.seconds <= one.cost.most_of_plain]
    narrow = [one.cost.most_of_plain / one.cost.least for one in found]
    widths = [one.width for one in found]
    words = (
        f"It held in {held} of {len(found)} runs; {less} took less and {more} took more. The upper "
        f"end is {np.median(widths):.1f} times the lower one (median; {min(widths):.1f} to "
        f"{max(widths):.1f}). Without what waits for a sign of joint effects it would be "
        f"{np.median(narrow):.1f} times; {len(short)} runs took no longer than that. Processor "
        "seconds on one thread, in a process that has imported everything. None of these systems "
        "was used to set the ranges."
    )
    return [Paragraph(words), Table(HEADER, [_row(one) for one in found])]


HEADER = [
    "Seed", "Variables", "Lag", "Rows", "Mechanism", "Forecaster",
    "Expected s", "if joint, up to", "Took s", "",
]  # fmt: skip


def _row(one: Measured) -> list[Text]:
    drawn = one.drawn
    sizes = [drawn.seed, drawn.nodes, drawn.max_lag, f"{drawn.rows:,}"]
    expected = f"{one.cost.least:.1f} to {one.cost.most_of_plain:.1f}"
    joint = f"{one.cost.most:.1f}"
    outside = "" if one.holds else "less" if one.seconds < one.cost.least else "more"
    cells = [*sizes, drawn.mechanism, drawn.forecaster, expected, joint]
    cells += [f"{one.seconds:.1f}", outside]
    return [Text(str(cell)) for cell in cells]


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m forecause_bench.expectation")
    parser.add_argument("--systems", type=int, default=40)
    parser.add_argument("--first-seed", type=int, default=8000)
    parser.add_argument("--out", type=Path, help="folder of table.md; printed if not given")
    asked = parser.parse_args(arguments)
    discover(simulate(nodes=3, max_lag=2, rows=300, seed=0).panel, 2)  # all is imported
    console = Console(stderr=True)
    found = []
    for seed in range(asked.first_seed, asked.first_seed + asked.systems):
        found.append(measure(Drawn.of(seed)))
        console.print(" ".join(str(cell.text) for cell in _row(found[-1])), markup=False)
    command = f"{COMMAND} --systems {asked.systems} --first-seed {asked.first_seed}"
    head = Lines([f"Command: {command}", f"Machine: {describe_machine()}"])
    text = f"# Does the announced time hold?\n\n{to_markdown([head, *document(found)])}"
    if asked.out is None:
        sys.stdout.write(text)
        return
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "table.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

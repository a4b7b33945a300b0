"""How fast the published transformer comes near a VAR: python -m forecause_bench.paper_curve.

Linear data of the paper's size (10 variables, lag 5, 50,000 rows), on which the closed form is the
best that can be had: how far above its held-out loss is the transformer after how long? Looking at
the held-out rows is not counted as training.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

import torch
from matplotlib.figure import Figure
from rich.console import Console

from forecause.data.windows import Windows
from forecause.forecast.forecaster import WATCHED, FitData, Forecaster, squared_errors
from forecause.forecast.linear import Linear
from forecause.networks.settings import DeepTransformer
from forecause.progress import Progress
from forecause.simulation import simulate
from forecause_bench.document import Block, Lines, Paragraph, Table, Text, to_markdown
from forecause_bench.run import describe_machine
from forecause_bench.suite import BASE

HELD_OUT = 0.2
ROWS = 50_000
NEAR = 0.01  # the aim: at most so far above the VAR, as a share of its loss
IN_MINUTES = 10


@dataclass(frozen=True)
class Point:
    """A look at the held-out rows."""

    step: int
    cpu_seconds: float
    wall_seconds: float
    loss: float
    above_var: float  # as a share of the VAR's loss


class Curve(Progress):
    """Looks at the held-out rows whenever training tells how far it is; the clock stops then."""

    def __init__(self, model: Forecaster, held_out: Windows, best: float, steps: int) -> None:
        self.model, self.held_out, self.best, self.steps = model, held_out, best, steps
        self.points: list[Point] = []
        self.began, self.looked = _now(), (0.0, 0.0)

    def step(self, what: str, share: float) -> None:
        cpu, wall = (
            now - start - looked
            for now, start, looked in zip(_now(), self.began, self.looked, strict=True)
        )
        loss = _loss(self.model, self.held_out)
        self.points.append(Point(round(share * self.steps), cpu, wall, loss, loss / self.best - 1))
        spent = (cpu, wall)
        self.looked = tuple(  # type: ignore[assignment]
            now - start - own for now, start, own in zip(_now(), self.began, spent, strict=True)
        )
        Console().print(self.points[-1])


def measure(steps: int, rows: int = ROWS, seed: int = 0) -> tuple[list[Point], float]:
    """Train for so many steps; the looks, and the VAR's held-out loss."""
    max_lag = BASE["max_lag"]
    windows = Windows.of(simulate(rows=rows, seed=seed, **BASE).panel, max_lag)
    early, late = windows.split(HELD_OUT)
    late = late.thin(WATCHED)
    var = Linear().build(windows.shape)
    var.fit(FitData(early, late))
    best = _loss(var, late)
    settings = DeepTransformer().trained_with(max_steps=steps, rounds=0)
    model = settings.seeded_build(windows.shape, seed)
    curve = Curve(model, late, best, steps)
    model.fit(FitData(early, late, seed, curve))
    return curve.points, best


def draw(points: list[Point]) -> Figure:
    """How far above the VAR after how many seconds of processor time."""
    figure = Figure(figsize=(7, 3.6))
    axes = figure.subplots()
    minutes = [point.cpu_seconds / 60 for point in points]
    axes.plot(minutes, [100 * point.above_var for point in points], "o-", color="#d55e00", ms=3.5)
    axes.axhline(100 * NEAR, color="#555555", linestyle="--", linewidth=1)
    axes.text(0.1, 100 * NEAR * 1.06, "1 % above", fontsize=8, color="#555555")
    axes.axvline(IN_MINUTES, color="#bbbbbb", linewidth=1)
    axes.set_yscale("log")
    axes.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    axes.set_ylim(0.3, 20)
    axes.set_xlim(0, max(IN_MINUTES * 1.03, *minutes))
    axes.set_xlabel("minutes of processor time, one thread")
    axes.set_ylabel("held-out error above a VAR's, %")
    axes.set_title("The published transformer on linear data", fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    figure.tight_layout()
    return figure


def write(points: list[Point], best: float, folder: Path, command: str) -> None:
    """table.md, curve.csv and curve.png."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [field.name for field in fields(Point)]
    lines = [",".join(names), *[",".join(f"{v:.6g}" for v in astuple(p)) for p in points]]
    (folder / "curve.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    draw(points).savefig(folder / "curve.png", dpi=110)
    rows = [
        [
            Text(f"{point.step:,}"),
            Text(f"{point.cpu_seconds:.0f}"),
            Text(f"{point.wall_seconds:.0f}"),
            Text(f"{point.loss:.4f}"),
            Text(f"{100 * point.above_var:+.1f} %"),
        ]
        for point in points
    ]
    blocks: list[Block] = [
        Lines([f"Command: {command}", f"Run: {_today()}", f"Machine: {describe_machine()}"]),
        Paragraph(
            f"{BASE['nodes']} variables, lag {BASE['max_lag']}, {ROWS:,} rows of a linear system, "
            f"one seed. The VAR in closed form has a held-out error of {best:.4f} of the variance. "
            f"{_sentence(points)} The machine was shared with other programs, so the wall time "
            "says little."
        ),
        Table(["step", "CPU s", "wall s", "held-out error", "above the VAR"], rows),
    ]
    text = to_markdown(blocks)
    page = f"# How fast the published transformer comes near a VAR\n\n{text}\n![Curve](curve.png)\n"
    (folder / "table.md").write_text(page, encoding="utf-8")


def _sentence(points: list[Point]) -> str:
    near = [point for point in points if point.above_var <= NEAR]
    if not near:
        least = min(points, key=lambda point: point.above_var)
        return (
            f"It did not come within 1 %: {100 * least.above_var:.1f} % above after "
            f"{least.cpu_seconds / 60:.1f} minutes of processor time."
        )
    first, last = near[0], points[-1]
    return (
        f"The transformer is first within 1 % of it after {first.step:,} steps, "
        f"{first.cpu_seconds / 60:.1f} minutes of processor time on one thread, and ends "
        f"{100 * last.above_var:.1f} % above it after {last.cpu_seconds / 60:.1f} minutes."
    )


def _loss(model: Forecaster, windows: Windows) -> float:
    return float(squared_errors(model, windows).mean())


def _now() -> tuple[float, float]:
    return time.process_time(), time.monotonic()


def _today() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def main() -> None:
    """Train, and write the curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500, help="of which the last 300 slow down")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/paper-curve"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    points, best = measure(asked.steps, seed=asked.seed)
    command = f"python -m forecause_bench.paper_curve --steps {asked.steps} --seed {asked.seed}"
    write(points, best, asked.out, command)


if __name__ == "__main__":
    main()

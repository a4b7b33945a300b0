"""The paper's second figure from our own runs: python -m forecause_bench.overview.

One panel for every axis of the paper: mechanism, variables, largest lag, rows, segments, hidden
causes and noise. It is drawn from the results that `make paper` keeps.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forecause_bench.aggregate import Column, Results, Row
from forecause_bench.jobs import Store, jobs_of
from forecause_bench.methods import METHODS
from forecause_bench.paper import paper_figure
from forecause_bench.run import narrowed
from forecause_bench.suites import find_suite

OURS = {"dot": "#d55e00", "forecause": "#0072b2"}  # drawn last, above the others
RIVALS = {  # colour and marker
    "pcmci+": ("#5fae8f", "s"),
    "var-fdr": ("#c795b8", "^"),
    "var-lingam": ("#d9b45b", "v"),
    "dynotears": ("#86c5e8", "D"),
    "granger": ("#b0b0b0", "P"),
}
LABELS = {
    "forecause": "Forecause, default",
    "dot": "DOT, the paper's model as reproduced",
}
PUBLISHED = "DOT in the paper (larger systems, 50,000 rows)"
ROWS = 10_000


@dataclass(frozen=True)
class Point:
    """A column of a suite, what to write below it, and its rows."""

    suite: str
    column: str
    text: str
    rows: int = ROWS


@dataclass(frozen=True)
class Panel:
    """An axis of the paper."""

    title: str
    points: tuple[Point, ...]


def _along(suite: str, *places: tuple[str, str]) -> tuple[Point, ...]:
    return tuple(Point(suite, column, text) for column, text in places)


PANELS = (
    Panel(
        "Mechanism",
        _along(
            "nonlinearity",
            ("Linear", "linear"),
            ("CAM-M", "mono-\ntonic"),
            ("CAM-PL+M", "piece-\nwise"),
            ("MLP-Add", "MLP"),
            ("MLP-Cat", "MLP,\nnoise in"),
        ),
    ),
    Panel("Variables (linear)", _along("highdim-linear", ("Base", "5"), ("n=25", "13"))),
    Panel(
        "Largest lag (linear)",
        _along("longrange-linear", ("Base", "3"), ("k=10", "5"), ("k=25", "13")),
    ),
    Panel(
        "Rows (MLP, noise in)",
        tuple(
            Point("rows", "MLP-concat", text, rows)
            for rows, text in ((2_000, "2,000"), (10_000, "10,000"), (50_000, "50,000"))
        ),
    ),
    Panel(
        "Segments, linear",
        _along("ns-regular", ("Base", "1"), ("2 segments", "2"), ("5 segments", "5")),
    ),
    Panel(
        "Segments, monotonic, own lags",
        _along("ns-extreme", ("2 segments", "2"), ("5 segments", "5")),
    ),
    Panel(
        "Hidden causes (linear)",
        _along("latent", ("Base", "0"), ("3 Latent", "1"), ("5 Latent", "2"), ("10 Latent", "5")),
    ),
    Panel(
        "Noise (linear)",
        _along(
            "noise",
            ("Gaussian", "Gauss"),
            ("Uniform", "uni-\nform"),
            ("Mixed", "mixed"),
            ("Hetero-S", "un-\nequal"),
            ("Hetero-L", "very un-\nequal"),
        ),
    ),
)
Found = Sequence[tuple[Results, Column]]


def overview(store: Store, seeds: int = 1) -> Figure:
    """All panels; a method without a result has no point."""
    figure = Figure(figsize=(13, 6))
    grid = figure.subplots(2, 4, sharey=True)
    for axes, panel in zip(grid.flat, PANELS, strict=True):
        found = [_found(store, point, seeds) for point in panel.points]
        for place, method in enumerate((*RIVALS, *OURS)):
            _draw(axes, found, method, shift=0.025 * (place - 3))
        _draw_paper(axes, [column for _, column in found])
        _dress(axes, panel)
    for axes in grid[:, 0]:
        axes.set_ylabel("F1 of the lagged graph")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    order = [labels.index(label) for label in _legend()]
    figure.legend(
        [handles[place] for place in order],
        [labels[place] for place in order],
        loc="lower center",
        ncols=4,
        frameon=False,
        fontsize=10,
    )
    figure.tight_layout(rect=(0, 0.1, 1, 1), h_pad=1.6)
    return figure


def _legend() -> list[str]:
    methods = [*reversed(OURS), *RIVALS]
    names = [LABELS.get(method, METHODS[method].label) for method in methods]
    return [*names[:2], PUBLISHED, *names[2:]]


def _dress(axes: Axes, panel: Panel) -> None:
    axes.set_xticks(range(len(panel.points)), [point.text for point in panel.points])
    axes.set_title(panel.title, fontsize=11, loc="left", fontweight="bold", color="#333333")
    axes.set_xlim(-0.4, len(panel.points) - 0.6)
    axes.set_ylim(0, 1.04)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(labelsize=9, length=0)


def _found(store: Store, point: Point, seeds: int) -> tuple[Results, Column]:
    """One column of a suite at half size, with what is finished of it."""
    halved, methods = find_suite(point.suite).halved(), [*RIVALS, *OURS]
    chosen = narrowed(
        halved, rows=[point.rows], seeds=seeds, methods=methods, columns=[point.column]
    )
    known = [result for job in jobs_of(chosen) if (result := store.load(job)) is not None]
    results = Results(chosen, known)
    return results, results.columns()[0]


def _draw(axes: Axes, found: Found, method: str, shift: float) -> None:
    entries = [results.entry(Row(method), column, "f1") for results, column in found]
    xs = [place + shift for place in range(len(entries))]
    ys = [entry.mean if entry.complete else math.nan for entry in entries]  # nan breaks the line
    label = LABELS.get(method, METHODS[method].label)
    if method in OURS:
        colour = OURS[method]
        axes.plot(xs, ys, "o-", color=colour, markersize=6, linewidth=2.6, label=label, zorder=3)
        return
    colour, marker = RIVALS[method]
    if sum(entry.complete for entry in entries) < len(entries) / 2:  # no part of this suite
        xs, ys = [], []
    axes.plot(xs, ys, color=colour, marker=marker, markersize=4, linewidth=1.1, label=label)


def _draw_paper(axes: Axes, columns: Sequence[Column]) -> None:
    """What the paper reports of its model, at its own sizes."""
    places = [(x, column.cell.paper_column(column.rows)) for x, column in enumerate(columns)]
    found = [(x, paper_figure(*place, "dot", "f1")) for x, place in places if place]
    points = [(x, figure.mean) for x, figure in found if figure]
    xs, ys = zip(*points, strict=True) if points else ((), ())
    axes.plot(
        xs,
        ys,
        "D:",
        color=OURS["dot"],
        markerfacecolor="white",
        markersize=5.5,
        linewidth=1,
        label=PUBLISHED,
        zorder=2.5,
    )


def main() -> None:
    """Draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("bench-paper/results"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("docs/img/paper-axes.png"))
    asked = parser.parse_args()
    overview(Store(asked.results), asked.seeds).savefig(asked.out, dpi=110)


if __name__ == "__main__":
    main()
